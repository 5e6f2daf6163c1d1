# SPDX-License-Identifier: Apache-2.0
"""EXL3 linear layers of many rows: columns decoded in chunks, and multiplied."""

import itertools

import _exl3_device as device
import pytest
import torch

import _cpu  # isort: skip
import _exl3 as x  # isort: skip

if not device.GPU:
    _cpu.interpreter_like_a_gpu()

Q = x.weight(256, 384, 80, "mcg", seed=1)
K = x.weight(256, 128, 80, "mcg", seed=2)
V = x.weight(256, 128, 40, "mul1", seed=3)


def qkv(monkeypatch):
    return x.linear_layer(
        monkeypatch,
        "QKVParallelLinear",
        (256, 128, 3, 1),
        {f"m.{n}_proj": t for n, t in zip("qkv", (Q, K, V))},
        [("q", Q), ("k", K), ("v", V)],
        prefix="m.qkv_proj",
    )


def dense(inputs):
    return torch.cat([inputs.double() @ x.dense(t) for t in (Q, K, V)], 1)


def inputs(rows, size=256):
    return torch.randn(rows, size, generator=torch.Generator().manual_seed(rows))


@pytest.fixture
def three_are_many(monkeypatch):
    """The interpreter is slow: let three rows be more than the GEMV takes."""
    from vllm.model_executor.layers.quantization.utils import exl3_linear

    monkeypatch.setattr(exl3_linear, "MAX_GEMV_ROWS", 2)


@pytest.mark.witness
def test_many_rows_do_not_take_the_reference(monkeypatch):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    layer = qkv(monkeypatch)
    calls = x.Calls(monkeypatch, decode=(exl3_ref, "decode_trellis"))
    out = layer(inputs(65))
    assert calls.take() == []
    assert out.shape == (65, 640)
    assert x.relative_error(out, dense(inputs(65))) < 3e-4


@pytest.mark.usefixtures("three_are_many")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_models_type_comes_out(monkeypatch, dtype):
    rows = inputs(3).to(dtype)
    out = qkv(monkeypatch)(rows)
    assert out.dtype == dtype
    limit = 2e-3 if dtype == torch.bfloat16 else 5e-4
    assert x.relative_error(out, dense(rows)) < limit


@pytest.mark.usefixtures("three_are_many")
@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_the_workspace_holds_what_it_may(monkeypatch, blocks):
    """Chunks end inside a part, at its end, and hold two parts; whatever they are,
    the result is the same."""
    from vllm.model_executor.layers.quantization.utils import exl3_linear

    layer = qkv(monkeypatch)
    whole = layer(inputs(3))
    limit = blocks * 256 * 128 * 2
    monkeypatch.setattr(exl3_linear, "WORKSPACE", limit + 100)
    sizes = []
    product = exl3_linear._product

    def recording(rows, decoded):
        assert rows.dtype == decoded.dtype == torch.float16
        result = product(rows, decoded)
        assert result.dtype == torch.float32
        sizes.append(decoded.shape[1])
        held = decoded.untyped_storage().nbytes(), result.untyped_storage().nbytes()
        assert max(held) <= limit
        return result

    monkeypatch.setattr(exl3_linear, "_product", recording)
    assert torch.equal(layer(inputs(3)), whole)
    # Q and K are one run of four blocks, V is one of its own.
    expected = {1: [128] * 5, 2: [256, 128, 128, 128], 3: [384, 128, 128]}
    assert sizes == expected[blocks]


def test_the_workspace_counts_the_products_of_many_rows(monkeypatch):
    """200 rows' product of a block takes more bytes than the decoded block."""
    from vllm.model_executor.layers.quantization.utils import exl3_linear

    monkeypatch.setenv("VLLM_EXL3_FUSED_HADAMARD", "0")
    layer, sizes = qkv(monkeypatch), []
    product = exl3_linear._product

    def recording(rows, decoded):
        result = product(rows, decoded)
        sizes.append(decoded.shape[1])
        assert result.untyped_storage().nbytes() <= 2 * 128 * 200 * 4
        return result

    monkeypatch.setattr(exl3_linear, "_product", recording)
    monkeypatch.setattr(exl3_linear, "WORKSPACE", 2 * 128 * 200 * 4 + 100)
    out = layer(inputs(200))
    assert sizes == [256, 128, 128, 128]
    assert x.relative_error(out, dense(inputs(200))) < 3e-4


