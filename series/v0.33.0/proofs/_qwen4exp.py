# SPDX-License-Identifier: Apache-2.0
"""Qwen3.8-Flash-Next's geometry as `config.json` folders. Import before vllm."""

import copy
import json

import _cpu

WINDOW = 262144
THETA = 10_000_000
ROPE = {
    "mrope_interleaved": True,
    "mrope_section": [11, 11, 10],
    "partial_rotary_factor": 0.25,
    "rope_theta": THETA,
    "rope_type": "default",
}
# What a user has to write at least, and the same with every field spelled out.
PARTIAL_YARN = {
    "rope_type": "yarn",
    "factor": 2.0,
    "original_max_position_embeddings": WINDOW,
}
YARN = {**ROPE, **PARTIAL_YARN}

TEXT = {
    "model_type": "qwen4_exp_text",
    "hidden_size": 2560,
    "intermediate_size": 12288,
    "num_hidden_layers": 48,
    "num_attention_heads": 24,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "vocab_size": 248320,
    "max_position_embeddings": WINDOW,
    "rms_norm_eps": 1e-6,
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 12,
    "full_attention_interval": 4,
    "output_gate_type": "sigmoid",
    "attention_bias": False,
    "hidden_act": "silu",
    "mamba_ssm_dtype": "float32",
    "tie_word_embeddings": False,
    "eos_token_id": 248044,
    "dtype": "bfloat16",
    "linear_num_value_heads": 48,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 640,
    "shared_expert_intermediate_size": 640,
    "hc_count": 4,
    "hc_lowrank": 320,
    "indexer_budget": 2048,
    "indexer_compress_ratio": 4,
    "indexer_head_dim": 128,
    "indexer_kv_heads": 1,
    "indexer_n_heads": 4,
    "ple_conv_kernel_size": 4,
    "ple_embed_dim": 2560,
    "ple_layer_ids": [2],
    "heads_per_ngram": 8,
    "make_ngram_vocab_size_divisible_by": 128,
    "ngram_size": 3,
    "ngram_vocab_size_base": 20_000_000,
    "split_ngram_parts": 128,
    "mtp_num_hidden_layers": 1,
    "mtp_use_dedicated_embeddings": False,
    "partial_rotary_factor": 0.25,
    "rope_parameters": ROPE,
}
VISION = {
    "model_type": "qwen4_exp",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "depth": 27,
    "num_heads": 16,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 2560,
    "deepstack_visual_indexes": [],
}


def _write(folder, config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def wrapper(folder, **text):
    """The checkpoint as it is published: a vision wrapper round a text model."""
    return _write(
        folder,
        {
            "architectures": ["Qwen4ExpForConditionalGeneration"],
            "model_type": "qwen4_exp",
            "dtype": "bfloat16",
            "text_config": {**copy.deepcopy(TEXT), **text},
            "vision_config": copy.deepcopy(VISION),
            "image_token_id": 248056,
            "video_token_id": 248057,
            "vision_start_token_id": 248053,
            "vision_end_token_id": 248054,
            "tie_word_embeddings": False,
        },
    )


def text_only(folder, **text):
    """A text-only checkpoint of the same geometry."""
    config = {**copy.deepcopy(TEXT), **text}
    return _write(folder, {**config, "architectures": ["Qwen4ExpForCausalLM"]})


def model_config(folder, max_model_len=None, hf_overrides=None, **kwargs):
    from vllm.config.model import ModelConfig

    _cpu.models_are_asked_in_this_process()
    return ModelConfig(
        model=folder,
        skip_tokenizer_init=True,
        max_model_len=max_model_len,
        hf_overrides=copy.deepcopy(hf_overrides or {}),
        dtype="bfloat16",
        **kwargs,
    )
