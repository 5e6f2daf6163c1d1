# SPDX-License-Identifier: Apache-2.0
"""A random Qwen4Exp checkpoint, small but for its heads: 24 query, 2 key/value, 16
GDN key and 48 GDN value heads, one GDN layer, one QSA layer with PLE, and an MTP
layer. No width or row count of it divides by three."""

import json

import torch
from safetensors.torch import save_file

TEXT = {
    "model_type": "qwen4_exp_text",
    "architectures": ["Qwen4ExpForCausalLM"],
    "dtype": "bfloat16",
    "vocab_size": 500,
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "layer_types": ["linear_attention", "full_attention"],
    "full_attention_interval": 2,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "output_gate_type": "sigmoid",
    "mamba_ssm_dtype": "float32",
    "tie_word_embeddings": False,
    "eos_token_id": 499,
    "num_attention_heads": 24,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "partial_rotary_factor": 1.0,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e7,
        "partial_rotary_factor": 1.0,
    },
    "indexer_n_heads": 4,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 128,
    "indexer_budget": 2048,
    "indexer_compress_ratio": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "num_experts": 16,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "decoder_sparse_step": 1,
    "norm_topk_prob": True,
    "hc_count": 4,
    "hc_lowrank": 12,
    "ple_layer_ids": [2],
    "ple_embed_dim": 128,
    "ple_conv_kernel_size": 4,
    "ngram_size": 3,
    "heads_per_ngram": 8,
    "ngram_vocab_size_base": 40,
    "make_ngram_vocab_size_divisible_by": 128,
    "split_ngram_parts": 2,
    "mtp_num_hidden_layers": 1,
}
# The same without QSA, PLE and MTP: what there is runs in FP32.
PLAIN = {
    "dtype": "float32",
    "layer_types": ["linear_attention"] * 2,
    "ple_layer_ids": [],
    "mtp_num_hidden_layers": 0,
    **{f"indexer_{name}": None for name in ("n_heads", "kv_heads", "head_dim")},
    **{f"indexer_{name}": None for name in ("budget", "compress_ratio")},
}
FP8_MAX = 448.0


