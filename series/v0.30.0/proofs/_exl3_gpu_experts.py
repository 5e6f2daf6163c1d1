# SPDX-License-Identifier: Apache-2.0
"""EXL3's experts on a GPU: parity with the reference, capture and replay, and time beside
vLLM's own fused bf16 kernel, the reference and exllamav3's fused path on the same tensors.
Shapes are those of Qwen3.8-Flash-Next."""

import _exl3_gpu as linear
import _gpu
import torch
import triton
import triton.language as tl
from _exl3_gpu import captured, error, microseconds, signs, words_of
from vllm.model_executor.layers.quantization.utils import exl3_moe, exl3_triton_moe

HIDDEN, INTER, EXPERTS, TOP_K = 2560, 640, 512, 10


def make_experts():
    kinds = [(80, "mcg")] * EXPERTS
    w13, i13 = exl3_moe.stack_matrices(HIDDEN, INTER, kinds * 2)
    w2, i2 = exl3_moe.stack_matrices(INTER, HIDDEN, kinds)
    return exl3_moe.Experts(
        exl3_moe.MoEPlan(EXPERTS, HIDDEN, 0, INTER, w13, w2),
        words_of(w13.words),
        i13.cuda(),
        signs(2, EXPERTS, HIDDEN).half(),
        (signs(2, EXPERTS, INTER) / (1.25 * HIDDEN**0.5)).half(),
        words_of(w2.words),
        i2.cuda(),
        signs(EXPERTS, INTER).half(),
        (signs(EXPERTS, HIDDEN) / (1.25 * INTER**0.5)).half(),
    )


def batch(tokens, dtype=torch.bfloat16):
    return torch.randn(tokens, HIDDEN, device="cuda").to(dtype)


def routed(tokens):
    weights, ids = torch.randn(tokens, EXPERTS, device="cuda").softmax(-1).topk(TOP_K, -1)
    return weights / weights.sum(-1, keepdim=True), ids.int()