@pytest.mark.usefixtures("three_are_many")
def test_a_cut_layer(monkeypatch):
    """Rows from the middle of a block on, to the middle of another."""
    down = x.weight(640, 128, 112, "3inst", seed=9)
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
    mine = inputs(3, 640)[:, 320:]
    expected = mine.double() @ x.dense(down)[320:]
    assert x.relative_error(layer(mine.contiguous()), expected) < 3e-4


@pytest.mark.usefixtures("three_are_many")
def test_no_input_is_too_large_or_too_small(monkeypatch):
    """Rows differ by eighteen orders, the blocks of one row by four."""
    rows = inputs(4) * torch.tensor([1e9, 1e-9, 0.0, 1.0]).unsqueeze(1)
    rows[3, 128:] *= 1e-4
    out = qkv(monkeypatch)(rows)
    expected = dense(rows)
    for i in (0, 1, 3):
        assert x.relative_error(out[i], expected[i]) < 3e-4
    assert not out[2].any()
    # The small block's part is still there, to the precision of fp16.
    rows[3, :128] = 0
    small = qkv(monkeypatch)(rows)[3]
    assert x.relative_error(small, dense(rows)[3]) < 3e-4


@pytest.mark.usefixtures("three_are_many")
@pytest.mark.parametrize("words, codebook", x.RATES[::4])
def test_rows_come_in_the_order_of_the_input(words, codebook):
    from vllm.model_executor.layers.quantization.utils import exl3_ref, exl3_triton

    trellis = x.weight(128, 128, words, codebook)["trellis"]
    table = torch.tensor([(0, 4 * words, 0)])
    index = exl3_ref.CODEBOOKS.index(codebook)
    args = (trellis.flatten(), table, 0, 1, 1, words, index)
    out = exl3_triton.dequant(*args, torch.empty(128, 128).half(), fragment=True)
    expected = exl3_ref.decode_trellis(trellis, codebook).view(8, 16, 128)
    expected = expected[:, exl3_triton.fragment_rows()].view(128, 128)
    assert torch.equal(out.view(torch.int16), expected.view(torch.int16))


NAMES = ("KERNELS", "LINEAR_GEMV", "FUSED_HADAMARD", "PREFILL_RECONSTRUCT")


@pytest.mark.usefixtures("three_are_many")
@pytest.mark.parametrize("values", list(itertools.product("01", repeat=4)), ids="".join)
def test_every_switch_has_its_path(monkeypatch, values):
    from vllm.model_executor.layers.quantization.utils import (
        exl3_linear,
        exl3_ref,
        exl3_triton,
    )

    paths = x.Calls(
        monkeypatch,
        reference=(exl3_ref, "linear"),
        gemv=(exl3_triton, "gemv"),
        reconstruct=(exl3_triton, "dequant"),
        kernel_in=(exl3_triton, "rotate_in"),
        kernel_out=(exl3_triton, "rotate_out"),
        torch_in=(exl3_linear, "_rotate_in"),
        torch_out=(exl3_linear, "_rotate_out"),
    )
    for name, value in zip(NAMES, values):
        monkeypatch.setenv(f"VLLM_EXL3_{name}", value)
    layer = qkv(monkeypatch)
    for name in NAMES:  # read when the layer was built, not now
        monkeypatch.setenv(f"VLLM_EXL3_{name}", "1")
    master, gemv, fused, reconstruct = (value == "1" for value in values)
    rotations = ["kernel_in", "kernel_out"] if fused else ["torch_in", "torch_out"]
    for rows, path, on in ((2, "gemv", gemv), (3, "reconstruct", reconstruct)):
        out = layer(inputs(rows))
        assert x.relative_error(out, dense(inputs(rows))) < 3e-4
        expected = sorted([path, *rotations]) if master and on else ["reference"]
        assert paths.take() == expected


def test_the_switch_counts_for_the_compile_cache(monkeypatch):
    from vllm import envs

    name = "VLLM_EXL3_PREFILL_RECONSTRUCT"
    monkeypatch.setenv(name, "0")
    assert envs.compile_factors()[name] is False
    monkeypatch.delenv(name)
    assert envs.compile_factors()[name] is True


@pytest.mark.gpu
@pytest.mark.witness
def test_parity_and_capture_on_a_gpu(monkeypatch):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    layer = qkv(monkeypatch).cuda()
    calls = x.Calls(monkeypatch, decode=(exl3_ref, "decode_trellis"))
    layer(inputs(65).cuda())
    assert calls.take() == []
    for rows, dtype in itertools.product((65, 200, 1000), (torch.bfloat16, torch.float16)):
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
