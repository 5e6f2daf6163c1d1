# SPDX-License-Identifier: Apache-2.0
"""Routed experts of an EXL3 checkpoint: loading, stacking, uneven ranks."""

import _exl3 as x
import pytest
import torch

KINDS = ((80, "mcg"), (96, "3inst"), (40, "mul1"), (80, "3inst"), (64, "mcg"))


def build(experts, *args, stream=None, **kwargs):
    try:
        layer = x.experts_layer(experts, *args, **kwargs)
    except NotImplementedError as error:
        pytest.fail(f"the layer is refused: {error}")
    stream = x.expert_stream(experts) if stream is None else stream
    try:
        loaded = set(layer.load_weights(stream))
    except (RuntimeError, AttributeError, IndexError, TypeError) as error:
        pytest.fail(f"the experts do not load: {error}")
    layer.quant_method.process_weights_after_loading(layer)
    return layer, loaded


def run(layer, inputs, weights, ids):
    return layer.forward_modular(inputs, weights, ids)


@pytest.mark.witness
@pytest.mark.parametrize("tokens", [1, 5, 24])
def test_experts_of_mixed_rates_compute_their_sum(tokens):
    """24 tokens go by expert, fewer by routed pair."""
    experts = x.expert_weights(6, 256, 128, KINDS)
    layer, loaded = build(experts, 256, 128, 6)
    assert {"w13_trellis", "w13_suh", "w2_trellis", "w2_svh"} <= loaded
    inputs, weights, ids = x.routed(tokens, 256, 6, 2)
    out = run(layer, inputs, weights, ids)
    assert x.relative_error(out, x.moe(inputs, weights, ids, experts)) < 5e-6
    out = run(layer, inputs.bfloat16(), weights, ids)
    assert out.dtype == torch.bfloat16
    expected = x.moe(inputs.bfloat16(), weights, ids, experts)
    assert x.relative_error(out, expected) < 2e-3


@pytest.mark.witness
def test_matrices_are_stacked_by_rate():
    """5 bits take 5/16 of what 16 bits take, whatever the other matrices have."""
    experts = x.expert_weights(6, 256, 128, KINDS)
    layer, _ = build(experts, 256, 128, 6)
    words = {
        part: sum(t["trellis"].numel() for n, t in experts.items() if ("down" in n) == down)
        for part, down in (("w13", False), ("w2", True))
    }
    assert layer.w13_trellis.numel() == words["w13"]
    assert layer.w2_trellis.numel() == words["w2"]
    assert sorted(n for n, _ in layer.named_parameters()) == sorted(
        f"{part}_{name}" for part in ("w13", "w2") for name in ("trellis", "suh", "svh")
    )


@pytest.mark.witness
def test_512_experts_over_3_ranks_sum_to_the_whole():
    experts = x.expert_weights(512, 128, 128, ((16, "mcg"),))
    inputs, weights, ids = x.routed(40, 128, 512, 10)
    total = torch.zeros(40, 128, dtype=torch.float64)
    local = []
    for rank in range(3):
        layer, _ = build(experts, 128, 128, 512, 10, ep=(rank, 3))
        local.append(layer.local_num_experts)
        total += run(layer, inputs, weights, ids).double()
        few = run(layer, inputs[:2], weights[:2], ids[:2])
        mine = run(layer, inputs, weights, ids)[:2]
        assert x.relative_error(few, mine) < 5e-6
    assert local == [171, 171, 170]
    assert x.relative_error(total, x.moe(inputs, weights, ids, experts)) < 5e-6


@pytest.mark.witness
@pytest.mark.parametrize("tokens", [3, 20])
def test_an_intermediate_size_cut_inside_a_block_is_exact(tokens):
    """384 columns over 2 ranks: 192 each, both keep the middle block."""
    experts = x.expert_weights(4, 256, 384, KINDS)
    inputs, weights, ids = x.routed(tokens, 256, 4, 2)
    total = torch.zeros(tokens, 256, dtype=torch.float64)
    for rank in range(2):
        layer, _ = build(experts, 256, 384, 4, tp=(rank, 2))
        assert layer.w2_suh.shape == (4, 256)
        total += run(layer, inputs, weights, ids).double()
    assert x.relative_error(total, x.moe(inputs, weights, ids, experts)) < 5e-6


