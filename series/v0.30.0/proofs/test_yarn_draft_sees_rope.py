# SPDX-License-Identifier: Apache-2.0
"""The MTP draft of a Qwen4Exp model rotates as its target does."""

import pickle

import pytest

import _qwen4exp as q

TOP = {"rope_parameters": q.PARTIAL_YARN}
NESTED = {"text_config": {"rope_parameters": q.YARN}}
STATED = {
    "text_config": {"rope_parameters": q.YARN, "max_position_embeddings": 1048576}
}


def target_and_draft(folder, overrides):
    from vllm.config.parallel import ParallelConfig
    from vllm.config.speculative import SpeculativeConfig

    target = q.model_config(folder, None, overrides)
    speculative = SpeculativeConfig(
        method="mtp",
        num_speculative_tokens=2,
        target_model_config=target,
        target_parallel_config=ParallelConfig(),
    )
    return target, speculative.draft_model_config


@pytest.mark.witness
@pytest.mark.parametrize(
    ("model", "overrides", "length"),
    [
        (q.wrapper, NESTED, 524288),
        (q.wrapper, TOP, 524288),
        (q.wrapper, STATED, 1048576),
        (q.text_only, TOP, 524288),
    ],
    ids=["nested", "top", "stated", "text"],
)
def test_the_draft_has_the_targets_rope(model, overrides, length, tmp_path):
    target, draft = target_and_draft(model(tmp_path), overrides)
    theirs = target.hf_text_config.rope_parameters
    ours = draft.hf_text_config.rope_parameters
    assert (theirs["rope_type"], ours["rope_type"]) == ("yarn", "yarn")
    assert ours == theirs
    assert draft.hf_text_config.max_position_embeddings == length
    assert draft.max_model_len == target.max_model_len == length


FOUR = {"rope_parameters": {"factor": 4.0}}


@pytest.mark.witness
@pytest.mark.parametrize(
    ("overrides", "factor"),
    [
        ({**TOP, "text_config": FOUR}, 4.0),
        ({"text_config": FOUR, **TOP}, 2.0),
        ({"rope_parameters": None, **NESTED}, 2.0),
        ({"text_config": {"rope_scaling": q.PARTIAL_YARN}}, 2.0),
        ({"rope_scaling": q.PARTIAL_YARN}, 2.0),
    ],
    ids=["later-nested", "later-top", "null-top", "old", "old-top"],
)
def test_it_is_put_together_as_the_targets(overrides, factor, tmp_path):
    target, draft = target_and_draft(q.wrapper(tmp_path), overrides)
    theirs = target.hf_text_config.rope_parameters
    assert (theirs["rope_type"], theirs["factor"]) == ("yarn", factor)
    assert draft.hf_text_config.rope_parameters == theirs
    assert draft.max_model_len == target.max_model_len == int(factor * q.WINDOW)


@pytest.mark.witness
@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
def test_the_old_name_of_the_type_is_one(nested, tmp_path):
    """Transformers refuses `type: yarn` beside `rope_type: default`, vLLM's loader
    of the draft with it."""
    rope = {**q.PARTIAL_YARN, "type": "yarn"}
    del rope["rope_type"]
    override = {"rope_parameters": rope}
    override = {"text_config": override} if nested else override
    target, draft = target_and_draft(q.wrapper(tmp_path), override)
    assert draft.hf_text_config.rope_parameters["rope_type"] == "yarn"
    assert draft.hf_text_config.rope_parameters == target.hf_text_config.rope_parameters


@pytest.mark.parametrize(
    "overrides",
    [
        {"rope_parameters": None},
        {"rope_scaling": None},
        {"rope_parameters": {}},
        {"text_config": {"rope_parameters": None}},
        {"text_config": {"rope_parameters": {}}},
        {"text_config": {"rope_parameters": None, "max_position_embeddings": 1024}},
    ],
    ids=str,
)
def test_an_override_that_says_nothing_leaves_the_draft_its_own(overrides, tmp_path):
    _, draft = target_and_draft(q.wrapper(tmp_path), overrides)
    assert draft.hf_text_config.rope_parameters == q.ROPE
    assert draft.hf_text_config.max_position_embeddings == q.WINDOW


@pytest.mark.parametrize("other", [None, "rope_parameters", [1], 4, 0.5, True])
def test_what_is_no_mapping_is_not_forwarded(other):
    from vllm.config.speculative import SpeculativeConfig

    compose = SpeculativeConfig.compose_draft_hf_overrides
    for key in ("rope_parameters", "rope_scaling", "text_config"):
        assert compose({key: other}) is SpeculativeConfig.hf_config_override
    nested = {"text_config": {"rope_parameters": other}}
    assert compose(nested) is SpeculativeConfig.hf_config_override


def test_dicts_a_layer_type_reach_it_too(tmp_path):
    layers = {"full_attention": q.YARN, "linear_attention": q.ROPE}
    target, draft = target_and_draft(q.wrapper(tmp_path), {"rope_parameters": layers})
    assert target.hf_text_config.rope_parameters == layers
    assert draft.hf_text_config.rope_parameters == layers


def test_a_checkpoint_without_rope_of_its_own(tmp_path):
    folder = q.wrapper(tmp_path, rope_parameters=None)
    _, draft = target_and_draft(folder, {"rope_parameters": None})
    plain = draft.hf_text_config.rope_parameters
    target, draft = target_and_draft(folder, TOP)
    assert plain["rope_type"] == "default"
    assert target.hf_text_config.rope_parameters == {**plain, **q.PARTIAL_YARN}
    assert draft.hf_text_config.rope_parameters == {**plain, **q.PARTIAL_YARN}


def test_the_targets_override_is_left_alone(tmp_path):
    target, draft = target_and_draft(q.wrapper(tmp_path), STATED)
    draft.hf_text_config.rope_parameters["factor"] = 8.0
    assert target.hf_overrides == STATED
    assert target.hf_text_config.rope_parameters["factor"] == 2.0


def test_it_is_an_mtp_draft(tmp_path):
    _, draft = target_and_draft(q.wrapper(tmp_path), NESTED)
    assert draft.hf_config.architectures == ["Qwen4ExpMTP"]


@pytest.mark.witness
def test_it_survives_a_process_boundary(tmp_path):
    _, draft = target_and_draft(q.wrapper(tmp_path), NESTED)
    config = pickle.loads(pickle.dumps(draft.hf_overrides))
    there = q.model_config(draft.model, runner="draft", hf_overrides=config)
    assert there.hf_text_config.rope_parameters == q.YARN


def test_without_a_rope_override_the_draft_is_as_before(tmp_path):
    from vllm.config.speculative import SpeculativeConfig

    compose = SpeculativeConfig.compose_draft_hf_overrides
    for overrides in (None, {}, {"max_position_embeddings": 1234}, {"text_config": {}}):
        assert compose(overrides) is SpeculativeConfig.hf_config_override
    _, draft = target_and_draft(q.wrapper(tmp_path), {})
    assert draft.hf_text_config.rope_parameters == q.ROPE


def test_a_draft_of_another_model_keeps_its_own():
    from transformers import LlamaConfig
    from vllm.config.speculative import SpeculativeConfig

    own = {"rope_type": "default", "rope_theta": 500000.0}
    config = LlamaConfig(architectures=["LlamaForCausalLM"], rope_parameters=own)
    config = SpeculativeConfig.compose_draft_hf_overrides(TOP)(config)
    assert config.rope_parameters["rope_type"] == "default"
    assert config.rope_parameters["rope_theta"] == 500000.0
