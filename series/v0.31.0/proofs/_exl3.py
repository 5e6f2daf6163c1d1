# SPDX-License-Identifier: Apache-2.0
"""Random EXL3 weights and small checkpoints. Import before vllm."""

import json

import _cpu
import numpy as np
import torch

MARKERS = {"mcg": 0xCBAC1FED, "mul1": 0x83DCD12D}
# Every rate of the format: 16-bit words a tile, codebook.
RATES = [(16 * bits, codebook) for bits in range(1, 9) for codebook in ("3inst", "mcg", "mul1")] + [
    (16 * bits + 8, "mul1") for bits in (1, 2, 3)
]


def weight(rows, cols, words=80, codebook="mcg", seed=0, packed_signs=False):
    """The tensors of one EXL3 weight; any int16 words are valid ones."""
    rng = np.random.default_rng([seed, rows, cols, words])

    def signs(count):
        if packed_signs:
            return torch.from_numpy(rng.integers(-(2**15), 2**15, count // 16, dtype=np.int16))
        values = rng.choice([-1.0, 1.0], count) * rng.uniform(0.5, 1.5, count)
        return torch.from_numpy(values).half()

    tensors = {
        "trellis": torch.from_numpy(
            rng.integers(-(2**15), 2**15, (rows // 16, cols // 16, words), dtype=np.int16)
        ),
        "su" if packed_signs else "suh": signs(rows),
        "sv" if packed_signs else "svh": signs(cols),
    }
    # Keep the outputs of deep stacks near the inputs' size.
    if not packed_signs:
        tensors["svh"] /= 1.25 * rows**0.5
    if codebook in MARKERS:
        tensors[codebook] = torch.tensor(MARKERS[codebook] - 2**32, dtype=torch.int32)
    return tensors


def named(name, tensors):
    return {f"{name}.{suffix}": tensor for suffix, tensor in tensors.items()}


LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "vocab_size": 512,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "dtype": "bfloat16",
    "tie_word_embeddings": False,
}


def write(folder, tensors, config=None, **quantization):
    """A checkpoint folder of these tensors."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = {
        **(config or LLAMA),
        "quantization_config": {
            "quant_method": "exl3",
            "version": "1.6.5",
            "bits": 5.05,
            "head_bits": 6,
            "calibration": {"rows": 250, "cols": 2048},
            "out_scales": "auto",
            "codebook": "mcg",
            **quantization,
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        folder / "model.safetensors",
    )
    return str(folder)


def model_config(folder):
    from vllm.config.model import ModelConfig

    _cpu.models_are_asked_in_this_process()
    return ModelConfig(model=folder, skip_tokenizer_init=True, dtype="bfloat16")


def quant_config(folder):
    """The quantization config that the engine would build for a folder."""
    from vllm.config import VllmConfig
    from vllm.config.load import LoadConfig

    return VllmConfig._get_quantization_config(model_config(folder), LoadConfig())


def relative_error(out, reference):
    reference = reference.double()
    return ((out.double() - reference).norm() / reference.norm()).item()


def config_of(groups, packed=None):
    """A quantization config that knows these weights (name -> tensors)."""
    from vllm.model_executor.layers.quantization import get_quantization_config
    from vllm.model_executor.layers.quantization.exl3 import parse_headers

    dtypes = {torch.int16: "I16", torch.float16: "F16", torch.int32: "I32"}
    config = get_quantization_config("exl3")()
    config.quantized_layers = parse_headers(
        {
            key: {"dtype": dtypes[t.dtype], "shape": list(t.shape)}
            for name, tensors in groups.items()
            for key, t in named(name, tensors).items()
        }
    )
    config.packed_modules_mapping = packed or {}
    return config


def dense(tensors, dtype=torch.float64):
    """The weight of a group, by the reference (which has a proof of its own)."""
    from vllm.model_executor.layers.quantization.utils import exl3_ref

    codebook = next((c for c in MARKERS if c in tensors), "3inst")
    return exl3_ref.dequantize(
        tensors["trellis"], tensors["suh"], tensors["svh"], codebook, dtype=dtype
    )


PROJECTIONS = ("gate_proj", "up_proj", "down_proj")


def expert_weights(count, hidden, inter, kinds=((80, "mcg"),), seed=0):
    """Experts' tensors as `{"0.gate_proj": ..., ...}`, rates taken in turn."""
    experts, i = {}, 0
    for e in range(count):
        for name in PROJECTIONS:
            size = (inter, hidden) if name == "down_proj" else (hidden, inter)
            experts[f"{e}.{name}"] = weight(*size, *kinds[i % len(kinds)], seed=seed + i)
            i += 1
    return experts


def experts_layer(
    experts, hidden, inter, count, top_k=2, ep=(0, 1), tp=(0, 1), prefix="m.experts", **kwargs
):
    """One rank's routed experts, built without a process group. `ep` and `tp` are
    (rank, ranks)."""
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.fused_moe import (
        FusedMoEConfig,
        MoEActivation,
        RoutedExperts,
    )
    from vllm.model_executor.layers.fused_moe.config import (
        FusedMoEParallelConfig,
        RoutingMethodType,
    )
    from vllm.model_executor.layers.fused_moe.expert_map_manager import (
        ExpertMapManager,
    )

    parallel = FusedMoEParallelConfig(
        tp_size=tp[1],
        tp_rank=tp[0],
        pcp_size=1,
        pcp_rank=0,
        dp_size=1,
        dp_rank=0,
        ep_size=ep[1],
        ep_rank=ep[0],
        sp_size=1,
        use_ep=ep[1] > 1,
        all2all_backend="allgather_reducescatter",
        enable_eplb=False,
    )
    manager = ExpertMapManager(
        max_num_batched_tokens=64,
        top_k=top_k,
        global_num_experts=count,
        num_redundant_experts=0,
        num_expert_group=None,
        moe_parallel_config=parallel,
        placement_strategy="linear",
        enable_eplb=False,
    )
    activation = kwargs.pop("activation", MoEActivation.SILU)
    config = FusedMoEConfig(
        num_experts=count,
        experts_per_token=top_k,
        hidden_dim=hidden,
        intermediate_size=inter,
        num_local_experts=manager.local_num_experts,
        num_logical_experts=count,
        activation=activation,
        device="cpu",
        routing_method=RoutingMethodType.Renormalize,
        moe_parallel_config=parallel,
        in_dtype=torch.float32,
        has_bias=kwargs.pop("has_bias", False),
    )
    quant = None
    if experts is not None:
        quant = config_of({f"{prefix}.{n}": t for n, t in experts.items()})
    with set_current_vllm_config(VllmConfig()):
        return RoutedExperts(prefix, torch.float32, config, quant, manager, **kwargs)


def expert_stream(experts):
    """The tensors with their names below the layer."""
    return [item for name, t in experts.items() for item in named(name, t).items()]


def moe(inputs, weights, ids, experts, inter=None, dtype=torch.float64):
    """The whole layer, dense."""
    out = torch.zeros(inputs.shape[0], inputs.shape[1], dtype=dtype)
    for e in ids.unique().tolist():
        gate, up, down = (dense(experts[f"{e}.{n}"], dtype) for n in PROJECTIONS)
        token, k = (ids == e).nonzero(as_tuple=True)
        x = inputs[token].to(dtype)
        hidden = torch.nn.functional.silu(x @ gate) * (x @ up)
        out.index_add_(0, token, weights[token, k].to(dtype)[:, None] * (hidden @ down))
    return out


def routed(tokens, hidden, count, top_k, seed=0):
    """Inputs, top-k weights and ids as a softmax router gives them."""
    rng = torch.Generator().manual_seed(seed)
    inputs = torch.randn(tokens, hidden, generator=rng)
    logits = torch.randn(tokens, count, generator=rng)
    weights, ids = logits.softmax(-1).topk(top_k, -1)
    return inputs, weights / weights.sum(-1, keepdim=True), ids.int()


PACKED = {
    "qkv_proj": ["q_proj", "k_proj", "v_proj"],
    "gate_up_proj": ["gate_proj", "up_proj"],
    "in_proj_qkvz": ["in_proj_qkv", "in_proj_z"],
    "in_proj_ba": ["in_proj_b", "in_proj_a"],
}


def linear_layer(
    monkeypatch, kind, args, groups, stream, rank=0, ranks=1, prefix="m.layer", **kwargs
):
    """One rank's layer, built and loaded as the engine does it, without a process
    group."""
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers import linear

    monkeypatch.setattr(linear, "get_tensor_model_parallel_rank", lambda: rank)
    monkeypatch.setattr(linear, "get_tensor_model_parallel_world_size", lambda: ranks)
    if kind == "RowParallelLinear":
        kwargs.setdefault("reduce_results", False)
    kwargs.setdefault("bias", False)
    kwargs.setdefault("params_dtype", torch.float32)
    with set_current_vllm_config(VllmConfig()):
        layer = getattr(linear, kind)(
            *args,
            return_bias=False,
            quant_config=config_of(groups, PACKED),
            prefix=prefix,
            **kwargs,
        )
    load(layer, stream)
    layer.quant_method.process_weights_after_loading(layer)
    return layer


def load(layer, stream):
    """What AutoWeightsLoader hands to a layer: names below it, shard ids on tensors."""
    weights = []
    for shard_id, tensors in stream:
        for name, tensor in tensors.items():
            tensor = tensor.clone()
            if shard_id is not None:
                tensor.shard_id = shard_id
            weights.append((name, tensor))
    if hasattr(layer, "load_weights"):
        list(layer.load_weights(weights))
        return
    for name, tensor in weights:
        param = getattr(layer, name)
        param.weight_loader(param, tensor)


class Calls:
    """Which of some functions are entered, while they still do their work."""

    def __init__(self, monkeypatch, **functions):
        self.seen = []
        for label, (module, name) in functions.items():
            monkeypatch.setattr(module, name, self._record(label, module, name))

    def _record(self, label, module, name):
        function = getattr(module, name)

        def recording(*args, **kwargs):
            self.seen.append(label)
            return function(*args, **kwargs)

        return recording

    def take(self):
        seen, self.seen = self.seen, []
        return sorted(set(seen))
