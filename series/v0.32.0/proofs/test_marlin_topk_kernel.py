# SPDX-License-Identifier: Apache-2.0
"""The MARLIN MoE kernel applies scale, bias and routing weight in fp32, in that order.

On a GPU, with the op built from the csrc/ of the tree under proof (_marlin_unit.py).
"""

import hashlib

import _gpu
import _marlin_gpu as gpu
import pytest
import torch

pytestmark = pytest.mark.gpu

# Relative Frobenius norm against float64, without and with an expert bias. One
# rounding to 16 bit gives 0.00166 (bf16) and 0.00021 (fp16).
GOAL = {
    (gpu.BF16, False): 0.0017,
    (gpu.BF16, True): 0.0024,
    (gpu.FP16, False): 0.00022,
    (gpu.FP16, True): 0.0003,
}
DTYPES = [gpu.BF16, gpu.FP16]


@pytest.fixture(scope="module", autouse=True)
def unit():
    import _marlin_unit

    _marlin_unit.load(_marlin_unit.tree())


@pytest.fixture(scope="module")
def weights():
    made = {}

    def get(*args, **kwargs):
        key = (args, tuple(kwargs.items()))
        if key not in made:
            made.clear()
            torch.cuda.empty_cache()
            made[key] = gpu.Weights(*args, **kwargs)
        return made[key]

    return get


def name(dtype):
    return str(dtype).removeprefix("torch.")


@pytest.mark.witness
@pytest.mark.parametrize("experts", [171, 512])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_rounding_is_left(weights, dtype, experts):
    worst = {False: 0.0, True: 0.0}
    for tokens in gpu.TOKENS:
        problem = gpu.Problem(weights(experts, dtype), tokens)
        if not len(problem.here):
            continue
        for block in gpu.BLOCKS:
            for bias in (False, True):
                worst[bias] = max(worst[bias], problem.error(block, bias))
    for tile in ((128, 128), (64, 128), (128, 64)):
        worst[True] = max(worst[True], problem.error(16, True, tile=tile))
    for bias, error in worst.items():
        _gpu.record(f"nvfp4 {name(dtype)} experts={experts} bias={bias}", error)
    assert worst[False] <= GOAL[dtype, False]
    assert worst[True] <= GOAL[dtype, True]


@pytest.mark.witness
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_pair_gets_its_own_weight(weights, dtype):
    """As in a first gemm with the weights on the input: ten pairs share a row."""
    worst = 0.0
    for tokens in (1, 16, 512):
        problem = gpu.Problem(weights(171, dtype), tokens, top_k=gpu.TOPK)
        if len(problem.here):
            worst = max(worst, *(problem.error(b, True) for b in gpu.BLOCKS))
    _gpu.record(f"nvfp4 {name(dtype)} top_k=10 bias=True", worst)
    assert worst <= GOAL[dtype, True]


@pytest.mark.witness
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_columns_scale_is_not_rounded_away(weights, dtype):
    """4-bit integers with one scale a column, which is applied at the end as well."""
    worst = {False: 0.0, True: 0.0}
    for tokens in (4, 64, 512):
        problem = gpu.Problem(weights(64, dtype, nvfp4=False), tokens)
        if not len(problem.here):
            continue
        for block in gpu.BLOCKS:
            for bias in worst:
                worst[bias] = max(worst[bias], problem.error(block, bias))
    for bias, error in worst.items():
        _gpu.record(f"uint4b8 a column {name(dtype)} bias={bias}", error)
    assert worst[False] <= GOAL[dtype, False] and worst[True] <= GOAL[dtype, True]


@pytest.mark.witness
def test_an_atomic_sum_is_right_but_for_its_own_roundings(weights):
    """Blocks that split a column add their parts in 16 bit; the bias comes once."""
    worst = 0.0
    for tokens in (1, 4, 16):
        problem = gpu.Problem(weights(171, gpu.BF16), tokens)
        if len(problem.here):
            for block in gpu.BLOCKS:
                worst = max(worst, problem.error(block, True, atomic=True))
    _gpu.record("nvfp4 bfloat16 atomic bias=True", worst)
    assert worst <= 0.006


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_weights_a_row_is_what_it_was(weights, dtype):
    """The first gemm of every layer. The digest is for a look at both trees."""
    digest = hashlib.sha256()
    for tokens in (1, 64):
        problem = gpu.Problem(weights(171, dtype), tokens)
        for block in gpu.BLOCKS:
            found = problem.run(block, weighted=False)[problem.here]
            digest.update(found.view(torch.int16).cpu().numpy().tobytes())
            if len(problem.here):
                assert problem.error(block, weighted=False) <= GOAL[dtype, False]
    _gpu.record(f"nvfp4 {name(dtype)} unweighted sha256", digest.hexdigest()[:16])


def test_the_op_says_so():
    assert torch.ops._moe_C.moe_wna16_marlin_fp32_epilogue() is True


def test_time(weights):
    """For the record only: a run beside others says little."""
    for tokens in (1, 16, 64, 512, 2048):
        problem = gpu.Problem(weights(171, gpu.BF16), tokens)
        block = 8 if tokens < 512 else 32
        aligned = problem.align(block)

        def gemm(problem=problem, block=block, aligned=aligned):
            problem.run(block, aligned=aligned)

        _gpu.record(f"microseconds tokens={tokens}", _gpu.microseconds(gemm))
