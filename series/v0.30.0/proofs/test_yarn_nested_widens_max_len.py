# SPDX-License-Identifier: Apache-2.0
"""A YaRN override of a Qwen4Exp model sets how long the context may be."""

import pytest

import _qwen4exp as q


@pytest.fixture(params=[q.wrapper, q.text_only], ids=["wrapper", "text"])
def case(request, tmp_path):
    """A model folder, and the hf_overrides that put `rope` on its text model."""
    if request.param is q.wrapper:
        return q.wrapper(tmp_path), lambda rope: {
            "text_config": {"rope_parameters": rope}
        }
    return q.text_only(tmp_path), lambda rope: {"rope_parameters": rope}


@pytest.mark.witness
def test_the_stretched_window_is_the_default(case):
    folder, override = case
    config = q.model_config(folder, None, override(q.YARN))
    assert config.max_model_len == 524288
    assert config.hf_text_config.max_position_embeddings == 524288


@pytest.mark.witness
def test_the_stretched_window_may_be_asked_for(case):
    folder, override = case
    try:
        config = q.model_config(folder, 524288, override(q.YARN))
    except ValueError as error:  # pydantic's ValidationError is one
        pytest.fail(f"max_model_len=524288 is refused: {error}")
    assert config.max_model_len == 524288


@pytest.mark.witness
@pytest.mark.parametrize(("factor", "length"), [(4.0, 1048576), (1.5, 393216)])
def test_the_factor_counts(case, factor, length):
    folder, override = case
    config = q.model_config(folder, None, override({**q.YARN, "factor": factor}))
    assert config.max_model_len == length


def test_beyond_the_stretched_window_is_still_refused(case):
    folder, override = case
    with pytest.raises(ValueError, match="greater than the derived max_model_len"):
        q.model_config(folder, 524289, override(q.YARN))


def test_without_yarn_nothing_widens(case):
    folder, _ = case
    assert q.model_config(folder).max_model_len == q.WINDOW
    with pytest.raises(ValueError, match="greater than the derived max_model_len"):
        q.model_config(folder, q.WINDOW + 1)


@pytest.mark.parametrize(
    "malformed",
    [
        {"factor": "2"},
        {"factor": None},
        {"original_max_position_embeddings": None},
        {"original_max_position_embeddings": "262144"},
    ],
    ids=str,
)
def test_what_is_no_number_widens_nothing(case, malformed):
    folder, override = case
    config = q.model_config(folder, None, override({**q.YARN, **malformed}))
    assert config.max_model_len == q.WINDOW


def test_a_null_length_is_filled():
    """Config classes with checked fields refuse it; Qwen4Exp's own up to v0.31.0 not."""
    from types import SimpleNamespace

    from vllm.config import model

    config = SimpleNamespace(model_type="qwen4_exp_text", rope_parameters=q.YARN)
    config.max_position_embeddings = None
    model._widen_qwen4_exp_yarn_context(config)
    assert config.max_position_embeddings == 524288


def test_a_wider_config_is_not_narrowed(tmp_path):
    folder = q.wrapper(tmp_path, max_position_embeddings=1048576)
    override = {"text_config": {"rope_parameters": q.YARN}}
    assert q.model_config(folder, None, override).max_model_len == 1048576


def test_other_yarn_models_keep_their_length(tmp_path):
    """They state the stretched window already; so upstream's rule for them stays."""
    import json

    llama = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "vocab_size": 128,
        "max_position_embeddings": 8192,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    }
    (tmp_path / "config.json").write_text(json.dumps(llama))
    assert q.model_config(str(tmp_path)).max_model_len == 8192
