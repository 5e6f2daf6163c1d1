# SPDX-License-Identifier: Apache-2.0
"""EXL3 output heads: loaded, cut over the ranks, and computed."""

import itertools

import _exl3_device as device
import pytest
import torch

import _exl3 as x  # isort: skip

if not device.GPU:
    import _ranks as ranks

# 500 tokens are stored in four blocks of 128 columns.
VOCAB, HIDDEN = 500, 256
HEAD = x.weight(HIDDEN, 512, 96, "mcg", seed=5)


def head(monkeypatch, rank=0, ranks=1, tensors=HEAD, vocab=VOCAB, hidden=HIDDEN, **kwargs):
    """One rank's output head, built as a model builds it, and loaded."""
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers import vocab_parallel_embedding as module

    monkeypatch.setattr(module, "get_tensor_model_parallel_rank", lambda: rank)
    monkeypatch.setattr(module, "get_tensor_model_parallel_world_size", lambda: ranks)
    config = x.config_of({"lm_head": tensors})
    with set_current_vllm_config(VllmConfig()):
        try:
            layer = module.ParallelLMHead(
                vocab, hidden, quant_config=config, prefix="lm_head", **kwargs
            )
        except NotImplementedError as error:
            if "ParallelLMHead does not support" not in str(error):
                raise
            pytest.fail(str(error))
    for name, tensor in tensors.items():
        param = getattr(layer, name)
        param.weight_loader(param, tensor)
    layer.quant_method.process_weights_after_loading(layer)
    return layer


def logits(layer, inputs):
    return layer.quant_method.apply(layer, inputs, bias=None)


def inputs(rows):
    return torch.randn(rows, HIDDEN, generator=torch.Generator().manual_seed(rows))


def dense(rows):
    return rows.double() @ x.dense(HEAD)[:, :VOCAB]


@pytest.mark.witness
def test_a_head_gives_its_logits(monkeypatch):
    layer = head(monkeypatch)
    out = logits(layer, inputs(3))
    assert out.shape == (3, 512)  # the vocabulary, padded by vLLM to 64
    assert x.relative_error(out[:, :VOCAB], dense(inputs(3))) < 3e-4
    half = logits(layer, inputs(3).half())
    assert half.dtype == torch.float16
    assert x.relative_error(half[:, :VOCAB], dense(inputs(3).half())) < 5e-4


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_ranks_hold_a_vocabulary_range_each(monkeypatch, ranks):
    """Over three the cuts fall inside blocks of 128, and the last rank has columns
    that the checkpoint does not have."""
    parts = []
    for rank in range(ranks):
        layer = head(monkeypatch, rank, ranks, padding_size=192 if ranks == 3 else 64)
        assert layer.trellis.numel() <= HEAD["trellis"].numel() / min(ranks, 2)
        part = logits(layer, inputs(2))
        assert part.shape[1] == layer.num_embeddings_per_partition
        parts.append(part)
    whole = torch.cat(parts, 1)
    assert x.relative_error(whole[:, :VOCAB], dense(inputs(2))) < 3e-4
    assert whole.isfinite().all()


def test_columns_past_the_checkpoint_are_zero(monkeypatch):
    """500 tokens are padded to 640 for five ranks; 512 are stored."""
    last = head(monkeypatch, 4, 5, padding_size=640)
    assert last.shard_indices.padded_org_vocab_start_index == 512
    assert not logits(last, inputs(2)).any()
    fourth = logits(head(monkeypatch, 3, 5, padding_size=640), inputs(2))
    expected = inputs(2).double() @ x.dense(HEAD)[:, 384:512]
    assert x.relative_error(fourth, expected) < 3e-4


def test_other_heads_stay_what_they_were(monkeypatch):
    from vllm.model_executor.layers import vocab_parallel_embedding as module

    config = x.config_of({"m.layer": HEAD})
    from vllm.config import VllmConfig, set_current_vllm_config

    monkeypatch.setattr(module, "get_tensor_model_parallel_rank", lambda: 0)
    monkeypatch.setattr(module, "get_tensor_model_parallel_world_size", lambda: 1)
    with set_current_vllm_config(VllmConfig()):
        plain = module.ParallelLMHead(64, 128, quant_config=config, prefix="lm_head")
        assert type(plain.quant_method) is module.UnquantizedEmbeddingMethod
        config = x.config_of({"model.embed_tokens": HEAD})
        with pytest.raises(NotImplementedError, match="VocabParallelEmbedding does not"):
            module.VocabParallelEmbedding(
                VOCAB, HIDDEN, quant_config=config, prefix="model.embed_tokens"
            )
    with pytest.raises(NotImplementedError, match="added vocabulary"):
        head(monkeypatch, org_num_embeddings=VOCAB - 8)


