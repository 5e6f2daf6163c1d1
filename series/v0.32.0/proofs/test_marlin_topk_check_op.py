# SPDX-License-Identifier: Apache-2.0
"""The compiled MARLIN MoE op refuses routing weights that its kernel would misread.

On a GPU, with the op built from the csrc/ of the tree under proof (_marlin_unit.py).
The op is called directly, past the checks of vLLM's Python.
"""

import _marlin_gpu as gpu
import pytest
import torch
from test_marlin_topk_kernel import unit  # noqa: F401

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def problem(unit):  # noqa: F811
    return gpu.Problem(gpu.Weights(32, gpu.BF16), tokens=64)


def run(problem, weights, **kwargs):
    problem.run(8, topk_weights=weights, **kwargs)
    torch.cuda.synchronize()


def test_good_weights_pass(problem):
    run(problem, problem.topk_weights)
    run(problem, torch.ones(65, gpu.TOPK, device="cuda"))
    assert problem.error(8) <= 0.003


@pytest.mark.witness
@pytest.mark.parametrize("dtype", [gpu.BF16, gpu.FP16, torch.float64])
def test_another_type_is_refused(problem, dtype):
    with pytest.raises(RuntimeError, match="topk_weights must be float32"):
        run(problem, problem.topk_weights.to(dtype))


@pytest.mark.witness
def test_strides_are_refused(problem):
    strided = torch.rand(64, 2 * gpu.TOPK, device="cuda")[:, ::2]
    with pytest.raises(RuntimeError, match="topk_weights is not contiguous"):
        run(problem, strided)


@pytest.mark.witness
def test_host_memory_is_refused(problem):
    """Pinned, so that a kernel without the check can read it."""
    pinned = problem.topk_weights.cpu().pin_memory()
    with pytest.raises(RuntimeError, match="topk_weights is not on the device of A"):
        run(problem, pinned)


@pytest.mark.witness
def test_too_few_are_refused(problem):
    short = problem.topk_weights.flatten()[:639].contiguous()
    with pytest.raises(RuntimeError, match="639 is below size_m \\* top_k = 640"):
        run(problem, short)


def test_weights_that_are_not_read_are_not_checked(problem):
    run(problem, problem.topk_weights.to(gpu.BF16), weighted=False)
    run(problem, problem.topk_weights.flatten()[:1].contiguous(), weighted=False)
