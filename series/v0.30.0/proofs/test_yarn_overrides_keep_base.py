# SPDX-License-Identifier: Apache-2.0
"""An override that names only the YaRN fields keeps the model's other RoPE fields."""

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
