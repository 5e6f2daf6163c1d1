# SPDX-License-Identifier: Apache-2.0
"""Qwen4Exp's MTP draft in EXL3: projections, experts, fusion layers and head run by
the same methods as the target's, loaded by vLLM's own loader.
"""

from unittest import mock

import _ranks as ranks  # before vllm
import pytest
import torch
from _exl3_qwen4exp import NO_TABLE, SMALL, run, write

REFERENCE = {"VLLM_EXL3_KERNELS": "0"}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write(tmp_path_factory.mktemp("model"), **NO_TABLE)


def whole(rank, path, switches):
    try:
        steps = run(rank, path, switches=switches)
    except AttributeError as error:  # what a layer was not handed
        return ranks.Refused(error)
    draft = rank.draft.model
    layer = draft.layers[0]
    modules = {
        "head": rank.draft.lm_head,
        "fc": draft.fc_embedding,
        "fc hidden": draft.fc_hidden,
        "qkv": layer.self_attn.qkv_proj,
        "out": layer.self_attn.o_proj,
        "shared": layer.mlp.shared_expert.gate_up_proj,
        "experts": layer.mlp.experts.routed_experts,
        "target head": rank.model.lm_head,
    }
    kinds = {name: type(m.quant_method).__name__ for name, m in modules.items()}
    held = {
        name: bool(module.trellis.count_nonzero() > 0)
        for name, module in modules.items()
        if hasattr(module, "trellis")
    }
    return {"steps": steps, "kinds": kinds, "held": held}


def ran(world, *args):
    results = ranks.run(world, whole, *args)
    assert not isinstance(results, ranks.Refused), results
    return results


@pytest.mark.witness
def test_draft_and_target_give_the_logits_of_their_weights(paths):
    exl3, plain = paths
    (got,) = ran(1, exl3, REFERENCE)
    (expected,) = ran(1, plain, REFERENCE)
    assert got["kinds"].pop("experts") == "Exl3MoEMethod"
    assert set(got["kinds"].values()) == {"Exl3LinearMethod"}
    assert all(got["held"].values()) and len(got["held"]) == 7
    for step, wanted in zip(got["steps"], expected["steps"], strict=True):
        for name, logits in wanted.items():
            assert logits.shape[-1] == SMALL["vocab_size"]
            # The plain weights are rounded to BF16, layer by layer.
            assert ranks.relative_error(step[name], logits) < 5e-2, name


@pytest.mark.witness
def test_two_ranks_give_the_same(paths):
    (one,) = ran(1, paths[0], REFERENCE)
    both = ran(2, paths[0], REFERENCE)
    for step, wanted in zip(both[0]["steps"], one["steps"], strict=True):
        for name, logits in wanted.items():
            assert torch.isfinite(step[name]).all()
            assert ranks.relative_error(step[name], logits) < 3e-2, name


def on_amd(rank, path):
    """The heads that AMD's classes make of a checkpoint: built and loaded, not run. They
    register their operators under the names of NVIDIA's, which stand here already."""
    import vllm.models.qwen4_exp as package
    from vllm.utils import torch_utils

    register = torch_utils.direct_register_custom_op

    def once(op_name, *args, **kwargs):
        if not hasattr(torch.ops.vllm, op_name):
            register(op_name, *args, **kwargs)

    with mock.patch.object(torch_utils, "direct_register_custom_op", once):
        from vllm.models.qwen4_exp.amd import model, mtp, qsa
    qsa.is_flash_attn_varlen_func_available = lambda: True
    package.Qwen4ExpForCausalLM = model.Qwen4ExpForCausalLM
    package.Qwen4ExpForConditionalGeneration = model.Qwen4ExpForConditionalGeneration
    package.Qwen4ExpMTP = mtp.Qwen4ExpMTP
    try:
        rank.join(path, drafts=2).load(draft=True)
    except AttributeError as error:
        return ranks.Refused(error)
    heads = rank.model.lm_head, rank.draft.lm_head
    assert all(head.trellis.count_nonzero() > 0 for head in heads)
    kinds = [type(head.quant_method).__name__ for head in heads]
    return kinds, [type(m).__module__ for m in (rank.model, rank.draft)]


@pytest.mark.witness
def test_amds_draft_has_its_head_in_exl3_too(paths):
    results = ranks.run(1, on_amd, paths[0])
    assert not isinstance(results, ranks.Refused), results
    ((kinds, modules),) = results
    where = "vllm.models.qwen4_exp.amd"
    assert modules == [f"{where}.model", f"{where}.mtp"]
    assert kinds == ["Exl3LinearMethod"] * 2
