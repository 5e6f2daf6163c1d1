# SPDX-License-Identifier: Apache-2.0
"""EXL3 linear layers of few rows run on kernels of their own (in the interpreter)."""

import itertools

import _exl3_device  # noqa: F401  (before vllm)
import pytest
import torch

import _exl3 as x  # isort: skip

Q = x.weight(256, 256, 80, "mcg", seed=1)
K = x.weight(256, 128, 80, "mcg", seed=2)
V = x.weight(256, 128, 40, "mul1", seed=3)


def qkv(monkeypatch):
    return x.linear_layer(
        monkeypatch,
        "QKVParallelLinear",
        (256, 128, 2, 1),
        {f"m.{n}_proj": t for n, t in zip("qkv", (Q, K, V))},
        [("q", Q), ("k", K), ("v", V)],
        prefix="m.qkv_proj",
    )


def dense(inputs):
    return torch.cat([inputs.double() @ x.dense(t) for t in (Q, K, V)], 1)


def inputs(rows, size=256):
    return torch.randn(rows, size, generator=torch.Generator().manual_seed(rows))


@pytest.fixture
def paths(monkeypatch):
    """The functions of each path, recorded."""
    from vllm.model_executor.layers.quantization.utils import (
        exl3_linear,
        exl3_ref,
        exl3_triton,
    )

    return x.Calls(
        monkeypatch,
        reference=(exl3_ref, "linear"),
        gemv=(exl3_triton, "gemv"),
        kernel_in=(exl3_triton, "rotate_in"),
        kernel_out=(exl3_triton, "rotate_out"),
        torch_in=(exl3_linear, "_rotate_in"),
        torch_out=(exl3_linear, "_rotate_out"),
    )


@pytest.mark.witness
@pytest.mark.parametrize("rows", [1, 3, 17])
def test_few_rows_do_not_take_the_reference(monkeypatch, rows):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    layer = qkv(monkeypatch)
    calls = x.Calls(monkeypatch, decode=(exl3_ref, "decode_trellis"))
    out = layer(inputs(rows))
    assert calls.take() == []
    assert out.shape == (rows, 512)
    assert x.relative_error(out, dense(inputs(rows))) < 3e-4
    if rows == 3:
        half = layer(inputs(rows).half())
        assert half.dtype == torch.float16
        assert x.relative_error(half, dense(inputs(rows).half())) < 5e-4


@pytest.mark.parametrize("words, codebook", x.RATES)
def test_the_kernel_decodes_bit_for_bit(words, codebook):
    from vllm.model_executor.layers.quantization.utils import exl3_ref, exl3_triton

    trellis = x.weight(128, 256, words, codebook)["trellis"]
    index = exl3_ref.CODEBOOKS.index(codebook)
    block = 4 * words
    table = torch.tensor([(0, 2 * block, 0), (block, 2 * block, 0)])
    out = torch.zeros(128, 256, dtype=torch.float16)
    # The second block alone: the first stays as it was.
    exl3_triton.dequant(trellis.flatten(), table, 1, 1, 1, words, index, out[:, 128:])
    expected = exl3_ref.decode_trellis(trellis, codebook)
    assert torch.equal(out[:, 128:].view(torch.int16), expected[:, 128:].view(torch.int16))
    assert not out[:, :128].any()


@pytest.mark.parametrize("words, codebook", [(128, "3inst"), (112, "mcg"), (56, "mul1")])
def test_a_cut_layer_of_other_rates(monkeypatch, words, codebook):
    """Rows from the middle of a block on, to the middle of another."""
    down = x.weight(640, 128, words, codebook, seed=9)
    layer = x.linear_layer(
        monkeypatch,
        "RowParallelLinear",
        (640, 128),
        {"m.down_proj": down},
        [(None, down)],
        1,
        2,
        "m.down_proj",
    )
    mine = inputs(2, 640)[:, 320:]
    out = layer(mine.contiguous())
    expected = mine.double() @ x.dense(down)[320:]
    assert x.relative_error(out, expected) < 3e-4


