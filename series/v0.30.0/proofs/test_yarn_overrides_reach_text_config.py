# SPDX-License-Identifier: Apache-2.0
"""`rope_parameters` at the top of hf_overrides is the text model's RoPE."""

import pytest

import _qwen4exp as q

FULL = {"rope_parameters": q.YARN}


@pytest.mark.witness
def test_the_text_config_gets_it(tmp_path):
    config = q.model_config(q.wrapper(tmp_path), None, FULL)
    assert config.hf_text_config.rope_parameters == q.YARN


@pytest.mark.witness
def test_so_the_context_widens(tmp_path):
    folder = q.wrapper(tmp_path)
    try:
        config = q.model_config(folder, 524288, FULL)
    except ValueError as error:
        pytest.fail(f"max_model_len=524288 is refused: {error}")
    assert config.max_model_len == 524288


@pytest.mark.witness
def test_the_long_way_round_is_not_silently_unscaled(tmp_path, monkeypatch):
    """VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 hid it: 524288 positions, no YaRN."""
    monkeypatch.setenv("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1")
    config = q.model_config(q.wrapper(tmp_path), 524288, FULL)
    assert config.max_model_len == 524288
    assert config.hf_text_config.rope_parameters["rope_type"] == "yarn"


@pytest.mark.witness
def test_the_old_name_of_the_field_counts(tmp_path):
    """Setting it on the wrapper ends in an AttributeError, or in unscaled RoPE."""
    try:
        config = q.model_config(q.wrapper(tmp_path), None, {"rope_scaling": q.YARN})
    except AttributeError as error:
        pytest.fail(f"rope_scaling is refused: {error}")
    assert config.hf_text_config.rope_parameters == q.YARN
    assert config.max_model_len == 524288


def test_the_two_configs_share_no_dict(tmp_path):
    """What Transformers fills in on the wrapper is not the text model's."""
    config = q.model_config(q.wrapper(tmp_path), None, FULL)
    config.hf_config.rope_parameters["rope_theta"] = 1.0
    assert config.hf_text_config.rope_parameters == q.YARN


def test_the_wrapper_says_the_same(tmp_path):
    config = q.model_config(q.wrapper(tmp_path), None, FULL)
    assert config.hf_config is not config.hf_text_config
    assert config.hf_config.rope_parameters["rope_type"] == "yarn"


def test_other_dicts_stay_where_they_are_put(tmp_path):
    override = {"quantization_notes": {"a": 1}}
    config = q.model_config(q.wrapper(tmp_path), None, override)
    assert config.hf_config.quantization_notes == {"a": 1}
    assert not hasattr(config.hf_text_config, "quantization_notes")
    assert config.hf_text_config.rope_parameters == q.ROPE
