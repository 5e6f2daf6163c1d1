# SPDX-License-Identifier: Apache-2.0
"""The MARLIN MoE op refuses routing weights that its kernel would misread."""

import _marlin_cpu as cpu
import pytest
import torch
import vllm._custom_ops as ops
from vllm.scalar_type import scalar_types

TOKENS, TOPK, HIDDEN, WIDTH = 4, 3, 32, 32


def call(weights, mul=True, size_m=TOKENS * TOPK, top_k=1):
    """A gemm over 4 tokens of 3 experts each, with these weights."""
    layer = cpu.Layer(torch.bfloat16, 6, HIDDEN, WIDTH, bias=False)
    block = 8
    sorted_ids = torch.full((48,), TOKENS * TOPK, dtype=torch.int32)
    sorted_ids[:8] = torch.arange(8)
    sorted_ids[8:12] = torch.arange(8, 12)
    return ops.moe_wna16_marlin_gemm(
        torch.ones(size_m, WIDTH, dtype=torch.bfloat16),
        torch.empty(size_m * top_k, HIDDEN, dtype=torch.bfloat16),
        layer.w2,
        None,
        layer.block_scale,
        None,
        layer.global_scale,
        None,
        torch.empty(0),
        sorted_ids,
        torch.zeros(6, dtype=torch.int32),
        torch.tensor([16], dtype=torch.int32),
        weights,
        moe_block_size=block,
        top_k=top_k,
        mul_topk_weights=mul,
        b_q_type=scalar_types.float4_e2m1f,
        size_m=size_m,
        size_n=HIDDEN,
        size_k=WIDTH,
        use_atomic_add=False,
        use_fp32_reduce=True,
        is_zp_float=False,
    )


GOOD = torch.rand(TOKENS, TOPK)


def test_good_weights_pass():
    cpu.CALLS.clear()
    call(GOOD)
    call(GOOD, size_m=TOKENS, top_k=TOPK)
    call(torch.rand(TOKENS + 1, TOPK))  # longer than needed
    assert [c["mul"] for c in cpu.CALLS] == [True] * 3


@pytest.mark.witness
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_another_type_is_refused(dtype):
    with pytest.raises(TypeError, match=f"must be float32, got {dtype}"):
        call(GOOD.to(dtype))


@pytest.mark.witness
def test_strides_are_refused():
    with pytest.raises(ValueError, match="must be contiguous"):
        call(torch.rand(TOKENS, 2 * TOPK)[:, ::2])


@pytest.mark.witness
@pytest.mark.parametrize("shape", [{}, {"size_m": TOKENS, "top_k": TOPK}])
def test_too_few_are_refused(shape):
    with pytest.raises(ValueError, match=r"size_m \* top_k = 12 values, got 11"):
        call(GOOD.flatten()[:11], **shape)


@pytest.mark.witness
def test_another_device_is_refused():
    with pytest.raises(ValueError, match="must be on cpu, got meta"):
        try:
            call(GOOD.to("meta"))
        except (NotImplementedError, TypeError) as error:
            if "topk_weights" in str(error):
                raise
            pytest.fail(f"the weights reached the op: {error}")


def test_weights_that_are_not_read_are_not_checked():
    cpu.CALLS.clear()
    for unused in (GOOD.bfloat16(), GOOD.flatten()[:1], torch.rand(4, 6)[:, ::2]):
        call(unused, mul=False)
    assert len(cpu.CALLS) == 3
