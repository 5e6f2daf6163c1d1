# SPDX-License-Identifier: Apache-2.0
"""Joined and sharded linear layers of an EXL3 checkpoint."""

import _exl3 as x
import pytest
import torch


@pytest.fixture
def build(monkeypatch):
    def make(*args, **kwargs):
        try:
            return x.linear_layer(monkeypatch, *args, **kwargs)
        except (NotImplementedError, ValueError) as error:
            pytest.fail(f"the layer is refused: {error}")

    return make


@pytest.fixture
def refused(monkeypatch):
    def make(reason, *args, **kwargs):
        with pytest.raises(ValueError, match=reason):
            x.linear_layer(monkeypatch, *args, **kwargs)

    return make


def rows_of(size, count=3):
    return torch.randn(count, size, generator=torch.Generator().manual_seed(size))


def agrees(out, expected):
    assert out.shape == expected.shape
    assert x.relative_error(out, expected) < 5e-6


Q = x.weight(256, 512, 80, "mcg", seed=1)
K = x.weight(256, 256, 96, "3inst", seed=2)
V = x.weight(256, 256, 40, "mul1", seed=3)
QKV = {f"m.{n}_proj": t for n, t in zip("qkv", (Q, K, V))}


@pytest.mark.witness
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_q_k_v_keep_their_own_rates(build, ranks):
    """2 kv heads: at 4 ranks two ranks share one."""
    inputs = rows_of(256)
    q, k, v = (inputs.double() @ x.dense(t) for t in (Q, K, V))
    for rank in range(ranks):
        layer = build(
            "QKVParallelLinear",
            (256, 128, 4, 2),
            QKV,
            [("q", Q), ("k", K), ("v", V)],
            rank,
            ranks,
            "m.qkv_proj",
        )
        heads = max(2 // ranks, 1)
        kv = slice((rank * 2 // ranks) * 128, (rank * 2 // ranks + heads) * 128)
        mine = slice(rank * 512 // ranks, (rank + 1) * 512 // ranks)
        agrees(layer(inputs), torch.cat([q[:, mine], k[:, kv], v[:, kv]], 1))


@pytest.mark.witness
def test_a_bf16_batch_of_any_shape(build):
    layer = build(
        "QKVParallelLinear",
        (256, 128, 4, 2),
        QKV,
        [("v", V), ("q", Q), ("k", K)],
        prefix="m.qkv_proj",
    )
    inputs = rows_of(256, 6).view(2, 3, 256).bfloat16()
    out = layer(inputs)
    assert out.dtype == torch.bfloat16
    expected = torch.cat([inputs.double() @ x.dense(t) for t in (Q, K, V)], -1)
    assert out.shape == expected.shape and x.relative_error(out, expected) < 2e-3
    assert layer(inputs[:0]).shape == (0, 3, 1024)


def test_the_operator_is_traceable(build):
    layer = build(
        "QKVParallelLinear",
        (256, 128, 4, 2),
        QKV,
        [("q", Q), ("k", K), ("v", V)],
        prefix="m.qkv_proj",
    )
    tensors = [layer.trellis, layer.suh, layer.svh]
    tensors += [b for name, b in layer.named_buffers() if name == "exl3_table"]
    arguments = (rows_of(256), *tensors, layer.exl3_plan)
    torch.library.opcheck(torch.ops.vllm.exl3_linear, arguments)


GATE = x.weight(256, 640, 64, "mcg", seed=4)
UP = x.weight(256, 640, 80, "mcg", seed=5)
DOWN = x.weight(640, 256, 80, "3inst", seed=6)


@pytest.mark.witness
@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_cuts_inside_a_block_are_exact(build, ranks):
    """640 columns over 2 ranks cut a 128-block in half, over 4 at a quarter."""
    inputs, hidden = rows_of(256), rows_of(640)
    gate, up = (inputs.double() @ x.dense(t) for t in (GATE, UP))
    total = torch.zeros(3, 256, dtype=torch.float64)
    for rank in range(ranks):
        mine = slice(rank * 640 // ranks, (rank + 1) * 640 // ranks)
        column = build(
            "MergedColumnParallelLinear",
            (256, [640, 640]),
            {"m.gate_proj": GATE, "m.up_proj": UP},
            [(0, GATE), (1, UP)],
            rank,
            ranks,
            "m.gate_up_proj",
        )
        agrees(column(inputs), torch.cat([gate[:, mine], up[:, mine]], 1))
        row = build(
            "RowParallelLinear",
            (640, 256),
            {"m.down_proj": DOWN},
            [(None, DOWN)],
            rank,
            ranks,
            "m.down_proj",
        )
        # A rank keeps only the blocks its rows lie in.
        blocks = -(-mine.stop // 128) - mine.start // 128
        assert row.suh.numel() == blocks * 128
        total += row(hidden[:, mine].contiguous()).double()
    agrees(total, hidden.double() @ x.dense(DOWN))


@pytest.mark.witness
@pytest.mark.parametrize("ranks", [1, 2])
def test_one_weight_may_hold_several_outputs(build, ranks):
    qkv = x.weight(256, 1024, 48, "mcg", seed=7)
    z = x.weight(256, 512, 64, "mcg", seed=8)
    inputs = rows_of(256)
    q, k, v = (inputs.double() @ x.dense(qkv)).split([256, 256, 512], 1)
    wholes = [q, k, v, inputs.double() @ x.dense(z)]
    for rank in range(ranks):
        layer = build(
            "MergedColumnParallelLinear",
            (256, [256, 256, 512, 512]),
            {"m.in_proj_qkv": qkv, "m.in_proj_z": z},
            [((0, 1, 2), qkv), (3, z)],
            rank,
            ranks,
            "m.in_proj_qkvz",
        )
        expected = [w.chunk(ranks, 1)[rank] for w in wholes]
        agrees(layer(inputs), torch.cat(expected, 1))


@pytest.mark.witness
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_padded_outputs_are_dropped(build, ranks):
    """48 outputs are stored as 128."""
    b, a = (x.weight(256, 128, 96, "mcg", seed=s) for s in (9, 10))
    inputs = rows_of(256)
    wholes = [(inputs.double() @ x.dense(t))[:, :48] for t in (b, a)]
    for rank in range(ranks):
        layer = build(
            "MergedColumnParallelLinear",
            (256, [48, 48]),
            {"m.in_proj_b": b, "m.in_proj_a": a},
            [(0, b), (1, a)],
            rank,
            ranks,
            "m.in_proj_ba",
        )
        expected = [w.chunk(ranks, 1)[rank] for w in wholes]
        agrees(layer(inputs), torch.cat(expected, 1))


@pytest.mark.witness
def test_padded_inputs_and_layers_joined_on_disk(build):
    """A vision tower's 1000-wide input is stored as 1024; its qkv is one weight."""
    fused = x.weight(1024, 1536, 64, "mcg", seed=11)
    layer = build(
        "QKVParallelLinear",
        (1000, 128, 4, 4),
        {"m.qkv": fused},
        [(None, fused)],
        1,
        2,
        "m.qkv",
    )
    inputs = rows_of(1000)
    wholes = (inputs.double() @ x.dense(fused)[:1000]).split(512, 1)
    agrees(layer(inputs), torch.cat([w.chunk(2, 1)[1] for w in wholes], 1))


@pytest.mark.witness
def test_packed_signs_and_bias(build):
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    packed = x.weight(256, 256, 64, "mcg", seed=12, packed_signs=True)
    bias = torch.randn(256).half()
    layer = build(
        "ColumnParallelLinear",
        (256, 256),
        {"m.fc": packed},
        [(None, {**packed, "bias": bias})],
        1,
        2,
        "m.fc",
        bias=True,
    )
    full = {
        "trellis": packed["trellis"],
        "mcg": packed["mcg"],
        "suh": exl3_ref.unpack_signs(packed["su"]),
        "svh": exl3_ref.unpack_signs(packed["sv"]),
    }
    inputs = rows_of(256)
    expected = inputs.double() @ x.dense(full) + bias.double()
    agrees(layer(inputs), expected[:, 128:])
    assert sorted(n for n, _ in layer.named_parameters()) == [
        "bias",
        "suh",
        "svh",
        "trellis",
    ]


def test_a_lost_bias_is_refused(refused):
    group = {**x.weight(256, 256), "bias": torch.zeros(256).half()}
    stream = [(None, {k: v for k, v in group.items() if k != "bias"})]
    refused(
        "m.fc has no bias, but EXL3 weight 'm.fc'",
        "ColumnParallelLinear",
        (256, 256),
        {"m.fc": group},
        stream,
        prefix="m.fc",
    )


def test_missing_tensors_are_named(refused):
    stream = [("q", Q), ("v", V), ("k", {"trellis": K["trellis"]})]
    refused(
        "m.qkv_proj.*not bring suh, svh of.*m.k_proj",
        "QKVParallelLinear",
        (256, 128, 4, 2),
        QKV,
        stream,
        prefix="m.qkv_proj",
    )


def test_a_dummy_load_is_none_of_that(build):
    build("QKVParallelLinear", (256, 128, 4, 2), QKV, [], prefix="m.qkv_proj")


def test_a_weight_of_another_model_is_refused(refused):
    refused(
        r"m\.gate_up_proj: .*'m\.up_proj' is 256 x 512.* 256 x 640",
        "MergedColumnParallelLinear",
        (256, [640, 640]),
        {"m.gate_proj": GATE, "m.up_proj": x.weight(256, 512)},
        [],
        prefix="m.gate_up_proj",
    )


def test_a_foreign_marker_is_refused(refused):
    wrong = {**GATE, "mcg": GATE["mcg"] - 1}
    refused(
        "'m.fc': the mcg marker is 0xcbac1fec",
        "ColumnParallelLinear",
        (256, 640),
        {"m.fc": GATE},
        [(None, wrong)],
        prefix="m.fc",
    )
