# SPDX-License-Identifier: Apache-2.0
"""Layers that an NVFP4 ModelOpt checkpoint leaves in BF16 are quantized to FP8 while
they load, where --quantization-config names them: QSA's qkv_proj too.
"""

import _ranks as ranks  # before vllm
import pytest
import torch
from _tiny_qwen4exp import TEXT, _Tensors, write

NVFP4 = {
    "quant_method": "modelopt",
    "quant_algo": "NVFP4",
    "group_size": 16,
    "ignore": ["*"],
}
SIDE = (
    r"re:.*\.linear_attn\.(in_proj_qkv|in_proj_z|out_proj)$",
    r"re:.*\.self_attn\.(q_proj|k_proj|v_proj|o_proj)$",
    r"re:.*\.shared_expert\.(gate_proj|up_proj|down_proj)$",
)
TARGETS = {"targets": dict.fromkeys(SIDE, "fp8_per_channel")}
# What these patterns name, by the parameter of vLLM and the checkpoint's tensors.
NAMED = {
    "layers.0.linear_attn.in_proj_qkvz": ("in_proj_qkv", "in_proj_z"),
    "layers.0.linear_attn.out_proj": ("out_proj",),
    "layers.1.self_attn.qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "layers.1.self_attn.o_proj": ("o_proj",),
    "layers.1.mlp.shared_expert.gate_up_proj": ("gate_proj", "up_proj"),
    "layers.1.mlp.shared_expert.down_proj": ("down_proj",),
}
FP8 = torch.float8_e4m3fn


def loaded(rank, path, quantization_config, run):
    rank.join(path, quantization_config=quantization_config).load()
    modules = dict(rank.model.model.named_modules())
    out = {"fp8": {}, "bf16": []}
    for name, module in modules.items():
        weight = getattr(module, "weight", None)
        if isinstance(weight, torch.Tensor) and weight.dtype == FP8:
            scale = module.weight_scale.reshape(-1, 1)
            # The kernel keeps a weight transposed.
            out["fp8"][name] = (weight.t().contiguous(), scale.clone())
        elif isinstance(weight, torch.Tensor):
            out["bf16"].append(name)
    if run:
        tokens = torch.tensor([3, 141, 59, 26, 5])
        context = torch.full((1, 2), TEXT["eos_token_id"], dtype=torch.int32)
        out["logits"] = rank.allocate().step(tokens, [5], [5], context)["logits"]
    return out


def ran(world, work, *args):
    results = ranks.run(world, work, *args)
    assert not isinstance(results, ranks.Refused), results
    return results


def checkpoint_weight(name):
    module, _, _ = name.rpartition(".")
    tensors = _Tensors({**TEXT, "quantization_config": NVFP4})
    rows = [tensors[f"model.{module}.{part}.weight"] for part in NAMED[name]]
    return torch.cat(rows).bfloat16().float()


@pytest.mark.witness
def test_named_layers_are_fp8_and_near_their_weights(tmp_path):
    path = write(tmp_path, quantization_config=NVFP4)
    (got,) = ran(1, loaded, path, TARGETS, False)
    assert set(NAMED) <= set(got["fp8"])
    for name in NAMED:
        weight, scale = got["fp8"][name]
        expected = checkpoint_weight(name)
        error = (weight.float() * scale - expected).abs()
        # E4M3 keeps three bits: half a step is 2^-4 of a value, or half the smallest
        # subnormal, 2^-10, of the scale.
        bound = torch.maximum(expected.abs() * 2**-4, scale * 2**-10)
        assert (error <= bound * (1 + 1e-6)).all(), name
        assert error.max() > 0
    # Nothing else is: gates, norms, convolutions, hyper-connections, embeddings.
    for part in ("gate", "conv1d", "norm", "hyper_connection", "in_proj_ba", "embed"):
        assert any(part in name for name in got["bf16"]), part
    assert {name for name in got["fp8"] if name not in NAMED} == {
        "layers.0.mlp.shared_expert.gate_up_proj",
        "layers.0.mlp.shared_expert.down_proj",
    }


@pytest.mark.witness
def test_two_ranks_hold_the_bytes_of_one(tmp_path):
    """Scales come of the whole channel, also where a rank has half of it."""
    path = write(tmp_path, quantization_config=NVFP4)
    (one,) = ran(1, loaded, path, TARGETS, False)
    two = ran(2, loaded, path, TARGETS, False)
    name = "layers.1.self_attn.qkv_proj"
    assert name in one["fp8"]
    dim = TEXT["head_dim"]
    sizes = [48 * dim, 2 * dim, 2 * dim]
    for rank, got in enumerate(two):
        for part in (0, 1):
            whole = one["fp8"][name][part].split(sizes)
            half = torch.cat([x.chunk(2)[rank] for x in whole])
            mine = got["fp8"][name][part]
            assert torch.equal(mine.view(torch.uint8), half.view(torch.uint8))


@pytest.mark.witness
def test_logits_stay_near_those_of_bf16(tmp_path):
    path = write(tmp_path, quantization_config=NVFP4)
    (bf16,) = ran(1, loaded, path, None, True)
    (fp8,) = ran(1, loaded, path, TARGETS, True)
    assert "layers.1.self_attn.qkv_proj" in fp8["fp8"]
    error = ranks.relative_error(fp8["logits"], bf16["logits"])
    assert 0 < error < 0.06


def test_nothing_is_quantized_unasked(tmp_path):
    path = write(tmp_path, quantization_config=NVFP4)
    (got,) = ran(1, loaded, path, None, False)
    assert got["fp8"] == {}


def test_other_checkpoints_get_what_they_got():
    """Without quantization, and with another one: QSA's layer sees it as it was."""
    from types import SimpleNamespace

    from vllm.models.qwen4_exp.nvidia.model import without_modelopt_fp4

    def config(name, online):
        return SimpleNamespace(
            get_name=lambda: name,
            online_quantization_config=online,
            packed_modules_mapping={},
        )

    assert without_modelopt_fp4(None) is None
    assert without_modelopt_fp4(config("modelopt_fp4", None)) is None
    for online in (None, SimpleNamespace()):
        mixed = config("modelopt_mixed", online)
        assert without_modelopt_fp4(mixed) is mixed
