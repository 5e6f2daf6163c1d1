# SPDX-License-Identifier: Apache-2.0
"""A random Qwen4Exp checkpoint in EXL3, and the same weights in BF16. Import before
vllm.

Every kind of tensor that exllamav3 writes for this model is in it: projections,
experts one by one at several rates, the MTP layer, the output head, rows of the n-gram
table. What it leaves in BF16 is left so.
"""

import json

import torch
from _exl3 import MARKERS, dense, weight
from _tiny_qwen4exp import TEXT, _Tensors
from safetensors.torch import save_file

SMALL = {
    **TEXT,
    "num_attention_heads": 4,
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 128,
    "shared_expert_intermediate_size": 128,
    "ple_embed_dim": 2560,  # 16 heads of 160, the only row that EXL3 has
}
NO_TABLE = {"ple_layer_ids": []}
LEAVES = {
    *("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    *("in_proj_qkv", "in_proj_z", "out_proj", "key_proj", "value_proj"),
    *("fc_embedding", "fc_hidden", "lm_head"),
}
RATES = [(80, "mcg"), (64, "3inst"), (96, "mcg"), (40, "mul1")]
TABLE = "ple.ple_embedding.ngram_embedding"


def row_words(count, bits, seed=0):
    """Random EXL3 rows: an fp16 scale, then any words."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(-(2**15), 2**15, (count, 1 + 10 * bits), generator=generator)
    rows = rows.to(torch.int16)
    scales = 0.1 + 0.4 * torch.rand(count, generator=generator)
    rows[:, 0] = scales.half().view(torch.int16)
    return rows


def decoded_rows(rows, bias):
    """The values of EXL3 rows by their definition, a bit at a time; fp32.

    Value i's state is the 16 bits of the ring that end with its own: its own bits
    lowest, those of the values before it above.
    """
    bits = (rows.shape[1] - 1) * 16 // 160
    words = rows[:, 1:].numpy().astype("<u2")
    ring = torch.from_numpy(words.copy().view("u1")).int()
    ring = (ring.unsqueeze(-1) >> torch.arange(8)) & 1
    ring = ring.flatten(1).view(len(rows), 160, bits)
    state = torch.zeros(len(rows), 160, dtype=torch.int64)
    for back in range(-(-16 // bits)):
        before = ring.roll(back, 1)
        for bit in range(bits):
            if back * bits + bit < 16:
                state |= before[:, :, bit].long() << (back * bits + bit)
    product = state * MARKERS["mul1"] % 2**32
    total = sum(product >> shift & 255 for shift in (0, 8, 16, 24))
    scale, offset = torch.tensor([0x1EEE, 0xC931 - 2**16], dtype=torch.int16).view(torch.float16)
    # A fused multiply-add in fp16: both factors are exact in float64.
    values = ((1024 + total).double() * scale.double() + offset.double()).half()
    scales = rows[:, :1].contiguous().view(torch.float16).float()
    return values.float() * scales + bias.float()


def _ple(text, exl3, plain, module, bits):
    from vllm.models.qwen4_exp.nvidia.ngram_embedding import (
        Qwen4ExpNGramEmbedding as Embedding,
    )

    heads, stem = 16, module.removesuffix(".ngram_embedding")
    sizes, offsets, total = Embedding._make_vocab_layout(
        ngram_vocab_size_base=text["ngram_vocab_size_base"],
        ngram_heads=heads,
        ple_dense_layer_id=0,
    )
    # Other multipliers than the model would make, so that the stored ones count.
    multipliers = torch.tensor([3, 1_000_003, 77_777], dtype=torch.int64)
    hashing = {
        "layer_multipliers": multipliers,
        "head_vocab_sizes": torch.tensor(sizes),
        "head_offsets": torch.tensor(offsets),
    }
    for name, value in hashing.items():
        exl3[f"{module}.{name}"] = value
        plain[f"{stem}.{name.replace('head_', 'ngram_heads_')}"] = value.clone()
    rows = -(-total // 128) * 128
    stored = row_words(rows, bits)
    bias = torch.randn(heads, 160, generator=torch.Generator().manual_seed(1)).half()
    exl3[f"{module}.head_bias"] = bias
    ends = torch.tensor([*offsets[1:], rows])
    head = torch.searchsorted(ends, torch.arange(rows), right=True)
    values = decoded_rows(stored, bias[head]).bfloat16()
    step, size = -(-rows // 3), -(-rows // text["split_ngram_parts"])
    for part in range(3):
        shard = stored[part * step : (part + 1) * step]
        exl3[f"{module}.shard_{part}.trellis"] = shard.clone()
    for part in range(text["split_ngram_parts"]):
        shard = values[part * size : (part + 1) * size]
        plain[f"{module}.shard_{part}.weight"] = shard.clone()


def write(folder, bits=5, **changes):
    """Write both checkpoints; return the paths of the EXL3 and the plain one."""
    text = {**SMALL, **changes}
    exl3, plain = {}, {}
    for number, (name, value) in enumerate(_Tensors(text).items()):
        module, _, param = name.rpartition(".")
        leaf = module.rpartition(".")[2]
        if TABLE in name:
            continue
        if param == "weight" and leaf in LEAVES:
            out, size = value.shape
            words, codebook = RATES[number % len(RATES)]
            if ".experts." not in name and ".shared_expert." not in name:
                words, codebook = RATES[0]
            tensors = weight(size, -(-out // 128) * 128, words, codebook, seed=number)
            exl3.update({f"{module}.{key}": t for key, t in tensors.items()})
            value = dense(tensors, torch.float32).t()[:out]
        else:
            exl3[name] = value.float() if name.endswith("A_log") else value.bfloat16()
        plain[name] = value.float() if name.endswith("A_log") else value.bfloat16()
    for layer in text["ple_layer_ids"]:
        _ple(text, exl3, plain, f"model.layers.{layer - 1}.{TABLE}", bits)
    config = {"quant_method": "exl3", "version": "1.6.5", "bits": 5.05, "head_bits": 6}
    paths = []
    for kind, tensors in (("exl3", exl3), ("plain", plain)):
        path = folder / kind
        path.mkdir(parents=True)
        settings = {**text, "quantization_config": config} if kind == "exl3" else text
        (path / "config.json").write_text(json.dumps(settings))
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
        save_file(tensors, str(path / "model.safetensors"))
        paths.append(str(path))
    return paths


def run(rank, path, drafts=2, switches=None, **engine):
    """A rank's logits of three steps (prefill, and a token more twice), the draft's
    too."""
    import os

    os.environ.update(switches or {})
    rank.join(path, drafts=drafts, **engine).load(draft=bool(drafts)).allocate()
    tokens = torch.randint(0, 499, (9,), generator=torch.Generator().manual_seed(1))
    context = torch.full((2, 2), SMALL["eos_token_id"], dtype=torch.int32)
    steps = [rank.step(tokens[:7], [5, 2], [5, 2], context)]
    later = torch.stack([tokens[3:5], tokens[5:7]]).int()
    steps.append(rank.step(tokens[7:], [1, 1], [6, 3], later))
    return steps
