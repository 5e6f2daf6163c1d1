# SPDX-License-Identifier: Apache-2.0
"""A checkpoint whose config.json says YaRN loads, wrapped or not."""

import pytest

import _qwen4exp as q


def load(folder, **kwargs):
    try:
        return q.model_config(folder, **kwargs)
    except AttributeError as error:
        pytest.fail(f"config.json does not load: {error}")


@pytest.mark.witness
@pytest.mark.parametrize("stated", [524288, 262144], ids=["scaled", "trained"])
def test_it_loads_with_its_yarn(tmp_path, stated):
    folder = q.wrapper(tmp_path, rope_parameters=q.YARN, max_position_embeddings=stated)
    config = load(folder)
    assert config.max_model_len == 524288
    assert config.hf_text_config.rope_parameters == q.YARN


@pytest.mark.witness
def test_the_wrapper_states_the_text_models_window(tmp_path):
    config = load(q.wrapper(tmp_path, max_position_embeddings=65536)).hf_config
    assert getattr(config, "max_position_embeddings", None) == 65536


@pytest.mark.witness
def test_a_draft_of_it_loads_too(tmp_path):
    from vllm.config.speculative import SpeculativeConfig

    folder = q.wrapper(tmp_path, rope_parameters=q.YARN, max_position_embeddings=524288)
    override = SpeculativeConfig.hf_config_override
    config = load(folder, hf_overrides=override, runner="draft")
    assert config.max_model_len == 524288
    assert config.hf_text_config.rope_parameters["rope_type"] == "yarn"


def test_text_only_did_all_along(tmp_path):
    folder = q.text_only(
        tmp_path, rope_parameters=q.YARN, max_position_embeddings=524288
    )
    assert load(folder).max_model_len == 524288


def test_without_yarn_nothing_changes(tmp_path):
    config = load(q.wrapper(tmp_path))
    assert config.max_model_len == q.WINDOW
    assert config.hf_text_config.rope_parameters == q.ROPE