@pytest.mark.witness
def test_packed_signs_are_unpacked():
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    experts = {
        f"{e}.{name}": x.weight(128, 128, 80, "mcg", e, packed_signs=True)
        for e in range(2)
        for name in x.PROJECTIONS
    }
    layer, _ = build(experts, 128, 128, 2)
    full = {
        name: {
            "trellis": t["trellis"],
            "mcg": t["mcg"],
            "suh": exl3_ref.unpack_signs(t["su"]),
            "svh": exl3_ref.unpack_signs(t["sv"]),
        }
        for name, t in experts.items()
    }
    inputs, weights, ids = x.routed(3, 128, 2, 2)
    inputs /= 64
    out = run(layer, inputs, weights, ids)
    assert x.relative_error(out, x.moe(inputs, weights, ids, full)) < 5e-6


def test_fused_checkpoints_of_other_methods_still_load():
    """A three-dimensional tensor without an expert's number is all experts."""
    layer = x.experts_layer(None, 128, 64, 3)
    gate_up, down = torch.randn(3, 128, 128), torch.randn(3, 128, 64)
    list(layer.load_weights([("gate_up_proj", gate_up), ("down_proj", down)]))
    assert torch.equal(layer.w13_weight.data, gate_up)
    assert torch.equal(layer.w2_weight.data, down)


def test_the_filter_of_other_ranks_experts_knows_the_trellis():
    from vllm.model_executor.model_loader.ep_weight_filter import should_skip_weight

    name = "model.layers.3.mlp.experts.{}.up_proj.{}"
    assert should_skip_weight(name.format(7, "trellis"), {1, 2})
    assert not should_skip_weight(name.format(2, "trellis"), {1, 2})
    assert not should_skip_weight(name.format(7, "suh"), {1, 2})


def test_missing_experts_are_named():
    experts = x.expert_weights(3, 128, 128)
    stream = [s for s in x.expert_stream(experts) if s[0] != "2.up_proj.svh"]
    with pytest.raises(ValueError, match="m.experts: .*svh of w3 .* expert 2"):
        build(experts, 128, 128, 3, stream=stream)
    build(experts, 128, 128, 3, stream=[])


def test_an_expert_left_plain_is_named():
    experts = x.expert_weights(3, 128, 128)
    del experts["1.down_proj"]
    with pytest.raises(ValueError, match=r"m\.experts\.1\.down_proj is not EXL3"):
        x.experts_layer(experts, 128, 128, 3)


def test_experts_of_another_model_are_refused():
    experts = x.expert_weights(2, 128, 256)
    with pytest.raises(ValueError, match="is 128 x 256, the layer needs 128 x 384"):
        x.experts_layer(experts, 128, 384, 2)


def test_a_foreign_marker_is_refused():
    experts = x.expert_weights(2, 128, 128)
    experts["1.up_proj"]["mcg"] += 1
    with pytest.raises(ValueError, match=r"m\.experts\.1\.w3.*mcg marker is 0xcbac1fee"):
        build(experts, 128, 128, 2)


def test_a_foreign_marker_of_a_linear_layer_is_refused_by_its_name(monkeypatch):
    """One check serves both."""
    gate = x.weight(256, 640, 64, "mcg")
    wrong = {**gate, "mcg": gate["mcg"] - 1}
    layer = ("ColumnParallelLinear", (256, 640), {"m.fc": gate}, [(None, wrong)])
    with pytest.raises(ValueError, match="^EXL3 weight 'm.fc': the mcg marker is 0xcbac1fec"):
        x.linear_layer(monkeypatch, *layer, prefix="m.fc")


@pytest.mark.parametrize(
    "kwargs, what",
    [
        ({"apply_router_weight_on_input": True}, "router weights on the input"),
        ({"has_bias": True}, "expert biases"),
        ({"swiglu_limit": 7.0}, "clamped or scaled SwiGLU"),
    ],
)
def test_what_experts_may_ask_and_do_not_get_is_said(kwargs, what):
    experts = x.expert_weights(2, 128, 128)
    with pytest.raises(NotImplementedError, match=f"m.experts: .*{what}"):
        x.experts_layer(experts, 128, 128, 2, **kwargs)


def test_another_activation_is_refused():
    from vllm.model_executor.layers.fused_moe import MoEActivation

    with pytest.raises(NotImplementedError, match="the activation gelu"):
        x.experts_layer(x.expert_weights(2, 128, 128), 128, 128, 2, activation=MoEActivation.GELU)
