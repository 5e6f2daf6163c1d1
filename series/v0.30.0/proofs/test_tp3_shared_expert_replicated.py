# SPDX-License-Identifier: Apache-2.0
"""A shared expert whose width does not divide by the ranks is whole on each of them
under expert parallelism, and the MoE block gives what one rank gives.
"""

import _ranks as ranks  # before vllm
import pytest
import torch
from _tiny_qwen4exp import PLAIN, TEXT, _Tensors, write
from torch import nn
from vllm.model_executor.models.qwen3_next import (
    _should_replicate_misaligned_shared_expert as replicates,
)

FP32 = 1e-4
WIDTH = TEXT["shared_expert_intermediate_size"]


@pytest.fixture(autouse=True)
def heads_are_padded(monkeypatch):
    """Where a later patch pads the heads, three ranks are refused without it."""
    monkeypatch.setenv("VLLM_QWEN4_EXP_TP_PAD", "1")


def block(rank, path):
    """The MoE block of layer 0 in FP32, filled through vLLM's weight loaders."""
    from vllm.model_executor.model_loader.utils import process_weights_after_loading
    from vllm.model_executor.models.utils import AutoWeightsLoader
    from vllm.models.qwen4_exp.nvidia.model import (
        Qwen4ExpModel,
        Qwen4ExpSparseMoeBlock,
    )

    rank.join(path, dtype="float32")
    torch.set_default_dtype(torch.float32)
    layer = nn.Module()
    layer.mlp = Qwen4ExpSparseMoeBlock(rank.config, prefix="model.layers.0.mlp")
    before = "model.layers.0."
    weights = [
        (name.removeprefix(before), value)
        for name, value in _Tensors({**TEXT, **PLAIN}).items()
        if name.startswith(before + "mlp.")
    ]
    loader = AutoWeightsLoader(layer)
    loader.load_weights(weights, mapper=Qwen4ExpModel.hf_to_vllm_mapper)
    process_weights_after_loading(layer, rank.config.model_config, torch.device("cpu"))
    x = torch.randn(6, TEXT["hidden_size"], generator=torch.Generator().manual_seed(1))
    with ranks.set_forward_context(None, rank.config), torch.inference_mode():
        out = layer.mlp(x.clone())
    shared = layer.mlp.shared_expert
    return {
        "out": out,
        "rows": shared.gate_up_proj.weight.shape[0],
        "experts": layer.mlp.experts.routed_experts.w13_weight.shape[0],
    }


def ran(world, work, *args):
    results = ranks.run(world, work, *args)
    assert not isinstance(results, ranks.Refused), results
    return results


@pytest.mark.witness
def test_three_ranks_give_what_one_gives(tmp_path):
    path = write(tmp_path, **PLAIN)
    three = ran(3, block, path)
    (one,) = ran(1, block, path)
    for got in three:
        assert ranks.relative_error(got["out"], one["out"]) < FP32
        assert got["rows"] == 2 * WIDTH
    # The routed experts are split as before: 16 over three ranks.
    assert [got["experts"] for got in three] == [6, 5, 5]


def test_two_ranks_still_split_it(tmp_path):
    path = write(tmp_path, **PLAIN)
    two = ran(2, block, path)
    (one,) = ran(1, block, path)
    for got in two:
        assert ranks.relative_error(got["out"], one["out"]) < FP32
        assert got["rows"] == WIDTH


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # width, ranks, OCP MX group, expert parallel, sequence parallel
        ((640, 3, None, True, False), True),
        ((640, 2, None, True, False), False),
        ((640, 5, None, True, False), False),
        # Nothing replicates it but expert parallelism; sequence parallelism does so
        # by itself.
        ((640, 3, None, False, False), False),
        ((640, 3, None, True, True), False),
        ((0, 3, None, True, False), False),
        # With a group size the rule is upstream's.
        ((640, 4, 32, True, False), False),
        ((640, 8, 32, True, False), True),
        ((640, 3, 32, True, False), True),
    ],
)
def test_when_it_is_replicated(arguments, expected):
    assert replicates(*arguments) is expected