def test_another_models_head_is_refused_by_name(monkeypatch):
    with pytest.raises(ValueError, match="lm_head.*256 x 512, the layer needs 256 x 700"):
        head(monkeypatch, vocab=700)


NAMES = ("KERNELS", "LINEAR_GEMV", "LM_HEAD", "FUSED_HADAMARD")


@pytest.mark.parametrize("values", list(itertools.product("01", repeat=4)), ids="".join)
def test_every_switch_has_its_path(monkeypatch, values):
    """The head's kernels have a switch of their own; that of linear layers does not
    reach it, nor does its own reach them."""
    from vllm.model_executor.layers.quantization.utils import (
        exl3_linear,
        exl3_ref,
        exl3_triton,
    )

    paths = x.Calls(
        monkeypatch,
        reference=(exl3_ref, "linear"),
        gemv=(exl3_triton, "gemv"),
        kernel_in=(exl3_triton, "rotate_in"),
        kernel_out=(exl3_triton, "rotate_out"),
        torch_in=(exl3_linear, "_rotate_in"),
        torch_out=(exl3_linear, "_rotate_out"),
    )
    for name, value in zip(NAMES, values):
        monkeypatch.setenv(f"VLLM_EXL3_{name}", value)
    output = head(monkeypatch)
    linear = x.linear_layer(
        monkeypatch, "ReplicatedLinear", (HIDDEN, 512), {"m.layer": HEAD}, [(None, HEAD)]
    )
    for name in NAMES:  # read when the layer was built, not now
        monkeypatch.setenv(f"VLLM_EXL3_{name}", "1")
    rows = inputs(2)
    master, gemv, lm_head, fused = (value == "1" for value in values)
    kernels = ["gemv", "kernel_in", "kernel_out"]
    if not fused:
        kernels = ["gemv", "torch_in", "torch_out"]
    out = logits(output, rows)
    assert paths.take() == (kernels if master and lm_head else ["reference"])
    assert x.relative_error(out[:, :VOCAB], dense(rows)) < 3e-4
    linear(rows)
    assert paths.take() == (kernels if master and gemv else ["reference"])


def test_the_switch_counts_for_the_compile_cache(monkeypatch):
    from vllm import envs

    monkeypatch.setenv("VLLM_EXL3_LM_HEAD", "0")
    assert envs.compile_factors()["VLLM_EXL3_LM_HEAD"] is False
    monkeypatch.delenv("VLLM_EXL3_LM_HEAD")
    assert envs.compile_factors()["VLLM_EXL3_LM_HEAD"] is True


def loaded_head(rank, path):
    rank.join(path).load()
    batch = torch.randn(3, 128, generator=torch.Generator().manual_seed(0)).bfloat16()
    with torch.inference_mode():
        return batch, rank.model.compute_logits(batch)


@pytest.mark.witness
@pytest.mark.skipif(device.GPU, reason="the ranks are on a CPU")
def test_qwen4exp_loads_its_head(tmp_path):
    """By vLLM's own loader, in a checkpoint that is EXL3 throughout."""
    import _exl3_qwen4exp as q
    from safetensors.torch import load_file

    path, _ = q.write(tmp_path, **q.NO_TABLE, mtp_num_hidden_layers=0, num_experts=2)
    results = ranks.run(1, loaded_head, path)
    assert not isinstance(results, ranks.Refused), results
    batch, got = results[0]
    stored = load_file(f"{path}/model.safetensors")
    tensors = {
        name.removeprefix("lm_head."): tensor
        for name, tensor in stored.items()
        if name.startswith("lm_head.")
    }
    assert got.shape == (3, q.SMALL["vocab_size"])
    expected = batch.double() @ x.dense(tensors)[:, : got.shape[1]]
    assert x.relative_error(got, expected) < 4e-3


def test_qwen4exp_heads_take_exl3_alone():
    """Other methods' checkpoints keep the head in BF16, and so do their models."""
    from vllm.model_executor.layers.quantization.fp8 import Fp8Config
    from vllm.models.qwen4_exp.nvidia import model

    config = x.config_of({"lm_head": HEAD})
    assert model.head_quant_config(config) is config
    assert model.head_quant_config(Fp8Config()) is None
    assert model.head_quant_config(None) is None