def test_no_input_is_too_large_or_too_small(monkeypatch):
    layer = qkv(monkeypatch)
    rows = inputs(3) * torch.tensor([1e9, 1e-9, 0.0]).unsqueeze(1)
    out = layer(rows)
    expected = dense(rows)
    for i in (0, 1):
        assert x.relative_error(out[i], expected[i]) < 3e-4
    assert not out[2].any()
    assert layer(rows[:0]).shape == (0, 512)


NAMES = ("KERNELS", "LINEAR_GEMV", "FUSED_HADAMARD")


@pytest.mark.parametrize("values", list(itertools.product("01", repeat=3)), ids="".join)
def test_every_switch_has_its_path(monkeypatch, paths, values):
    for name, value in zip(NAMES, values):
        monkeypatch.setenv(f"VLLM_EXL3_{name}", value)
    layer = qkv(monkeypatch)
    for name in NAMES:  # read when the layer was built, not now
        monkeypatch.setenv(f"VLLM_EXL3_{name}", "1")
    rows = inputs(2)
    out = layer(rows)
    assert x.relative_error(out, dense(rows)) < 3e-4
    if values[0] == "0" or values[1] == "0":
        assert paths.take() == ["reference"]
    elif values[2] == "0":
        assert paths.take() == ["gemv", "torch_in", "torch_out"]
    else:
        assert paths.take() == ["gemv", "kernel_in", "kernel_out"]


def test_more_rows_than_the_kernel_takes_go_elsewhere(monkeypatch, paths):
    from vllm.model_executor.layers.quantization.utils import exl3_linear

    layer = qkv(monkeypatch)
    layer(inputs(2))
    assert "gemv" in paths.take()
    monkeypatch.setattr(exl3_linear, "MAX_GEMV_ROWS", 1)
    layer(inputs(2))
    assert "gemv" not in paths.take()


def test_without_triton_the_reference_runs(monkeypatch, paths):
    from vllm.model_executor.layers.quantization.utils import exl3_triton

    monkeypatch.setattr(exl3_triton, "HAS_TRITON", False)
    rows = inputs(2)
    assert x.relative_error(qkv(monkeypatch)(rows), dense(rows)) < 1e-5
    assert paths.take() == ["reference"]


def test_switches_count_for_the_compile_cache(monkeypatch):
    from vllm import envs

    for name in NAMES:
        monkeypatch.setenv(f"VLLM_EXL3_{name}", "0")
        assert envs.compile_factors()[f"VLLM_EXL3_{name}"] is False
        monkeypatch.delenv(f"VLLM_EXL3_{name}")
        assert envs.compile_factors()[f"VLLM_EXL3_{name}"] is True


def test_splits_cover_every_block_once():
    from vllm.model_executor.layers.quantization.utils.exl3_triton import choose_splits

    for programs, blocks, rows in itertools.product((1, 7, 40, 272, 5000), range(1, 45), (1, 16, 64)):
        splits, each = choose_splits(programs, blocks, torch.device("cpu"), rows)
        assert (splits - 1) * each < blocks <= splits * each


@pytest.mark.gpu
@pytest.mark.witness
def test_parity_and_capture_on_a_gpu(monkeypatch):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    layer = qkv(monkeypatch).cuda()
    calls = x.Calls(monkeypatch, decode=(exl3_ref, "decode_trellis"))
    layer(inputs(1).cuda())
    assert calls.take() == []
    for rows, dtype in itertools.product((1, 2, 7, 16, 33, 64), (torch.bfloat16, torch.float16)):
        batch = inputs(rows).to(dtype).cuda()
        out = layer(batch)
        limit = 2e-3 if dtype == torch.bfloat16 else 5e-4
        assert x.relative_error(out.cpu(), dense(batch.cpu())) < limit
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = layer(batch)
        batch.mul_(-2)
        graph.replay()
        assert torch.equal(captured, layer(batch))
