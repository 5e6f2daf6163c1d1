# SPDX-License-Identifier: Apache-2.0
"""YaRN's ramp over M-RoPE is Transformers' ramp, the one over plain RoPE."""

import _qwen4exp as q

# isort: split
import math

import pytest
import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.model_executor.layers.rotary_embedding import get_rope
from vllm.model_executor.layers.rotary_embedding.mrope import MRotaryEmbedding

TEXT_YARN = {k: v for k, v in q.YARN.items() if not k.startswith("mrope")}


def rope(parameters, **changes):
    with set_current_vllm_config(VllmConfig()):
        return get_rope(
            q.TEXT["head_dim"],
            2 * q.WINDOW,
            rope_parameters={**parameters, **changes},
            dtype=torch.float32,
        )


@pytest.fixture
def no_table(monkeypatch):
    """The published geometry's table takes 512 MiB; the ramp is asked for alone."""
    empty = lambda self: torch.empty(0)  # noqa: E731
    monkeypatch.setattr(MRotaryEmbedding, "_compute_cos_sin_cache", empty)


def worst(found, expected):
    """The largest relative error of a dimension."""
    return ((found.double() - expected) / expected).abs().max().item()


def frequencies(window, factor, dims=64, theta=q.THETA, fast=32, slow=1):
    """YaRN by its paper, in float64."""

    def dimension(rotations):
        angle = window / (rotations * 2 * math.pi)
        return dims * math.log(angle) / (2 * math.log(theta))

    low = max(math.floor(dimension(fast)), 0)
    high = min(math.ceil(dimension(slow)), dims - 1)
    found = []
    for i in range(dims // 2):
        keep = 1 - min(max((i - low) / (high - low), 0), 1)
        plain = theta ** (-2 * i / dims)
        found.append(plain * keep + plain / factor * (1 - keep))
    return (low, high), torch.tensor(found, dtype=torch.float64)


@pytest.mark.witness
@pytest.mark.parametrize("factor", [2.0, 4.0])
def test_the_ramp_of_the_published_geometry(no_table, factor):
    ramp, expected = frequencies(q.WINDOW, factor)
    assert ramp == (14, 22)
    found = rope(q.YARN, factor=factor)._compute_inv_freq(factor)
    assert worst(found, expected) < 2e-6


@pytest.mark.witness
def test_it_is_transformers_ramp(no_table):
    from transformers import PretrainedConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = PretrainedConfig(
        head_dim=256,
        hidden_size=2560,
        num_attention_heads=24,
        max_position_embeddings=524288,
        rope_parameters=TEXT_YARN,
    )
    expected, scale = ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")
    rotary = rope(q.YARN)
    assert worst(rotary._compute_inv_freq(2.0), expected) < 2e-6
    assert rotary.mscale == pytest.approx(scale, abs=1e-12)


@pytest.mark.witness
def test_vision_and_text_only_rotate_alike():
    """The same model with and without --language-model-only; a small window, so that
    the tables stay small."""
    small = {"original_max_position_embeddings": 2048, "rope_theta": 10000}
    vision, text = rope(q.YARN, **small), rope(TEXT_YARN, **small)
    rows = text.cos_sin_cache.shape[0]
    difference = vision.cos_sin_cache[:rows] - text.cos_sin_cache
    assert difference.abs().max() < 1e-6


def test_the_table_stays_as_long_for_video():
    small = {"original_max_position_embeddings": 2048}
    assert rope(q.YARN, **small).cos_sin_cache.shape == (4 * 2 * 2048, 64)
    assert rope(TEXT_YARN, **small).cos_sin_cache.shape == (2 * 2048, 64)


def test_without_yarn_nothing_changes():
    with set_current_vllm_config(VllmConfig()):
        rotary = get_rope(256, 1024, rope_parameters=q.ROPE, dtype=torch.float32)
    plain = q.THETA ** (-torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    found = rotary._compute_inv_freq(q.THETA).double()
    assert worst(found, plain) < 2e-6
    assert rotary.cos_sin_cache.shape == (4 * 1024, 64)


def test_plain_yarn_is_as_before():
    small = {"original_max_position_embeddings": 2048}
    _, expected = frequencies(2048, 2.0)
    found = rope(TEXT_YARN, **small)._compute_inv_freq(2.0)
    assert worst(found, expected) < 2e-6