class PackageExperts:
    """exllamav3's fused path for few tokens on the same experts."""

    SLOTS, TOKENS = 8 * TOP_K, 8  # as the package sizes its scratch

    def __init__(self, ext, experts):
        self.ext = ext
        half = {"dtype": torch.float16, "device": "cuda"}
        integers = {"dtype": torch.int64, "device": "cuda"}

        def pointers(tensor, count):
            step = tensor.numel() // count * tensor.element_size()
            return [tensor.data_ptr() + i * step for i in range(count)]

        both = [pointers(experts.w13_trellis, 2 * EXPERTS)]
        both += [pointers(t, 2 * EXPERTS) for t in (experts.w13_suh, experts.w13_svh)]
        down = (experts.w2_trellis, experts.w2_suh, experts.w2_svh)
        lists = [p[:EXPERTS] for p in both] + [p[EXPERTS:] for p in both]
        lists += [pointers(tensor, EXPERTS) for tensor in down]
        self.tables = [torch.tensor(pointers, **integers) for pointers in lists]
        counters = self.SLOTS * (INTER // 128) + self.TOKENS * (HIDDEN // 128)
        self.scratch = [
            torch.empty(self.SLOTS, HIDDEN, **half),
            torch.empty(self.SLOTS, HIDDEN, **half),
            torch.empty(self.SLOTS, INTER, **half),
            torch.empty(self.SLOTS, INTER, **half),
            torch.empty(self.SLOTS, INTER, **half),
            torch.empty(self.SLOTS, HIDDEN, dtype=torch.float32, device="cuda"),
            torch.zeros(counters + 2 * self.SLOTS + 3, dtype=torch.int32, device="cuda"),
        ]
        self.out = torch.empty(self.TOKENS, HIDDEN, dtype=torch.float32, device="cuda")

    def __call__(self, rows, ids, weights):
        rates, nothing = (5.0, 5.0, 5.0), (None, None, None)
        tables = (*self.tables, *nothing, *rates, True, False, 0, 0.0, True)
        out = (*self.scratch, self.out, None, None)
        self.ext.exl3_moe_coop(rows, ids, weights, -1, 0, HIDDEN, *tables, *out)
        return self.out[: rows.shape[0]]


@triton.jit
def silu_and_mul(rows, out, size, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(rows + row * 2 * size + column).to(tl.float32)
    up = tl.load(rows + row * 2 * size + size + column).to(tl.float32)
    value = gate / (1 + tl.exp(-gate)) * up
    tl.store(out + row * size + column, value.to(tl.bfloat16))


class DenseExperts:
    """vLLM's own fused bf16 MoE kernel, as it is launched for few tokens; for its
    compiled SiLU and sum stand the kernel above and torch's sum."""

    def __init__(self):
        options = {"dtype": torch.bfloat16, "device": "cuda"}
        self.up = torch.empty(EXPERTS, 2 * INTER, HIDDEN, **options).normal_()
        self.down = torch.empty(EXPERTS, HIDDEN, INTER, **options).normal_()

    def product(self, a, b, c, weights, ids, multiply, top_k, tile):
        from vllm.model_executor.layers.fused_moe.fused_moe import fused_moe_kernel

        n, k = b.shape[1:]
        pairs = a.shape[0] * top_k
        columns, depth, stages = tile
        grid = (pairs * triton.cdiv(n, columns),)
        strides = (a.stride(0), 1, b.stride(0), 1, b.stride(1), c.stride(-2), 1)
        fused_moe_kernel[grid](
            a, b, c, None, None, None, weights, None, ids, self.padded,
            n, k, pairs * 16, pairs, *strides, *[0] * 9,
            MUL_ROUTED_WEIGHT=multiply, top_k=top_k, compute_type=tl.bfloat16,
            use_fp8_w8a8=False, use_int8_w8a8=False, use_int8_w8a16=False,
            per_channel_quant=False, naive_block_assignment=True, HAS_BIAS=False,
            SWAP_AB=False, USE_TD=False, GROUP_SIZE_M=1, SPLIT_K=1, BLOCK_SIZE_M=16,
            BLOCK_SIZE_N=columns, BLOCK_SIZE_K=depth, num_warps=4, num_stages=stages,
        )  # fmt: skip

    def time(self, tokens, tile):
        options = {"dtype": torch.bfloat16, "device": "cuda"}
        rows = batch(tokens)
        sets = [routed(tokens) for _ in range(24)]
        pairs = tokens * TOP_K
        self.padded = torch.tensor([pairs * 16], dtype=torch.int32, device="cuda")
        hidden = torch.empty(pairs, 2 * INTER, **options)
        inner = torch.empty(pairs, INTER, **options)
        out = torch.empty(tokens, TOP_K, HIDDEN, **options)

        def run(i):
            weights, ids = sets[i]
            first = (self.up, hidden, weights, ids.flatten(), False, TOP_K, tile)
            self.product(rows, *first)
            silu_and_mul[pairs, INTER // 128](hidden, inner, INTER, 128, num_warps=1)
            last = (self.down, out.view(pairs, HIDDEN), weights, ids.flatten(), True, 1, tile)
            self.product(inner, *last)
            return out.sum(1)

        return microseconds(run, 24)


TILES = [(n, k, s) for n in (32, 64, 128) for k, s in ((64, 4), (128, 3), (128, 4), (256, 2))]


def capture(experts):
    equal = {}
    for tokens in (1, 4, 16, 48):
        run = exl3_triton_moe.by_pair if tokens <= 16 else exl3_triton_moe.grouped
        sets = [[batch(tokens), *routed(tokens)] for _ in range(2)]
        one, other = captured(lambda *given, run=run: run(*given, experts), *sets)
        equal[f"{tokens} tokens"] = torch.equal(one, other)
    _gpu.record("experts: replayed with other inputs, bit for bit", equal)
    assert all(equal.values()), equal


def times(ext, experts):
    package, plain = PackageExperts(ext, experts), DenseExperts()
    errors, report = {}, {}
    for tokens in (1, 4, 16, 64):
        run = exl3_triton_moe.by_pair if tokens <= 16 else exl3_triton_moe.grouped
        for dtype in linear.LIMITS:
            rows, (weights, ids) = batch(tokens, dtype), routed(tokens)
            expected = exl3_moe.reference(rows, weights, ids, experts).double()
            found = error(run(rows, weights, ids, experts), expected)
            errors[f"{tokens} tokens, {dtype}"] = round(found, 6)
            assert found <= linear.LIMITS[dtype]
        sets = [routed(tokens) for _ in range(24)]
        rows = batch(tokens)
        took = {"ours": microseconds(lambda i: run(rows, *sets[i], experts), 24)}
        if tokens <= 8:
            theirs = [(ids.long(), weights.half()) for weights, ids in sets]
            half = rows.half()
            found = error(package(half, *theirs[0]), expected_of(rows, sets[0], experts))
            errors[f"{tokens} tokens, exllamav3"] = round(found, 6)
            assert found < 2e-3
            took["exllamav3, exl3_moe_coop"] = microseconds(lambda i: package(half, *theirs[i]), 24)
        if tokens <= 16:
            best = min((plain.time(tokens, tile), tile) for tile in TILES)
            took["fused bf16, its best tile"], took["tile"] = best
        if tokens == 1:
            slow = lambda i: exl3_moe.reference(rows, *sets[i], experts)  # noqa: E731
            took["reference"] = microseconds(slow, 4, 3)
        report[f"{tokens} tokens"] = took
    _gpu.record("experts, 10 of 512, 2560/640, 5 bits mcg: relative norm", errors)
    _gpu.record("experts, 10 of 512, 2560/640, 5 bits mcg: us", report)


def expected_of(rows, route, experts):
    return exl3_moe.reference(rows, *route, experts).double()
