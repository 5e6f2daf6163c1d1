# SPDX-License-Identifier: Apache-2.0
"""The reference decodes bit for bit, and a layer of an EXL3 checkpoint runs on it."""

import hashlib
import json
import pathlib

import _exl3 as x
import numpy as np
import pytest
import torch

HERE = pathlib.Path(__file__).parent
VECTORS = HERE / "exl3-reference.vectors.json"


def half(bits):
    return np.array([bits], dtype=np.uint16).view(np.float16)[0]


def value_of(state, codebook):
    """Step 3 of the format, with Python integers."""
    if codebook == "3inst":
        word = state * 89226354 + 64248484
    elif codebook == "mcg":
        word = state * 0xCBAC1FED
    else:
        word = state * 0x83DCD12D
    word %= 2**32
    if codebook == "mul1":
        total = sum(word.to_bytes(4, "little"))
        # 1024 + total, times and plus two fp16 constants, rounded once.
        exact = float(half(0x6400 + total)) * float(half(0x1EEE)) + float(half(0xC931))
        return np.float16(exact)
    word = (word & 0x8FFF8FFF) ^ 0x3B603B60
    return half(word & 0xFFFF) + half(word >> 16)


def decode_tile(words, codebook):
    """Steps 1 to 4 of the format on one tile, bit by bit."""
    words = [int(w) & 0xFFFF for w in words]
    swapped = [w for pair in zip(words[1::2], words[::2]) for w in pair]
    ring = "".join(f"{w:016b}" for w in swapped)
    steps = [len(words) // 16] * 256
    if len(words) % 16:
        steps = [len(words) // 16, len(words) // 16 + 1] * 128
    tile = np.zeros((16, 16), np.float16)
    end = 0
    for p in range(256):
        end += steps[p]
        state = "".join(ring[i % len(ring)] for i in range(end - 16, end))
        t, j = divmod(p, 8)
        row = 2 * (t % 4) + (j & 1) + 8 * ((j >> 1) & 1)
        tile[row, t // 4 + 8 * (j >> 2)] = value_of(int(state, 2), codebook)
    return tile


def sylvester(n):
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return torch.from_numpy(matrix / n**0.5)


def blocks_of(n):
    return torch.block_diag(*[sylvester(128)] * (n // 128))


def dense(tensors, codebook):
    """The weight in float64 from the definition, decode aside."""
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    what = exl3_ref.decode_trellis(tensors["trellis"], codebook).double()
    rows, cols = what.shape
    inner = blocks_of(rows) @ what @ blocks_of(cols)
    return tensors["suh"].double()[:, None] * inner * tensors["svh"].double()


@pytest.mark.parametrize("words, codebook", x.RATES)
def test_decode_equals_a_second_implementation(words, codebook):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    trellis = x.weight(32, 48, words)["trellis"]
    got = exl3_ref.decode_trellis(trellis, codebook).numpy()
    expected = np.block([[decode_tile(tile, codebook) for tile in row] for row in trellis.tolist()])
    assert got.dtype == np.float16
    assert (got.view(np.uint16) == expected.view(np.uint16)).all()


@pytest.mark.parametrize("words, codebook", x.RATES)
def test_decode_equals_what_exllamav3_computed(words, codebook):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    vectors = json.loads(VECTORS.read_text())["decode"][f"{words}-{codebook}"]
    seed = hashlib.shake_256(f"{words}-{codebook}".encode())
    trellis = np.frombuffer(seed.digest(64 * words * 2), "<i2").reshape(8, 8, words)
    got = exl3_ref.decode_trellis(torch.from_numpy(trellis.copy()), codebook)
    row = got[1].view(torch.int16).numpy().tobytes().hex()
    assert row == vectors["row1"]
    digest = hashlib.sha256(got.view(torch.int16).numpy().tobytes()).hexdigest()
    assert digest == vectors["sha256"]


@pytest.mark.parametrize("codebook", ["3inst", "mcg", "mul1"])
def test_every_state_has_its_value(codebook):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    states = torch.arange(0, 65536, 7)
    got = exl3_ref.decode_states(states, codebook).view(torch.int16).tolist()
    expected = [int(value_of(s, codebook).view(np.int16)) for s in states.tolist()]
    assert got == expected


def test_hadamard_is_sylvesters_matrix_over_its_root():
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    matrix = exl3_ref.hadamard(torch.eye(256, dtype=torch.float64))
    assert torch.allclose(matrix, blocks_of(256), rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match="192 is not a multiple of 128"):
        exl3_ref.hadamard(torch.ones(2, 192))


def test_packed_signs_are_read_from_the_low_bit():
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    signs = exl3_ref.unpack_signs(torch.tensor([1, -32768], dtype=torch.int16))
    assert signs.dtype == torch.float16
    assert (signs < 0).nonzero().flatten().tolist() == [0, 31]
    assert signs.abs().tolist() == [1.0] * 32


@pytest.mark.parametrize("words, codebook", x.RATES)
def test_dequantised_weight_and_product_are_the_definitions(words, codebook):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    tensors = x.weight(256, 384, words, codebook)
    args = tensors["trellis"], tensors["suh"], tensors["svh"], codebook
    expected = dense(tensors, codebook)
    got = exl3_ref.dequantize(*args, dtype=torch.float64)
    assert torch.allclose(got, expected, rtol=0, atol=1e-13)
    rows = torch.randn(5, 256, generator=torch.Generator().manual_seed(words))
    product = exl3_ref.linear(rows, *args)
    assert x.relative_error(product, rows.double() @ expected) < 2e-6


def test_the_decoded_part_stays_within_the_workspace(monkeypatch):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    tensors = x.weight(128, 640, 48, "mcg")
    args = tensors["trellis"], tensors["suh"], tensors["svh"], "mcg"
    rows = torch.randn(3, 128)
    whole = exl3_ref.linear(rows, *args)
    widths, decode = [], exl3_ref.decode_trellis

    def recording(trellis, codebook):
        widths.append(trellis.shape[1] * 16)
        return decode(trellis, codebook)

    monkeypatch.setattr(exl3_ref, "decode_trellis", recording)
    # 16 bytes a weight are needed while it is decoded.
    chunked = exl3_ref.linear(rows, *args, workspace=2 * 128 * 128 * 16)
    assert widths == [256, 256, 128]
    assert x.relative_error(chunked, whole) < 1e-6


def replicated(tmp_path, tensors, size=(256, 384)):
    """A plain layer of the checkpoint, built and loaded as the engine does it."""
    import _cpu  # noqa: F401
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.linear import ReplicatedLinear
    from vllm.model_executor.models.utils import AutoWeightsLoader

    config = x.quant_config(x.write(tmp_path, x.named("gate", tensors)))
    model = torch.nn.Module()
    try:
        with set_current_vllm_config(VllmConfig()):
            model.gate = ReplicatedLinear(
                *size,
                bias=False,
                return_bias=False,
                quant_config=config,
                prefix="gate",
                disable_tp=True,
            )
    except NotImplementedError as error:
        pytest.fail(f"the layer is refused: {error}")
    AutoWeightsLoader(model).load_weights(x.named("gate", tensors).items())
    model.gate.quant_method.process_weights_after_loading(model.gate)
    return model.gate


@pytest.mark.witness
@pytest.mark.parametrize("words, codebook", [(80, "mcg"), (64, "3inst"), (40, "mul1")])
def test_a_layer_of_the_checkpoint_computes_its_product(tmp_path, words, codebook):
    tensors = x.weight(256, 384, words, codebook)
    layer = replicated(tmp_path, tensors)
    rows = torch.randn(2, 3, 256)
    expected = rows.double() @ dense(tensors, codebook)
    assert x.relative_error(layer(rows), expected) < 2e-6
    bf16 = layer(rows.bfloat16())
    assert bf16.dtype == torch.bfloat16 and bf16.shape == (2, 3, 384)
    rounded = rows.bfloat16().double() @ dense(tensors, codebook)
    assert x.relative_error(bf16, rounded) < 2e-3
    assert sorted(n for n, _ in layer.named_parameters()) == ["suh", "svh", "trellis"]


@pytest.mark.witness
def test_packed_signs_are_unpacked(tmp_path):
    tensors = x.weight(256, 384, 64, "mcg", packed_signs=True)
    layer = replicated(tmp_path, tensors)
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    full = {
        "trellis": tensors["trellis"],
        "suh": exl3_ref.unpack_signs(tensors["su"]),
        "svh": exl3_ref.unpack_signs(tensors["sv"]),
    }
    rows = torch.randn(4, 256)
    assert x.relative_error(layer(rows), rows.double() @ dense(full, "mcg")) < 2e-6


def test_a_foreign_marker_is_refused(tmp_path):
    tensors = x.weight(256, 384)
    tensors["mcg"] = tensors["mcg"] + 1
    with pytest.raises(ValueError, match="gate.*mcg marker is 0xcbac1fee"):
        replicated(tmp_path, tensors)


def test_a_layer_of_another_size_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'gate' is 256 x 384, the layer.* 256 x 512"):
        replicated(tmp_path, x.weight(256, 384), size=(256, 512))
