# SPDX-License-Identifier: Apache-2.0
"""Routing weights are applied in fp32, in the sum over a token's experts.

vLLM's own `fused_marlin_moe` and its callers. On a CPU over ops that round as
v0.30.0's kernel does, with the new sum's Triton kernel in the interpreter; on a GPU
over the ops of the tree under proof (_marlin_unit.py).
"""

import ast
import inspect
from types import SimpleNamespace as Names

import _gpu

if _gpu.HERE:
    import _marlin_gpu as gpu
else:
    import _marlin_cpu as cpu
import pytest
import torch
import vllm.envs as envs
import vllm.model_executor.layers.fused_moe.experts.marlin_moe as marlin
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.scalar_type import scalar_types

GLOBAL, LOCAL, TOPK, HIDDEN, WIDTH = 12, 5, 4, 256, 64
BF16, FP16 = torch.bfloat16, torch.float16
FP4 = scalar_types.float4_e2m1f.id
UNSET = (
    *("a1_gscale", "a2_gscale", "g1_alphas", "g2_alphas", "w1_bias", "w2_bias"),
    *("w1_zp", "w2_zp", "gemm1_alpha", "gemm1_beta", "gemm1_clamp_limit"),
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Each test finds the ops of an unpatched wheel and no variable set."""
    monkeypatch.delenv("VLLM_MARLIN_MOE_TOPK_FP32", raising=False)
    if not _gpu.HERE:
        nothing = torch.empty(0)
        monkeypatch.setattr(marlin, "marlin_make_workspace_new", lambda *a: nothing)
        cpu.CALLS.clear()
    _forget_the_marker()
    yield
    _forget_the_marker()


def _forget_the_marker():
    if (known := getattr(marlin, "_kernel_weighs_in_fp32", None)) is not None:
        known.cache_clear()


@pytest.fixture
def marked():
    """An op library that says it applies the weights in fp32 itself."""
    marker = torch.library.Library("_moe_C", "FRAGMENT")
    marker.define("moe_wna16_marlin_fp32_epilogue() -> bool")
    yield
    marker._destroy()


def routing(tokens, ep, seed=1):
    """Softmax top-k of `tokens`; under `ep` this rank has the first LOCAL experts."""
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(tokens, GLOBAL, generator=random)
    weights, ids = logits.softmax(-1).topk(TOPK)
    weights = weights / weights.sum(-1, keepdim=True)
    expert_map = None
    if ep:
        expert_map = torch.full((GLOBAL,), -1, dtype=torch.int32)
        expert_map[:LOCAL] = torch.arange(LOCAL, dtype=torch.int32)
    return weights, ids.int(), expert_map


def run(dtype, bias, ep=False, tokens=24, on_input=False, **kwargs):
    """(error of a layer's output against float64, the output)"""
    weights, ids, expert_map = routing(tokens, ep)
    experts = LOCAL if ep else GLOBAL
    layer = cpu.Layer(dtype, experts, HIDDEN, WIDTH, bias)
    rows = torch.randn(tokens * TOPK, WIDTH, generator=torch.manual_seed(2)).to(dtype)
    # What no one wrote must not be read: rows of other ranks' experts.
    cache = torch.full((tokens * TOPK * HIDDEN,), float("nan"), dtype=dtype)
    found = torch.empty(tokens, HIDDEN, dtype=dtype)
    marlin.fused_marlin_moe(
        torch.zeros(tokens, HIDDEN, dtype=dtype),
        layer.w1,
        layer.w2,
        None,
        layer.bias,
        layer.block_scale,
        layer.block_scale,
        weights,
        ids,
        FP4,
        apply_router_weight_on_input=on_input,
        global_num_experts=GLOBAL,
        activation=MoEActivation.SILU,
        activation_func=layer.activation(rows),
        expert_map=expert_map,
        global_scale1=layer.global_scale,
        global_scale2=layer.global_scale,
        intermediate_cache13=cache,
        output=found,
        **kwargs,
    )
    local = ids if expert_map is None else expert_map[ids.long()]
    if on_input:
        weights = torch.ones_like(weights)
    return cpu.error(found, layer.output(rows, local, weights)), found


# Two roundings are left: of the gemm's row, and of the sum.
LIMIT = {BF16: 0.0026, FP16: 0.00033}


@pytest.mark.witness
@pytest.mark.parametrize("ep", [False, True])
@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_a_weight_is_not_rounded(dtype, ep):
    found, output = run(dtype, bias=False, ep=ep)
    assert output.isfinite().all()
    assert found <= LIMIT[dtype]


@pytest.mark.witness
@pytest.mark.parametrize("ep", [False, True])
@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_a_bias_has_its_place(dtype, ep):
    found, _ = run(dtype, bias=True, ep=ep)
    assert (
        found <= 1.25 * LIMIT[dtype]
    )  # one rounding more: the bias is added in 16 bit


@pytest.mark.witness
def test_the_experts_class_does_so(monkeypatch):
    """MarlinExperts.apply, which brings a sum of its own."""
    sums = []
    real = marlin.fused_marlin_moe
    monkeypatch.setattr(
        marlin, "fused_marlin_moe", lambda **k: sums.append(k["moe_sum"])
    )
    experts = marlin.MarlinExperts.__new__(marlin.MarlinExperts)
    experts.quant_config = Names(
        **dict.fromkeys(UNSET),
        w1_scale=0,
        w2_scale=0,
        use_int4_w4a16=False,
        use_int8_w8a16=False,
        use_mxfp4_w4a16=False,
        use_nvfp4_w4a16=True,
    )
    experts._lora_context, experts.input_dtype = None, None
    experts.activation_config = None
    x = torch.zeros(2, HIDDEN, dtype=BF16)
    experts.apply(
        x, x, None, None, None, None, MoEActivation.SILU, GLOBAL, None, None, None,
        None, None, None, False,
    )  # fmt: skip
    monkeypatch.setattr(marlin, "fused_marlin_moe", real)
    assert run(BF16, bias=True, moe_sum=sums[0])[0] <= 1.25 * LIMIT[BF16]


@pytest.mark.witness
def test_the_batched_layout_has_its_bias_in_place():
    """No weights there, but the same misplaced bias."""
    layer = cpu.Layer(BF16, 4, HIDDEN, WIDTH, bias=True)
    rows = torch.randn(4 * 8, WIDTH, generator=torch.manual_seed(2)).to(BF16)
    found = marlin.batched_fused_marlin_moe(
        torch.zeros(4, 8, HIDDEN, dtype=BF16),
        torch.tensor([8, 8, 8, 8], dtype=torch.int32),
        layer.w1,
        layer.w2,
        None,
        layer.bias,
        layer.block_scale,
        layer.block_scale,
        FP4,
        global_scale1=layer.global_scale,
        global_scale2=layer.global_scale,
        activation_func=layer.activation(rows),
    )
    expert = torch.arange(4).repeat_interleave(8).unsqueeze(-1)
    expected = layer.output(rows, expert, torch.ones(32, 1))
    assert cpu.error(found.reshape(32, HIDDEN), expected) <= 0.0026


def test_a_kernel_that_says_so_keeps_the_weights(marked):
    """`auto` leaves them to a kernel with the fp32 epilogue."""
    run(BF16, bias=False)
    assert [call["mul"] for call in cpu.CALLS] == [False, True]


@pytest.mark.witness
def test_the_switch(monkeypatch, marked):
    for value, by_kernel in (("1", False), ("0", True)):
        monkeypatch.setenv("VLLM_MARLIN_MOE_TOPK_FP32", value)
        cpu.CALLS.clear()
        found, _ = run(BF16, bias=False)
        assert cpu.CALLS[1]["mul"] is by_kernel
        assert (found <= LIMIT[BF16]) is (not by_kernel)
    monkeypatch.setenv("VLLM_MARLIN_MOE_TOPK_FP32", "yes")
    with pytest.raises(ValueError, match="VLLM_MARLIN_MOE_TOPK_FP32"):
        run(BF16, bias=False)


def test_type_checkers_are_told_the_same_default():
    """envs.py says it twice: to them, and to the process."""
    name = "VLLM_MARLIN_MOE_TOPK_FP32"
    declared = [
        (ast.unparse(node.annotation), ast.literal_eval(node.value))
        for node in ast.walk(ast.parse(inspect.getsource(envs)))
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name
    ]
    assert declared == [("Literal['auto', '0', '1']", "auto")]
    assert envs.environment_variables[name]() == "auto"
    assert name in envs.compile_factors()


def test_weights_on_the_input_are_applied_once():
    found, _ = run(BF16, bias=False, on_input=True)
    assert [call["mul"] for call in cpu.CALLS] == [True, False]
    assert found <= LIMIT[BF16]


def test_a_callers_own_sum_still_gets_weighted_rows():
    """LoRA adds its part to rows that are weighted already."""
    seen = []

    def own_sum(rows, output, ids, expert_map):
        seen.append(rows.clone())
        return output.copy_(rows.float().sum(1))

    found, _ = run(BF16, bias=False, moe_sum=own_sum)
    assert seen and cpu.CALLS[1]["mul"] is True
    assert found <= 0.004


def test_the_sum():
    from vllm.model_executor.layers.fused_moe.topk_weighted_sum import topk_weighted_sum

    random = torch.Generator().manual_seed(4)
    for hidden, dtype, index in ((1100, BF16, torch.int32), (96, FP16, torch.int64)):
        rows = torch.randn(7, 10, hidden, generator=random).to(dtype)
        strided = torch.rand(7, 20, generator=random)[:, ::2]
        # Column by column in memory, with a gap behind each column and room behind
        # all of them.
        ids = torch.zeros(40, 9, dtype=index)[:10, :7].t()
        ids.copy_(torch.randint(0, GLOBAL, (7, 10), generator=random))
        assert ids.stride() == (1, 9)
        ids[3, 4] = -1
        expert_map = torch.tensor([0, -1, 1, -1, 2, 3, -1, 4, -1, 5, 6, -1]).int()
        for mapping in (None, expert_map):
            local = ids if mapping is None else mapping[ids.clamp_min(0).long()]
            here = ((ids >= 0) & (local >= 0)).contiguous()
            given = torch.where(here.unsqueeze(-1), rows, float("nan"))
            exact = torch.where(here.unsqueeze(-1), rows.double(), 0)
            exact = (exact * strided.double().unsqueeze(-1)).sum(1)
            found = topk_weighted_sum(
                given, strided, ids, mapping, torch.empty(7, hidden, dtype=dtype)
            )
            ulp = torch.finfo(dtype).eps * exact.abs().clamp_min(1e-4)
            assert ((found.double() - exact).abs() <= ulp).all()
    nothing = torch.empty(0, 4, 64, dtype=BF16)
    empty = topk_weighted_sum(
        nothing, torch.empty(0, 4), torch.empty(0, 4).int(), None, nothing[:, 0]
    )
    assert empty.shape == (0, 64)


class OnGpu:
    """Layers of the model's shape, through the compiled ops."""

    def __init__(self, experts, dtype):
        import _marlin_unit

        if not hasattr(torch.ops._moe_C, "moe_wna16_marlin_gemm"):
            _marlin_unit.load(_marlin_unit.tree())
        self.down = gpu.Weights(experts, dtype)
        self.up = gpu.Weights(
            experts, dtype, columns=2 * gpu.WIDTH, depth=gpu.HIDDEN, seed=7
        )

    def problem(self, tokens):
        return gpu.Problem(self.down, tokens)

    def run(self, problem, bias):
        up, down = self.up, self.down
        x = torch.ones(problem.tokens, gpu.HIDDEN, dtype=down.dtype, device="cuda")
        output = torch.empty_like(x)
        marlin.fused_marlin_moe(
            x,
            up.packed,
            down.packed,
            None,
            down.packed_bias if bias else None,
            up.scales,
            down.scales,
            problem.topk_weights,
            problem.ids,
            FP4,
            global_num_experts=gpu.GLOBAL,
            activation_func=lambda kind, out, given, **kwargs: out.copy_(problem.x),
            expert_map=problem.expert_map,
            global_scale1=up.global_scale,
            global_scale2=down.global_scale,
            workspace=gpu.workspace(),
            output=output,
        )
        return output

    def error(self, problem, bias):
        exact = torch.zeros_like(problem.exact)
        exact[problem.here] = problem.expected(bias, weighted=True)
        exact = exact.view(problem.tokens, gpu.TOPK, -1).sum(1)
        difference = self.run(problem, bias).double() - exact
        return float(difference.norm() / exact.norm())


@pytest.mark.gpu
@pytest.mark.witness
@pytest.mark.parametrize("experts", [171, 512])
@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_a_layer_on_a_gpu(dtype, experts):
    layer = OnGpu(experts, dtype)
    worst = {False: 0.0, True: 0.0}
    for tokens in gpu.TOKENS:
        problem = layer.problem(tokens)
        if not len(problem.here):
            continue
        for bias in worst:
            worst[bias] = max(worst[bias], layer.error(problem, bias))
    name = str(dtype).removeprefix("torch.")
    for bias, error in worst.items():
        _gpu.record(f"layer {name} experts={experts} bias={bias}", error)
    assert worst[False] <= LIMIT[dtype]
    assert worst[True] <= 1.25 * LIMIT[dtype]


@pytest.mark.gpu
def test_the_sums_time():
    from vllm.model_executor.layers.fused_moe.topk_weighted_sum import topk_weighted_sum

    layer = OnGpu(171, BF16)
    for tokens in (1, 16, 64, 512, 2048):
        problem = layer.problem(tokens)
        rows = torch.randn(tokens, gpu.TOPK, gpu.HIDDEN, device="cuda", dtype=BF16)
        output = torch.empty(tokens, gpu.HIDDEN, device="cuda", dtype=BF16)
        routed = (problem.ids, problem.expert_map)

        def weighted(rows=rows, problem=problem, routed=routed, output=output):
            topk_weighted_sum(rows, problem.topk_weights, *routed, output)

        def plain(rows=rows, routed=routed, output=output):
            torch.ops._moe_C.moe_sum(rows, output, *routed)

        for function in (weighted, plain):
            name = f"microseconds {function.__name__} sum tokens={tokens}"
            _gpu.record(name, _gpu.microseconds(function))
