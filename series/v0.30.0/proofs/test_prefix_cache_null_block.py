# SPDX-License-Identifier: Apache-2.0
"""No QSA ring slot lies in block 0, the null block that all cache groups share.

The real metadata kernel, in Triton's interpreter, and the torch path beside it.
"""

import _cpu

_cpu.triton_interpreter()

from types import SimpleNamespace as Names  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
import vllm.models.qwen4_exp.common.qsa_cache as qsa  # noqa: E402
from vllm.v1.attention.backend import CommonAttentionMetadata  # noqa: E402
from vllm.v1.kv_cache_interface import CircularBufferSpec  # noqa: E402

RING = 8


def ring_slots(table, lengths):
    """One decode step of requests with these lengths, through the builder."""
    count = len(lengths)
    config = Names(
        scheduler_config=Names(max_num_batched_tokens=64, max_num_seqs=8),
        speculative_config=None,
        parallel_config=Names(decode_context_parallel_size=1),
        num_speculative_tokens=0,
    )
    spec = CircularBufferSpec(
        block_size=RING,
        num_kv_heads=1,
        head_size=8,
        head_size_v=0,
        dtype=torch.bfloat16,
    )
    builder = qsa.QSAMetadataBuilder(spec, ["ring"], config, torch.device("cpu"))
    starts = torch.arange(count + 1, dtype=torch.int32)
    common = CommonAttentionMetadata(
        query_start_loc=starts,
        query_start_loc_cpu=starts.clone(),
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
        num_reqs=count,
        num_actual_tokens=count,
        max_query_len=1,
        max_seq_len=64,
        block_table_tensor=torch.tensor(table, dtype=torch.int32),
        slot_mapping=torch.arange(count),
    )
    return builder.build(0, common).slot_mapping.tolist()


def torch_slots(table, lengths):
    return qsa.circular_qsa_slot_mapping(
        torch.tensor(table, dtype=torch.int32),
        torch.arange(len(lengths)),
        torch.tensor(lengths) - 1,
        RING,
    ).tolist()


both = pytest.mark.parametrize("slots", [ring_slots, torch_slots])


@both
@pytest.mark.witness
def test_a_row_without_a_block_is_not_written(slots):
    """A dummy or padding request owns no ring: its table row is zero."""
    assert slots([[0], [3]], [6, 6]) == [-1, 3 * RING + 5]


@both
@pytest.mark.witness
def test_a_batch_of_dummies_writes_nothing(slots):
    assert slots([[0]] * 5, [1, 2, 8, 9, 64]) == [-1] * 5


@both
def test_the_other_blocks_are_as_before(slots):
    assert slots([[1], [2], [7]], [1, 9, 24]) == [RING, 2 * RING, 7 * RING + 7]


@both
def test_a_missing_block_is_still_not_written(slots):
    assert slots([[-1], [1]], [1, 1]) == [-1, RING]
