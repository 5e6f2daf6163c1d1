# SPDX-License-Identifier: Apache-2.0
"""MARLIN MoE gemms on a GPU, measured against float64.

The shapes are Qwen3.8-Flash-Next's second gemm (640 -> 2560, top-10 of 512 experts);
the weights are random, quantised and laid out as vLLM's loaders do.
"""

import _gpu  # noqa: F401
import torch

GLOBAL, TOPK, HIDDEN, WIDTH = 512, 10, 2560, 640
TOKENS = (1, 4, 16, 64, 512, 2048)
BLOCKS = (8, 16, 32, 48, 64)
BF16, FP16 = torch.bfloat16, torch.float16
# vllm.scalar_type: float4_e2m1f and uint4b8
FLOAT4, UINT4B8 = 562949953487106, 1125899907892224

_GROUP = [i + 8 * j for i in range(8) for j in range(8)]
_COLUMN = [2 * i + j for i in range(4) for j in (0, 1, 8, 9, 16, 17, 24, 25)]
_E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6)


def _permute(values, order):
    return values.reshape(-1, len(order))[:, order].reshape(values.shape).contiguous()


def _pack(nibbles, columns, depth):
    """[experts, columns, depth / 2] bytes, low nibble first, to MARLIN's layout."""
    repack = torch.ops._C.gptq_marlin_repack
    return torch.stack(
        [
            repack(e.view(torch.int32).T.contiguous(), depth, columns, 4, False)
            for e in nibbles
        ]
    )


