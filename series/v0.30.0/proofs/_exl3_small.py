# SPDX-License-Identifier: Apache-2.0
"""A small model of EXL3 layers, as vLLM builds, loads and runs them; norms, attention and
routing between them are torch's. Import before vllm."""

import torch

import _exl3 as x  # isort: skip

HEADS = (256, 128, 128)


def block(monkeypatch, n):
    """One layer's EXL3 parts, and their weights: qkv, output, experts."""
    names = [f"m.{n}.{part}_proj" for part in "qkvo"]
    sizes = (256, 128, 128, 256)
    rates = ((80, "mcg"), (64, "3inst"), (40, "mul1"), (96, "mcg"))
    held = [x.weight(256, c, *rates[i], seed=10 * n + i) for i, c in enumerate(sizes)]
    experts = x.expert_weights(8, 256, 128, ((80, "mcg"), (64, "3inst")), seed=100 * n)
    joined = ("QKVParallelLinear", (256, 128, 2, 1), dict(zip(names[:3], held)))
    qkv = x.linear_layer(monkeypatch, *joined, list(zip("qkv", held)), prefix=f"m.{n}.qkv_proj")
    out = ("RowParallelLinear", (256, 256), {names[3]: held[3]}, [(None, held[3])])
    routed = x.experts_layer(experts, 256, 128, 8, prefix=f"m.{n}.experts")
    list(routed.load_weights(x.expert_stream(experts)))
    routed.quant_method.process_weights_after_loading(routed)
    out = x.linear_layer(monkeypatch, *out, prefix=names[3])
    return (qkv, out, routed), (held, experts)


def layer_of(hidden, router, qkv, out, experts):
    """One layer of a model, by these three."""

    def norm(values):
        return values * (values.float().square().mean(-1, keepdim=True) + 1e-6).rsqrt().to(
            values.dtype
        )

    q, k, v = qkv(norm(hidden)).split(HEADS, -1)
    q = q.view(-1, 2, 128).transpose(0, 1)
    k, v = k.expand(2, -1, -1), v.expand(2, -1, -1)
    mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    hidden = hidden + out(mixed.transpose(0, 1).reshape(-1, 256))
    weights, ids = (norm(hidden).float() @ router).softmax(-1).topk(2, -1)
    weights = weights / weights.sum(-1, keepdim=True)
    return hidden + experts(norm(hidden), weights, ids.int())


class Model:
    """Two such layers and a head over 512 tokens."""

    def __init__(self, monkeypatch, device):
        self.layers = [block(monkeypatch, n) for n in range(2)]
        self.last = x.weight(256, 512, 96, "mcg", seed=77)
        column = ("ColumnParallelLinear", (256, 512), {"m.head": self.last})
        self.head = x.linear_layer(monkeypatch, *column, [(None, self.last)], prefix="m.head").to(
            device
        )
        for parts, _ in self.layers:
            for part in parts:
                part.to(device)
        self.router = torch.randn(256, 8, generator=torch.Generator().manual_seed(5)).to(device)

    def __call__(self, hidden):
        for (qkv, out, experts), _ in self.layers:
            hidden = layer_of(hidden, self.router, qkv, out, experts.forward_modular)
        return self.head(hidden)

    def exact(self, hidden):
        """In fp64, from the decoded weights, on a CPU."""
        for _, (held, experts) in self.layers:
            parts = [x.dense(tensors) for tensors in held]
            hidden = layer_of(
                hidden,
                self.router.cpu(),
                lambda rows, parts=parts: torch.cat([rows @ p for p in parts[:3]], 1),
                lambda rows, parts=parts: rows @ parts[3],
                lambda rows, w, ids, experts=experts: x.moe(rows, w, ids, experts),
            )
        return hidden @ x.dense(self.last)