ALL = (*NAMES, "MOE_DECODE", "MOE_GROUPED", "PREFILL_RECONSTRUCT")
SQUARE = x.weight(128, 128, 80, "mcg", seed=7)
EXPERTS = x.expert_weights(2, 128, 128)
OFF = [set(names) for count in range(3) for names in itertools.combinations(ALL, count)]


@pytest.mark.parametrize("off", OFF, ids=lambda names: "+".join(sorted(names)) or "none")
def test_each_switch_alone_and_every_two(monkeypatch, off):
    """One layer of each kind, few and many rows: the path and the values."""
    from vllm.model_executor.layers.quantization.utils import (
        exl3_linear,
        exl3_moe,
        exl3_ref,
        exl3_triton,
        exl3_triton_moe,
    )

    for name in off:
        monkeypatch.setenv(f"VLLM_EXL3_{name}", "0")
    # The interpreter is slow: three rows are many, and so are two tokens.
    monkeypatch.setattr(exl3_linear, "MAX_GEMV_ROWS", 2)
    monkeypatch.setattr(exl3_triton_moe, "MAX_TOKENS_BY_PAIR", 1)
    linear = x.linear_layer(
        monkeypatch, "ReplicatedLinear", (128, 128), {"m.layer": SQUARE}, [(None, SQUARE)]
    )
    output = head(monkeypatch, tensors=SQUARE, vocab=128, hidden=128)
    experts = x.experts_layer(EXPERTS, 128, 128, 2)
    list(experts.load_weights(x.expert_stream(EXPERTS)))
    experts.quant_method.process_weights_after_loading(experts)
    paths = x.Calls(
        monkeypatch,
        reference=(exl3_ref, "linear"),
        gemv=(exl3_triton, "gemv"),
        reconstruct=(exl3_triton, "dequant"),
        kernel_in=(exl3_triton, "rotate_in"),
        kernel_out=(exl3_triton, "rotate_out"),
        torch_in=(exl3_linear, "_rotate_in"),
        torch_out=(exl3_linear, "_rotate_out"),
        experts=(exl3_moe, "reference"),
        by_pair=(exl3_triton_moe, "by_pair"),
        grouped=(exl3_triton_moe, "grouped"),
    )

    def way(kernel, *names):
        return [kernel] if not off & {"KERNELS", *names} else ["reference"]

    def rotated(path):
        if path == ["reference"]:
            return path
        kind = "torch" if "FUSED_HADAMARD" in off else "kernel"
        return sorted([*path, f"{kind}_in", f"{kind}_out"])

    few, many = inputs(2)[:, :128], inputs(3)[:, :128]
    for run, rows, expected in (
        (linear, few, way("gemv", "LINEAR_GEMV")),
        (linear, many, way("reconstruct", "PREFILL_RECONSTRUCT")),
        (lambda rows: logits(output, rows), few, way("gemv", "LM_HEAD")),
    ):
        out = run(rows.contiguous())
        assert paths.take() == rotated(expected)
        assert x.relative_error(out, rows.double() @ x.dense(SQUARE)) < 3e-4
    for tokens, kernel, name in ((1, "by_pair", "MOE_DECODE"), (2, "grouped", "MOE_GROUPED")):
        rows, weights, ids = x.routed(tokens, 128, 2, 1)
        out = experts.forward_modular(rows, weights, ids)
        expected = way(kernel, name)
        assert paths.take() == (["experts"] if expected == ["reference"] else expected)
        assert x.relative_error(out, x.moe(rows, weights, ids, EXPERTS)) < 4.5e-4


@pytest.mark.gpu
@pytest.mark.witness
def test_parity_and_capture_on_a_gpu(monkeypatch):
    layer = head(monkeypatch).cuda()
    for rows, dtype in itertools.product((1, 4, 100), (torch.bfloat16, torch.float16)):
        batch = inputs(rows).to(dtype).cuda()
        out = logits(layer, batch)[:, :VOCAB]
        limit = 2e-3 if dtype == torch.bfloat16 else 5e-4
        assert x.relative_error(out.cpu(), dense(batch.cpu())) < limit
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = logits(layer, batch)
        batch.mul_(-2)
        graph.replay()
        assert torch.equal(captured, logits(layer, batch))
