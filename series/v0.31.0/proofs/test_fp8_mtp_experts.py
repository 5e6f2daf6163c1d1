# SPDX-License-Identifier: Apache-2.0
"""--quantization-config's targets reach the MTP layers of the target's checkpoint:
their experts, BF16 in an NVFP4 checkpoint, are converted to FP8 while they load.
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
TARGETS = {"targets": {"mtp.layers.*.mlp.experts*": "fp8_per_block"}}
FP8, EXPERTS, WIDTH = torch.float8_e4m3fn, 16, 128


@pytest.fixture
def path(tmp_path):
    # Experts as wide as a block, so that one byte an element is the whole count.
    return write(tmp_path, quantization_config=NVFP4, moe_intermediate_size=WIDTH)


def experts(model):
    layer = model.model.layers[-1].mlp.experts.routed_experts
    names = ("w13_weight", "w2_weight", "w13_weight_scale_inv", "w2_weight_scale_inv")
    return {
        name: getattr(layer, name).detach().clone()
        for name in names
        if hasattr(layer, name)
    }


def loaded(rank, path, quantization_config, run):
    rank.join(path, drafts=2, quantization_config=quantization_config)
    rank.load(draft=True)
    out = {"target": experts(rank.model), "draft": experts(rank.draft)}
    if run:
        tokens = torch.tensor([3, 141, 59, 26, 5])
        context = torch.full((1, 2), TEXT["eos_token_id"], dtype=torch.int32)
        out |= rank.allocate().step(tokens, [5], [5], context)
    return out


def ran(world, work, *args):
    results = ranks.run(world, work, *args)
    assert not isinstance(results, ranks.Refused), results
    return results


def checkpoint_experts():
    tensors = _Tensors({**TEXT, "moe_intermediate_size": WIDTH})

    def of(part):
        return torch.stack(
            [
                tensors[f"mtp.layers.0.mlp.experts.{number}.{part}.weight"]
                for number in range(EXPERTS)
            ]
        ).bfloat16()

    return {
        "w13_weight": torch.cat((of("gate_proj"), of("up_proj")), dim=1),
        "w2_weight": of("down_proj"),
    }


@pytest.mark.witness
def test_experts_of_the_draft_are_fp8_and_near_their_weights(path):
    (got,) = ran(1, loaded, path, TARGETS, False)
    assert got["target"]["w13_weight"].dtype == torch.bfloat16
    for name, expected in checkpoint_experts().items():
        weight = got["draft"][name]
        assert weight.dtype == FP8, name
        scale = got["draft"][f"{name}_scale_inv"]
        for dim in (1, 2):
            scale = scale.repeat_interleave(128, dim)
        expected = expected.float()
        error = (weight.float() * scale - expected).abs()
        bound = torch.maximum(expected.abs() * 2**-4, scale * 2**-10)
        assert (error <= bound * (1 + 1e-5)).all(), name
        assert error.max() > 0


@pytest.mark.witness
def test_each_rank_holds_half_the_bytes(path):
    """Two ranks share 16 experts; FP8 takes a byte where BF16 takes two."""
    fp8 = ran(2, loaded, path, TARGETS, False)
    bf16 = ran(2, loaded, path, None, False)
    for got, before in zip(fp8, bf16):
        for name in ("w13_weight", "w2_weight"):
            assert before["draft"][name].shape[0] == EXPERTS // 2
            assert got["draft"][name].nbytes * 2 == before["draft"][name].nbytes
            assert got["target"][name].nbytes == before["target"][name].nbytes


@pytest.mark.witness
def test_draft_logits_stay_near_those_of_bf16(path):
    (bf16,) = ran(1, loaded, path, None, True)
    (fp8,) = ran(1, loaded, path, TARGETS, True)
    assert torch.equal(fp8["logits"], bf16["logits"])
    error = ranks.relative_error(fp8["draft logits"], bf16["draft logits"])
    assert 0 < error < 0.03


def draft_config(path, quantization_config, **speculative):
    speculative = {"method": "mtp", "num_speculative_tokens": 2, **speculative}
    return ranks.EngineArgs(
        model=path,
        skip_tokenizer_init=True,
        max_model_len=256,
        language_model_only=True,
        quantization_config=quantization_config,
        speculative_config=speculative,
    ).create_engine_config()


def test_only_targets_reach_the_draft(path):
    config = draft_config(path, TARGETS).speculative_config.draft_model_config
    assert config.quantization_config is not None
    assert config.quantization_config.targets == TARGETS["targets"]
    for other in (None, {"linear": "fp8_per_channel"}):
        config = draft_config(path, other).speculative_config
        assert config.draft_model_config.quantization_config is None


@pytest.mark.witness
def test_the_same_checkpoint_named_by_its_path_gets_them_too(path):
    config = draft_config(path, TARGETS, model=path).speculative_config
    assert config.draft_model_config.quantization == "modelopt_fp4"
    assert config.draft_model_config.quantization_config is not None
    assert config.draft_model_config.quantization_config.targets == TARGETS["targets"]


def test_a_draft_from_elsewhere_is_left_alone(path, tmp_path):
    elsewhere = write(tmp_path / "other", quantization_config=NVFP4)
    config = draft_config(path, TARGETS, model=elsewhere).speculative_config
    assert config.draft_model_config.model == elsewhere
    assert config.draft_model_config.quantization_config is None
