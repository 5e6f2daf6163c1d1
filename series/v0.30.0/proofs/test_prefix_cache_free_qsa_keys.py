# SPDX-License-Identifier: Apache-2.0
"""Clearing a QSA key cache's kv_cache frees its memory."""

import _cpu  # noqa: F401

# isort: split
import gc
from types import SimpleNamespace as Names

import pytest
import torch
from vllm.models.qwen4_exp.common.qsa_cache import QSAKeyStateCache

KEY, BLOCKS, RING = 128, 16, 8
POSITIONS = 3 * 4  # three int64 beside the key, in units of bf16


def bound(positions):
    context = Names(static_forward_context={})
    cache = QSAKeyStateCache(
        head_size=KEY,
        dtype=torch.bfloat16,
        cache_rope_positions=positions,
        prefix="layer",
        compress_ratio=4,
        cache_config=Names(block_size=64),
        vllm_config=Names(compilation_config=context),
    )
    width = KEY + (POSITIONS if positions else 0)
    storage = torch.zeros(BLOCKS, 1, RING, width, dtype=torch.bfloat16)
    cache.bind_kv_cache(storage)
    return cache, storage


def tensors_over(address):
    gc.collect()
    return [
        found
        for found in gc.get_objects()
        if type(found) is torch.Tensor and found.untyped_storage().data_ptr() == address
    ]


@pytest.mark.witness
@pytest.mark.parametrize("positions", [True, False])
def test_nothing_keeps_the_storage(positions):
    cache, storage = bound(positions)
    address = storage.untyped_storage().data_ptr()
    # A forward pass looks at the views, and does not keep them.
    assert cache.key_cache.shape == (BLOCKS, RING, 1, KEY)
    assert (cache.rope_position_cache is not None) is positions
    del storage
    cache.kv_cache = torch.tensor([])
    assert tensors_over(address) == []


@pytest.mark.witness
def test_the_views_follow_a_new_cache():
    """As when the profiling cache is replaced by the real one, in the same field."""
    cache, _ = bound(True)
    cache.kv_cache = torch.ones_like(cache.kv_cache)
    assert cache.key_cache.min() == 1
    assert cache.rope_position_cache.min() > 0


def test_the_views_show_key_and_positions():
    cache, storage = bound(True)
    storage[3, 0, 5, :KEY] = 2.0
    storage[3, 0, 5, KEY:] = torch.tensor([7, 8, 2**40]).view(torch.bfloat16)
    assert cache.key_cache.shape == (BLOCKS, RING, 1, KEY)
    assert cache.key_cache[3, 5, 0].tolist() == [2.0] * KEY
    assert cache.key_cache.data_ptr() == storage.data_ptr()
    assert cache.rope_position_cache.dtype == torch.int64
    assert cache.rope_position_cache[3, 5, 0].tolist() == [7, 8, 2**40]
    assert cache.rope_position_cache[2].abs().max() == 0


def test_without_positions_there_is_no_such_view():
    assert bound(False)[0].rope_position_cache is None
