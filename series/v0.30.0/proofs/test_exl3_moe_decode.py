# SPDX-License-Identifier: Apache-2.0
"""EXL3 experts run on kernels of their own (in the interpreter)."""

import itertools

import _exl3_device  # noqa: F401  (before vllm)
import pytest
import torch

import _exl3 as x  # isort: skip

KINDS = ((80, "mcg"), (64, "3inst"))
EXPERTS = x.expert_weights(4, 128, 128, KINDS)


def build(experts=EXPERTS, hidden=128, inter=128, count=4, **kwargs):
    layer = x.experts_layer(experts, hidden, inter, count, **kwargs)
    list(layer.load_weights(x.expert_stream(experts)))
    layer.quant_method.process_weights_after_loading(layer)
    return layer


@pytest.fixture
def paths(monkeypatch):
    from vllm.model_executor.layers.quantization.utils import exl3_moe, exl3_triton_moe

    return x.Calls(
        monkeypatch,
        reference=(exl3_moe, "reference"),
        by_pair=(exl3_triton_moe, "by_pair"),
        grouped=(exl3_triton_moe, "grouped"),
    )


@pytest.mark.witness
@pytest.mark.parametrize("tokens", [1, 3, 17])
def test_tokens_do_not_take_the_reference(monkeypatch, tokens):
    """Up to 16 tokens go by routed pair, more by expert."""
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    layer = build()
    calls = x.Calls(monkeypatch, decode=(exl3_ref, "decode_trellis"))
    inputs, weights, ids = x.routed(tokens, 128, 4, 3)
    out = layer.forward_modular(inputs, weights, ids)
    assert calls.take() == []
    expected = x.moe(inputs, weights, ids, EXPERTS)
    assert x.relative_error(out, expected) < 4.5e-4
    if tokens == 3:
        half = layer.forward_modular(inputs.half(), weights, ids.long())
        assert half.dtype == torch.float16
        expected = x.moe(inputs.half(), weights, ids, EXPERTS)
        assert x.relative_error(half, expected) < 5e-4


@pytest.mark.witness
@pytest.mark.parametrize("tokens", [2, 20])
def test_uneven_ranks_sum_to_the_whole(monkeypatch, tokens):
    """4 experts over 3 ranks: 2, 1, 1; most pairs are another rank's."""
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    layers = [build(ep=(rank, 3)) for rank in range(3)]
    assert [layer.local_num_experts for layer in layers] == [2, 1, 1]
    calls = x.Calls(monkeypatch, decode=(exl3_ref, "decode_trellis"))
    inputs, weights, ids = x.routed(tokens, 128, 4, 2)
    total = sum(layer.forward_modular(inputs, weights, ids).double() for layer in layers)
    assert calls.take() == []
    assert x.relative_error(total, x.moe(inputs, weights, ids, EXPERTS)) < 4.5e-4


def test_a_cut_intermediate_size():
    experts = x.expert_weights(2, 128, 256, ((80, "mcg"), (40, "mul1"), (96, "3inst")))
    inputs, weights, ids = x.routed(2, 128, 2, 2)
    total = sum(
        build(experts, 128, 256, 2, tp=(rank, 4)).forward_modular(inputs, weights, ids)
        for rank in range(4)
    )
    assert x.relative_error(total, x.moe(inputs, weights, ids, experts)) < 4.5e-4


NAMES = ("KERNELS", "MOE_DECODE", "MOE_GROUPED")


@pytest.mark.parametrize("values", list(itertools.product("01", repeat=3)), ids="".join)
def test_every_switch_has_its_path(monkeypatch, paths, values):
    for name, value in zip(NAMES, values):
        monkeypatch.setenv(f"VLLM_EXL3_{name}", value)
    layer = build()
    for name in NAMES:  # read when the layer was built, not now
        monkeypatch.setenv(f"VLLM_EXL3_{name}", "1")
    for tokens, path, on in ((1, "by_pair", values[1]), (17, "grouped", values[2])):
        inputs, weights, ids = x.routed(tokens, 128, 4, 1)
        out = layer.forward_modular(inputs, weights, ids)
        kernels = values[0] == "1" and on == "1"
        assert paths.take() == [path if kernels else "reference"]
        expected = x.moe(inputs, weights, ids, EXPERTS)
        assert x.relative_error(out, expected) < 4.5e-4


