# SPDX-License-Identifier: Apache-2.0
"""EXL3 checkpoints are recognised; bits and codebook come from each tensor."""

import _exl3 as x
import pytest
import torch

LAYER = "model.layers.0"


def load(folder):
    try:
        return x.quant_config(folder)
    except (ValueError, NameError, KeyError) as error:
        pytest.fail(f"the checkpoint is refused: {error}")


def parse(tensors):
    """The group as safetensors headers give it."""
    from vllm.model_executor.layers.quantization.exl3 import Exl3Weight

    dtypes = {torch.int16: "I16", torch.float16: "F16", torch.int32: "I32"}
    header = {
        name: {"dtype": dtypes[t.dtype], "shape": list(t.shape)} for name, t in tensors.items()
    }
    return Exl3Weight.from_tensors("w", header)


@pytest.fixture
def checkpoint(tmp_path):
    def write(**tensors):
        return x.write(tmp_path, {k: v for t in tensors.values() for k, v in t.items()})

    return write


@pytest.mark.witness
def test_bits_and_codebook_are_each_tensors_own(checkpoint):
    folder = checkpoint(
        q=x.named(f"{LAYER}.self_attn.q_proj", x.weight(256, 256, 80, "mcg")),
        k=x.named(f"{LAYER}.self_attn.k_proj", x.weight(256, 128, 96, "3inst")),
        d=x.named(f"{LAYER}.mlp.down_proj", x.weight(512, 256, 40, "mul1")),
        norm={"model.norm.weight": torch.ones(256)},
    )
    weights = load(folder).quantized_layers
    got = {
        name.rsplit(".", 1)[-1]: (w.bits, w.codebook, w.in_features, w.out_features)
        for name, w in weights.items()
    }
    assert got == {
        "q_proj": (5.0, "mcg", 256, 256),
        "k_proj": (6.0, "3inst", 256, 128),
        "down_proj": (2.5, "mul1", 512, 256),
    }


@pytest.mark.witness
def test_a_fused_layer_finds_its_members_and_plain_layers_stay_plain(checkpoint):
    folder = checkpoint(
        **{
            name: x.named(f"{LAYER}.self_attn.{name}", x.weight(256, 256))
            for name in ("q_proj", "k_proj", "v_proj")
        },
        down={f"{LAYER}.mlp.down_proj.weight": torch.ones(256, 512).bfloat16()},
    )
    config = load(folder)
    config.packed_modules_mapping = {
        "qkv_proj": ["q_proj", "k_proj", "v_proj"],
        "gate_up_proj": ["gate_proj", "up_proj"],
    }
    names = [w.name for w in config.find(f"{LAYER}.self_attn.qkv_proj")]
    assert names == [f"{LAYER}.self_attn.{n}_proj" for n in "qkv"]
    assert config.find(f"{LAYER}.mlp.down_proj") is None
    assert config.find(f"{LAYER}.mlp.gate_up_proj") is None

    from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod

    layer = LinearBase.__new__(LinearBase)
    assert isinstance(
        config.get_quant_method(layer, f"{LAYER}.mlp.down_proj"),
        UnquantizedLinearMethod,
    )
    assert config.get_quant_method(torch.nn.Module(), "model.embed_tokens") is None


def test_an_unsupported_module_is_named(checkpoint):
    config = load(checkpoint(h=x.named("visual.merger", x.weight(256, 512))))
    with pytest.raises(NotImplementedError, match="visual.merger is EXL3.*Module"):
        config.get_quant_method(torch.nn.Module(), "visual.merger")


def test_half_quantised_fused_layers_are_named(checkpoint):
    folder = checkpoint(q=x.named(f"{LAYER}.self_attn.q_proj", x.weight(256, 256)))
    config = load(folder)
    config.packed_modules_mapping = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}
    with pytest.raises(ValueError, match=r"qkv_proj joins.*k_proj.*v_proj is not EXL3"):
        config.find(f"{LAYER}.self_attn.qkv_proj")


def test_names_follow_the_model(checkpoint):
    from vllm.model_executor.models.utils import WeightsMapper

    config = load(checkpoint(h=x.named("lm_head", x.weight(256, 512))))
    config.apply_vllm_mapper(
        WeightsMapper(orig_to_new_prefix={"lm_head.": "language_model.lm_head."})
    )
    assert list(config.quantized_layers) == ["language_model.lm_head"]


def test_a_folder_without_headers_is_refused(tmp_path):
    folder = x.write(tmp_path, {"model.norm.weight": torch.ones(256)})
    with pytest.raises(ValueError, match=r"no safetensors header.*\.trellis"):
        x.quant_config(folder)


@pytest.mark.parametrize("words, codebook", x.RATES)
def test_every_rate_of_the_format_is_accepted(words, codebook):
    weight = parse(x.weight(128, 256, words, codebook))
    assert (weight.bits, weight.codebook) == (words / 16, codebook)
    assert (weight.in_features, weight.out_features) == (128, 256)
    assert parse(x.weight(128, 256, words, codebook, packed_signs=True)).packed_signs


GOOD = x.weight(128, 256, 80, "mcg")
REFUSED = {
    "rows": (
        {**GOOD, "trellis": torch.zeros(4, 51, dtype=torch.int16)},
        "table of embedding rows",
    ),
    "dtype": (
        {**GOOD, "trellis": torch.zeros(8, 16, 80, dtype=torch.int32)},
        r"I32 \[8, 16, 80\]",
    ),
    "rate": (x.weight(128, 256, 72, "mul1"), "4.5 bits a weight.* is no rate"),
    "nine": (x.weight(128, 256, 144, "mcg"), "9 bits a weight.* is no rate"),
    "half": (x.weight(128, 256, 40, "mcg"), "2.5 bits a weight need the mul1"),
    "two": ({**GOOD, "mul1": GOOD["mcg"]}, "two codebooks"),
    "block": (x.weight(128, 192), "128 x 192 is not a multiple of 128"),
    "rows of 64": (x.weight(192, 128), "192 x 128 is not a multiple of 128"),
    "no svh": ({k: v for k, v in GOOD.items() if k != "svh"}, "svh is missing"),
    "short": ({**GOOD, "suh": GOOD["suh"][:64]}, r"suh should be F16 \[128\].*\[64\]"),
    "float": ({**GOOD, "suh": GOOD["suh"].view(torch.int16)}, "suh should be F16"),
    "other": ({**GOOD, "scale": torch.ones(1).half()}, "unknown tensors.*scale"),
}


@pytest.mark.parametrize("tensors, message", REFUSED.values(), ids=REFUSED)
def test_what_is_not_supported_is_said(tensors, message):
    with pytest.raises(ValueError, match=message) as error:
        parse(tensors)
    assert "'w'" in str(error.value)