class Weights:
    """Experts of one gemm: what the op is given, and their values."""

    def __init__(self, experts, dtype, nvfp4=True, columns=HIDDEN, depth=WIDTH, seed=0):
        random = torch.Generator(device="cuda").manual_seed(seed)
        self.dtype, self.columns, self.depth = dtype, columns, depth
        self.nibbles = torch.randint(
            0, 256, (experts, columns, depth // 2), generator=random,
            dtype=torch.uint8, device="cuda",
        )  # fmt: skip
        self.packed = _pack(self.nibbles, columns, depth)
        self.type_id = FLOAT4 if nvfp4 else UINT4B8
        self.global_scale, self.scale = None, 1.0
        if nvfp4:
            self._float4_scales(experts, random)
        else:
            raw = torch.rand(experts, 1, columns, generator=random, device="cuda")
            self.true_scales = (raw * 0.02 + 0.002).to(dtype)
            self.scales = torch.stack([_permute(s, _COLUMN) for s in self.true_scales])
        bias = torch.randn(experts, columns, generator=random, device="cuda") * 0.3
        self.bias = bias.to(dtype)
        self.packed_bias = _permute(self.bias, _COLUMN)

    def _float4_scales(self, experts, random):
        self.scale = 1e-4
        shape = (experts, self.columns, self.depth // 16)
        raw = torch.rand(*shape, generator=random, device="cuda") * 400 + 40
        self.true_scales = raw.to(torch.float8_e4m3fn)
        packed = []
        for scales in self.true_scales:
            # As vLLM's nvfp4_marlin_process_scales: times 2**7, as unsigned E5M3.
            s = scales.float().to(self.dtype).T.reshape(-1, 64)[:, _GROUP]
            s = s.reshape(-1, self.columns).half().view(-1, 4)[:, [0, 2, 1, 3]] * 128
            s = s.reshape(-1, self.columns).contiguous()
            s = (s.view(torch.int16) << 1).view(torch.float8_e4m3fn)[:, 1::2]
            packed.append(s.contiguous())
        self.scales = torch.stack(packed)
        exponent = 126 if self.dtype == BF16 else 14
        self.global_scale = torch.full(
            (experts,), self.scale * 2.0 ** (exponent - 7), device="cuda"
        )

    def dense(self, expert):
        """[columns, depth] in float64."""
        low, high = self.nibbles[expert] & 15, self.nibbles[expert] >> 4
        values = torch.stack((low, high), -1).reshape(self.columns, self.depth).long()
        if self.type_id == UINT4B8:
            return (values - 8).double() * self.true_scales[expert].double().T
        table = torch.tensor(_E2M1, dtype=torch.float64, device="cuda")
        scales = self.true_scales[expert].double().repeat_interleave(16, 1)
        return table[values] * scales * self.scale


def workspace():
    """The locks of the kernel's blocks; vLLM counts them by the platform it is on."""
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    return torch.zeros(processors * 4, dtype=torch.int32, device="cuda")


class Problem:
    """Tokens routed to experts, some of them another rank's."""

    def __init__(self, weights, tokens, top_k=1, seed=1):
        random = torch.Generator(device="cuda").manual_seed(seed)
        experts = len(weights.packed)
        self.weights, self.tokens, self.top_k = weights, tokens, top_k
        logits = torch.randn(tokens, GLOBAL, generator=random, device="cuda")
        self.topk_weights, ids = logits.softmax(-1).topk(TOPK)
        self.topk_weights /= self.topk_weights.sum(-1, keepdim=True)
        self.ids = ids.int()
        self.expert_map = None
        if experts < GLOBAL:
            every = torch.arange(GLOBAL, device="cuda", dtype=torch.int32)
            self.expert_map = torch.where(every < experts, every, -1)
        rows = tokens if top_k > 1 else tokens * TOPK
        x = torch.randn(rows, weights.depth, generator=random, device="cuda")
        self.x = x.to(weights.dtype)
        self.flat = self.ids.reshape(-1)
        self.here = (self.flat < experts).nonzero().flatten()
        pairs = torch.arange(tokens * TOPK, device="cuda")
        self.row_of_pair = pairs // TOPK if top_k > 1 else pairs
        self.exact = torch.zeros(
            tokens * TOPK, weights.columns, dtype=torch.float64, device="cuda"
        )
        for expert in self.flat[self.here].unique().tolist():
            mine = (self.flat == expert).nonzero().flatten()
            x = self.x[self.row_of_pair[mine]].double()
            self.exact[mine] = x @ weights.dense(expert).T

    def expected(self, bias, weighted):
        """Rows of this rank's experts, in float64."""
        rows = self.exact[self.here]
        if bias:
            rows = rows + self.weights.bias[self.flat[self.here].long()].double()
        if weighted:
            rows = rows * self.topk_weights.reshape(-1, 1)[self.here].double()
        return rows

    def align(self, block):
        padded = self.flat.numel() + GLOBAL * (block - 1)
        if self.flat.numel() < GLOBAL:
            padded = min(self.flat.numel() * block, padded)
        int32 = {"dtype": torch.int32, "device": "cuda"}
        places = torch.empty(padded, **int32)
        experts = torch.empty(-(-padded // block), **int32)
        count = torch.empty(1, **int32)
        torch.ops._moe_C.moe_align_block_size(
            self.ids, GLOBAL, block, places, experts, count, self.expert_map
        )
        return places, experts, count

    def run(self, block, bias=False, weighted=True, atomic=False, tile=(-1, -1),
            topk_weights=None, aligned=None):  # fmt: skip
        """The op itself, not vLLM's Python; rows nobody writes hold NaN."""
        w = self.weights
        shape = (self.tokens * TOPK, w.columns)
        return torch.ops._moe_C.moe_wna16_marlin_gemm(
            self.x,
            torch.full(shape, float("nan"), dtype=w.dtype, device="cuda"),
            w.packed,
            w.packed_bias if bias else None,
            w.scales,
            None,
            w.global_scale,
            None,
            workspace(),
            *(aligned or self.align(block)),
            self.topk_weights if topk_weights is None else topk_weights,
            block,
            self.top_k,
            weighted,
            w.type_id,
            len(self.x),
            w.columns,
            w.depth,
            atomic,
            True,
            False,
            *tile,
            -1,
        )

    def error(self, block, bias=False, weighted=True, **kwargs):
        """Relative Frobenius norm of the difference to float64."""
        found = self.run(block, bias, weighted, **kwargs)[self.here].double()
        expected = self.expected(bias, weighted)
        return float((found - expected).norm() / expected.norm())