def test_switches_count_for_the_compile_cache(monkeypatch):
    from vllm import envs

    for name in NAMES:
        monkeypatch.setenv(f"VLLM_EXL3_{name}", "0")
        assert envs.compile_factors()[f"VLLM_EXL3_{name}"] is False
        monkeypatch.delenv(f"VLLM_EXL3_{name}")
        assert envs.compile_factors()[f"VLLM_EXL3_{name}"] is True


def test_without_triton_and_without_tokens(monkeypatch, paths):
    from vllm.model_executor.layers.quantization.utils import exl3_triton

    layer = build()
    inputs, weights, ids = x.routed(2, 128, 4, 2)
    empty = layer.forward_modular(inputs[:0], weights[:0], ids[:0])
    assert empty.shape == (0, 128)
    monkeypatch.setattr(exl3_triton, "HAS_TRITON", False)
    layer.forward_modular(inputs, weights, ids)
    assert paths.take() == ["reference"]


@pytest.mark.parametrize("pairs, experts", [(28, 5), (3, 9), (64, 1), (40, 171)])
def test_pairs_are_grouped_by_expert(pairs, experts):
    from vllm.model_executor.layers.quantization.utils.exl3_triton_moe import group_pairs

    rng = torch.Generator().manual_seed(pairs)
    ids = torch.randint(-1, experts, (pairs,), generator=rng, dtype=torch.int32)
    row_pair, pair_row, block = group_pairs(ids, experts)
    assert row_pair.numel() == 16 * block.numel()
    for pair, expert in enumerate(ids.tolist()):
        if expert >= 0:
            row = int(pair_row[pair])
            assert row_pair[row] == pair and block[row // 16] == expert
    assert int((row_pair >= 0).sum()) == int((ids >= 0).sum())
    used = {r // 16 for r in row_pair.ge(0).nonzero().flatten().tolist()}
    assert [b for b, e in enumerate(block.tolist()) if e >= 0] == sorted(used)


def test_many_tokens_go_in_passes_that_fit(monkeypatch):
    from vllm.model_executor.layers.quantization.utils import exl3_moe, exl3_triton_moe

    stack = exl3_moe.Stack
    plan = exl3_moe.MoEPlan(512, 2560, 0, 640, stack(2560, 640, ()), stack(640, 2560, ()))
    tokens = exl3_triton_moe.tokens_a_pass(plan, 10)
    rows = 16 * (512 + -(-(tokens * 10 - 512) // 16))
    assert tokens == 230 and rows * 26880 <= 256 << 20
    sizes = []

    def run(inputs, weights, ids, experts, grouped):
        sizes.append(len(inputs))
        return inputs

    monkeypatch.setattr(exl3_triton_moe, "_run", run)
    inputs, weights, ids = x.routed(500, 16, 20, 10)
    experts = exl3_moe.Experts(plan, *[None] * 8)
    out = exl3_triton_moe.grouped(inputs, weights, ids, experts)
    assert sizes == [230, 230, 40] and torch.equal(out, inputs)


@pytest.mark.gpu
@pytest.mark.witness
def test_parity_and_capture_on_a_gpu(monkeypatch):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    layer = build().cuda()
    calls = x.Calls(monkeypatch, decode=(exl3_ref, "decode_trellis"))
    layer.forward_modular(*(t.cuda() for t in x.routed(1, 128, 4, 2)))
    assert calls.take() == []
    for tokens, dtype in itertools.product((1, 2, 7, 16, 33, 64), (torch.bfloat16, torch.float16)):
        inputs, weights, ids = x.routed(tokens, 128, 4, 2)
        inputs = inputs.to(dtype)
        args = [t.cuda() for t in (inputs, weights, ids)]
        out = layer.forward_modular(*args)
        expected = x.moe(inputs, weights, ids, EXPERTS)
        limit = 2e-3 if dtype == torch.bfloat16 else 5e-4
        assert x.relative_error(out.cpu(), expected) < limit
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = layer.forward_modular(*args)
        args[0].mul_(-2)
        args[2].copy_(3 - args[2])
        graph.replay()
        assert torch.equal(captured, layer.forward_modular(*args))