def ple_rows(text):
    """Rows of the n-gram table as the checkpoint pads them."""
    from vllm.models.qwen4_exp.nvidia.ngram_embedding import Qwen4ExpNGramEmbedding

    _, _, rows = Qwen4ExpNGramEmbedding._make_vocab_layout(
        ngram_vocab_size_base=text["ngram_vocab_size_base"],
        ngram_heads=(text["ngram_size"] - 1) * text["heads_per_ngram"],
        ple_dense_layer_id=0,
    )
    divisor = text["make_ngram_vocab_size_divisible_by"]
    return -(-rows // divisor) * divisor


class _Tensors(dict):
    """Random tensors by checkpoint name, the same for the same text config."""

    def __init__(self, text):
        super().__init__()
        self.text = text
        self.generator = torch.Generator().manual_seed(0)
        hidden = text["hidden_size"]
        self.add("model.embed_tokens", text["vocab_size"], hidden, scale=1.0)
        self.add("lm_head", text["vocab_size"], hidden)
        for index, kind in enumerate(text["layer_types"]):
            self.layer(f"model.layers.{index}", kind)
            if index + 1 in text["ple_layer_ids"]:
                self.ple(f"model.layers.{index}.ple")
        self.hyper_connection("model.hyper_connection_mixer", inject=False)
        if text["mtp_num_hidden_layers"]:
            self.add("mtp.fc_embedding", hidden, hidden)
            self.add("mtp.fc_hidden", hidden, hidden)
            self.norm("mtp.pre_fc_norm_embedding", hidden)
            self.norm("mtp.pre_fc_norm_hidden", hidden * text["hc_count"])
            self.hyper_connection("mtp.hyper_connection_mixer", inject=False)
            self.layer("mtp.layers.0", "full_attention")

    def add(self, module, *shape, scale=None, offset=0.0, param="weight"):
        value = torch.randn(*shape, generator=self.generator)
        value = value * (shape[-1] ** -0.5 if scale is None else scale) + offset
        self[f"{module}.{param}" if param else module] = value

    def norm(self, module, size, offset=0.0):
        self.add(module, size, scale=0.1, offset=offset)

    def hyper_connection(self, module, inject=True):
        rank, count = self.text["hc_lowrank"], self.text["hc_count"]
        width = count * self.text["hidden_size"]
        self.norm(f"{module}.hc_norm", width)
        self.add(f"{module}.input_mix_weight_down", rank, width)
        self.add(f"{module}.input_mix_weight_up", width, rank)
        if inject:
            self.add(f"{module}.block_inject_weight", count, width)

    def layer(self, module, kind):
        self.hyper_connection(f"{module}.attn_hyper_connection")
        self.hyper_connection(f"{module}.mlp_hyper_connection")
        if kind == "full_attention":
            self.attention(f"{module}.self_attn")
        else:
            self.gdn(f"{module}.linear_attn")
        self.moe(f"{module}.mlp")

    def attention(self, module):
        text, hidden = self.text, self.text["hidden_size"]
        dim, index = text["head_dim"], text["indexer_head_dim"]
        q, kv = text["num_attention_heads"] * dim, text["num_key_value_heads"] * dim
        self.add(f"{module}.q_proj", 2 * q, hidden)
        self.add(f"{module}.k_proj", kv, hidden)
        self.add(f"{module}.v_proj", kv, hidden)
        self.add(f"{module}.o_proj", hidden, q)
        self.norm(f"{module}.q_norm", dim)
        self.norm(f"{module}.k_norm", dim)
        rows = (text["indexer_n_heads"] + 1) * index
        self.add(f"{module}.indexer.index_qk_proj", rows, hidden)
        self.norm(f"{module}.indexer.q_layernorm", index)
        self.norm(f"{module}.indexer.k_layernorm", index)

    def gdn(self, module):
        text, hidden = self.text, self.text["hidden_size"]
        heads, dim = text["linear_num_value_heads"], text["linear_value_head_dim"]
        key = text["linear_num_key_heads"] * text["linear_key_head_dim"]
        qkv, value = 2 * key + heads * dim, heads * dim
        self.add(f"{module}.in_proj_qkv", qkv, hidden)
        self.add(f"{module}.in_proj_z", value, hidden)
        self.add(f"{module}.in_proj_b", heads, hidden)
        self.add(f"{module}.in_proj_a", heads, hidden)
        self.add(f"{module}.conv1d", qkv, 1, text["linear_conv_kernel_dim"])
        self.add(f"{module}.A_log", heads, scale=0.5, param=None)
        self.add(f"{module}.dt_bias", heads, scale=0.5, param=None)
        self.norm(f"{module}.norm", dim, offset=1.0)
        self.add(f"{module}.out_proj", hidden, value)

    def moe(self, module):
        text, hidden = self.text, self.text["hidden_size"]
        self.add(f"{module}.gate", text["num_experts"], hidden)
        self.add(f"{module}.shared_expert_gate", 1, hidden)
        experts = {"shared_expert": text["shared_expert_intermediate_size"]}
        for number in range(text["num_experts"]):
            experts[f"experts.{number}"] = text["moe_intermediate_size"]
        for name, width in experts.items():
            self.add(f"{module}.{name}.gate_proj", width, hidden)
            self.add(f"{module}.{name}.up_proj", width, hidden)
            self.add(f"{module}.{name}.down_proj", hidden, width)

    def ple(self, module):
        text, hidden = self.text, self.text["hidden_size"]
        width, embed = text["hc_count"] * hidden, text["ple_embed_dim"]
        self.add(f"{module}.key_proj", width, embed)
        self.add(f"{module}.value_proj", hidden, embed)
        for name in ("norm_key", "norm_query", "norm_conv"):
            self.norm(f"{module}.{name}", width)
        self.add(f"{module}.conv1d", width, 1, text["ple_conv_kernel_size"])
        rows, parts = ple_rows(text), text["split_ngram_parts"]
        size, heads = -(-rows // parts), (text["ngram_size"] - 1) * 8
        for part in range(parts):
            name = f"{module}.ple_embedding.ngram_embedding.shard_{part}"
            self.add(name, min(size, rows - part * size), embed // heads)


def _to_fp8(tensors):
    """Projections of the heads in ModelOpt's FP8: per channel going in, per tensor
    going out, so that a rank's activations are quantized as one rank's are."""
    layers = {}
    for name in list(tensors):
        module, _, param = name.rpartition(".")
        leaf, weight = module.rpartition(".")[2], tensors[name]
        if param != "weight" or ".indexer." in name:
            continue
        if leaf in ("q_proj", "k_proj", "v_proj", "in_proj_qkv", "in_proj_z"):
            scale = weight.abs().amax(1) / FP8_MAX
            tensors[name] = (weight / scale[:, None]).to(torch.float8_e4m3fn)
            layers[module] = {"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}
        elif leaf in ("o_proj", "out_proj"):
            scale = weight.abs().max() / FP8_MAX
            tensors[name] = (weight / scale).to(torch.float8_e4m3fn)
            tensors[f"{module}.input_scale"] = torch.tensor(4 / FP8_MAX)
            layers[module] = {"quant_algo": "FP8"}
        else:
            continue
        tensors[f"{module}.weight_scale"] = scale
    return {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": layers,
        "ignore": [],
    }


def write(folder, fp8=False, **changes):
    """Write config.json and model.safetensors; return the folder's path."""
    text = {**TEXT, **changes}
    tensors = _Tensors(text)
    if fp8:
        text["quantization_config"] = _to_fp8(tensors)
    dtype = getattr(torch, text["dtype"])
    for name, value in tensors.items():
        scale = name.endswith(("A_log", "_scale"))
        if value.dtype == torch.float32 and not scale:
            tensors[name] = value.to(dtype)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(text))
    save_file(dict(tensors), str(folder / "model.safetensors"))
    return str(folder)
