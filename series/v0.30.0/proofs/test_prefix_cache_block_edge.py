# SPDX-License-Identifier: Apache-2.0
"""A resent prompt hits as far as its state was kept, block edges included.

The real KV cache manager and the real scheduler rule that ends prefill chunks, over
Qwen4Exp's five cache groups; no model. `unit` is --prefix-match-unit.
"""

import _cpu  # noqa: F401

# isort: split
import random
from types import SimpleNamespace

import pytest
import torch
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_coordinator import KVCacheCoordinator
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
from vllm.v1.kv_cache_interface import (
    CircularBufferSpec,
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    MambaSpec,
    MLAAttentionSpec,
)
from vllm.v1.request import Request

RING = 8
DRAFTS = 2

init_none_hash(sha256)
register_all_kvcache_specs(
    SimpleNamespace(model_config=SimpleNamespace(), cache_config=SimpleNamespace())
)


def manager(block, unit, use_eagle):
    heads = {"num_kv_heads": 1, "dtype": torch.bfloat16}
    state = {
        "block_size": block,
        "mamba_cache_mode": "align",
        "num_speculative_blocks": DRAFTS if use_eagle else 0,
        "dtypes": (torch.float32,),
    }
    specs = {
        "attention": FullAttentionSpec(block_size=block, head_size=256, **heads),
        "index": MLAAttentionSpec(
            block_size=block, head_size=128, tokens_per_state=4, **heads
        ),
        "gdn": MambaSpec(shapes=((1, 1),), **state),
        "ple": MambaSpec(shapes=((1, 2),), tp_replicated=True, **state),
        "ring": CircularBufferSpec(
            block_size=RING, head_size=128, head_size_v=0, **heads
        ),
    }
    config = KVCacheConfig(
        num_blocks=4000,
        kv_cache_tensors=[],
        kv_cache_groups=[KVCacheGroupSpec([n], spec) for n, spec in specs.items()],
    )
    config.prefix_cache_retention_interval = 0  # the default of a server
    return KVCacheManager(
        config,
        max_model_len=524288,
        scheduler_block_size=block,
        hash_block_size=unit,
        enable_caching=True,
        use_eagle=use_eagle,
    )


class Server:
    def __init__(self, block, unit, use_eagle=True, chunk=8192):
        self.cache = manager(block, unit, use_eagle)
        self.unit, self.chunk = unit, chunk
        self.drafts = DRAFTS if use_eagle else 0
        partial = self.cache.coordinator.enable_partial_hash_hits
        self.scheduler = SimpleNamespace(
            block_size=block,
            cache_config=SimpleNamespace(block_size=block, mamba_block_size=block),
            use_eagle_block_drop=use_eagle,
            max_num_scheduled_tokens=chunk,
            scheduler_config=SimpleNamespace(long_prefill_token_threshold=0),
            mamba_partial_cache_hit=unit < block and partial,
            mamba_fine_grained_prefix_cache=False,
            hash_block_size=unit,
            mamba_has_prefill_checkpoint_blocks=False,
            mamba_prefill_checkpoint_alignment=None,
        )

    def prefill(self, name, tokens):
        """Run one prompt through; how many of its tokens were found in the cache."""
        request = Request(
            request_id=name,
            prompt_token_ids=list(tokens),
            sampling_params=SamplingParams(max_tokens=16),
            pooling_params=None,
            block_hasher=get_request_block_hasher(self.unit, sha256),
        )
        blocks, hit, junction = self.cache.get_computed_blocks(request)
        request.shared_prefix_boundary = junction
        found, start = hit, hit
        while start < request.num_tokens:
            count = min(request.num_tokens - start, self.chunk)
            count = Scheduler._mamba_block_aligned_split(
                self.scheduler, request, count, found
            )
            assert count > 0
            self.cache.new_step_starts()
            args = (found, blocks) if found else ()
            assert self.cache.allocate_slots(
                request, count, *args, num_lookahead_tokens=self.drafts
            )
            start += count
            request.num_computed_tokens, found = start, 0
        self.cache.free(request)
        return hit


def tokens(count, seed=1):
    return random.Random(seed).choices(range(10, 200_000), k=count)


def resend(block, unit, length, **kwargs):
    server = Server(block, unit, **kwargs)
    assert server.prefill("first", tokens(length)) == 0
    return server.prefill("again", tokens(length))


def kept(length, unit):
    """The last token is computed anew, and one unit is dropped for the draft."""
    return max((length - 1) // unit * unit - unit, 0)


@pytest.mark.witness
@pytest.mark.parametrize(
    ("block", "unit", "length"),
    [
        (1600, 80, 1700),
        (1600, 80, 3300),
        (1600, 80, 1681),
        (1600, 80, 1759),
        (2384, 16, 2384 + 20),
        (1088, 64, 3 * 1088 + 100),
    ],
)
def test_a_tail_on_a_block_edge_is_found(block, unit, length):
    assert kept(length, unit) % block == 0
    assert resend(block, unit, length) == kept(length, unit)


@pytest.mark.witness
def test_no_length_has_a_hole():
    """Every length but the multiples of a unit, whose state lies one unit higher."""
    block, unit = 32, 4
    short = {
        length: resend(block, unit, length)
        for length in range(1, 4 * block)
        if length % unit
    }
    assert short == {length: kept(length, unit) for length in short}


@pytest.mark.witness
@pytest.mark.parametrize("length", [1680, 1700])
def test_a_longer_prompt_finds_it_too(length):
    server = Server(1600, 80)
    server.prefill("first", tokens(length))
    assert server.prefill("longer", tokens(length) + tokens(900, seed=2)) == 1600


def test_without_drafts_nothing_changes():
    assert resend(1600, 80, 1700, use_eagle=False) == 1680
    assert resend(1600, 80, 1620, use_eagle=False) == 1600


def test_whole_blocks_only_nothing_changes():
    assert resend(1600, 1600, 1700) == 0
    assert resend(1600, 1600, 3300) == 1600


@pytest.mark.parametrize("use_eagle", [True, False])
def test_no_other_state_is_kept(use_eagle):
    """Retention costs a state; none is named beside what every coordinator names."""
    block, unit = 32, 4
    coordinator = manager(block, unit, use_eagle).coordinator
    for length in range(1, 4 * block):
        tail = length // unit * unit - unit
        if use_eagle and tail > 0 and tail % block == 0:
            continue  # the states that this patch is about
        request = Request(
            request_id=str(length),
            prompt_token_ids=tokens(length),
            sampling_params=SamplingParams(max_tokens=16),
            pooling_params=None,
            block_hasher=get_request_block_hasher(unit, sha256),
        )
        others = KVCacheCoordinator.get_replay_boundaries(coordinator, request)
        found = coordinator.get_replay_boundaries(request)
        assert sorted(found) == sorted(others), length


def test_a_short_prompt_has_nothing_to_keep():
    assert [resend(1600, 80, length) for length in (1, 79, 81, 159)] == [0, 0, 0, 0]
