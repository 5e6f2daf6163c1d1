# SPDX-License-Identifier: Apache-2.0
"""An override that names only the YaRN fields keeps the model's other RoPE fields."""

import json

import pytest

import _qwen4exp as q

PARTIAL = {"rope_parameters": q.PARTIAL_YARN}


@pytest.mark.witness
@pytest.mark.parametrize("model", [q.wrapper, q.text_only])
def test_what_is_not_overridden_is_kept(model, tmp_path):
    config = q.model_config(model(tmp_path), None, PARTIAL)
    rope = config.hf_text_config.rope_parameters
    assert rope == {
        "rope_type": "yarn",
        "factor": 2.0,
        "original_max_position_embeddings": 262144,
        "rope_theta": 10_000_000,
        "partial_rotary_factor": 0.25,
        "mrope_section": [11, 11, 10],
        "mrope_interleaved": True,
    }


@pytest.mark.witness
def test_the_rotation_is_the_models_own(tmp_path):
    """Theta 1e7 over 64 of 256 dimensions, not 1e4 over all of them."""
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.rotary_embedding import get_rope

    rope = q.model_config(
        q.text_only(tmp_path), None, PARTIAL
    ).hf_text_config.rope_parameters
    small = {**rope, "original_max_position_embeddings": 64}
    with set_current_vllm_config(VllmConfig()):
        rotary = get_rope(q.TEXT["head_dim"], 128, rope_parameters=small)
    assert (rotary.rotary_dim, rotary.base) == (64, 10_000_000)


def test_what_is_overridden_wins(tmp_path):
    override = {"rope_parameters": {**q.PARTIAL_YARN, "rope_theta": 5_000_000}}
    config = q.model_config(q.wrapper(tmp_path), None, override)
    assert config.hf_text_config.rope_parameters["rope_theta"] == 5_000_000


def test_the_override_itself_is_left_alone(tmp_path):
    """The draft's config is made from it later."""
    config = q.model_config(q.wrapper(tmp_path), None, PARTIAL)
    assert config.hf_overrides == PARTIAL


def test_per_layer_type_dicts_are_not_mixed_with_flat_ones(tmp_path):
    nested = {"full_attention": q.YARN, "linear_attention": q.ROPE}
    config = q.model_config(q.wrapper(tmp_path), 1024, {"rope_parameters": nested})
    assert config.hf_text_config.rope_parameters == nested


@pytest.mark.witness
def test_a_layer_types_dict_is_completed_by_its_own(tmp_path):
    layers = {
        "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    }
    gemma = {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"],
        "vocab_size": 128,
        "max_position_embeddings": 8192,
        "rope_parameters": layers,
    }
    (tmp_path / "config.json").write_text(json.dumps(gemma))
    linear = {"rope_type": "linear", "factor": 8.0}
    override = {"rope_parameters": {"full_attention": linear}}
    rope = q.model_config(str(tmp_path), 1024, override).hf_text_config.rope_parameters
    assert rope == {**layers, "full_attention": {**layers["full_attention"], **linear}}


@pytest.mark.parametrize("model", [q.wrapper, q.text_only])
def test_an_empty_override_changes_nothing(model, tmp_path):
    config = q.model_config(model(tmp_path), None, {"rope_parameters": {}})
    assert config.hf_text_config.rope_parameters == q.ROPE


def test_null_is_what_it_was_on_the_wrapper(tmp_path):
    config = q.model_config(q.wrapper(tmp_path), 1024, {"rope_parameters": None})
    assert config.hf_text_config.rope_parameters == q.ROPE
    nested = {"text_config": {"rope_parameters": None}}
    config = q.model_config(q.wrapper(tmp_path), 1024, nested)
    assert config.hf_text_config.rope_parameters is None


@pytest.mark.witness
@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
def test_the_old_name_of_the_type_replaces_the_type(nested, tmp_path):
    """`type: yarn` beside the kept `rope_type: default` would be unscaled RoPE over
    524288 positions, without a word."""
    rope = {**q.PARTIAL_YARN, "type": "yarn"}
    del rope["rope_type"]
    override = {"rope_parameters": rope}
    override = {"text_config": override} if nested else override
    try:
        config = q.model_config(q.wrapper(tmp_path), None, override)
    except KeyError as error:
        pytest.fail(f"type is not understood: {error}")
    found = config.hf_text_config.rope_parameters
    assert found == {**q.YARN, "type": "yarn"}
    assert config.max_model_len == 524288


def test_the_new_name_replaces_the_old_one(tmp_path):
    old = {**q.YARN, "type": "yarn"}
    folder = q.text_only(tmp_path, rope_parameters=old)
    override = {"rope_parameters": {"rope_type": "default"}}
    rope = q.model_config(folder, 1024, override).hf_text_config.rope_parameters
    assert rope["rope_type"] == "default"
    assert "type" not in rope
