# SPDX-License-Identifier: Apache-2.0
"""v0.30.0's MARLIN MoE ops on a CPU: not the kernels, but what they do to numbers.

`moe_wna16_marlin_gemm` takes float64 dot products and then rounds as the shipped
kernel does with NVFP4 weights: the fp32 accumulator carries 2**-119 (bf16) or 2**-7
(fp16) of the value, the global scale the inverse; with mul_topk_weights the bias is
added before the scale, and scale times weight is one 16-bit factor. On an H200 the
kernel's errors were the same to two digits.

Weights are looked up by the packed tensor's address: see `Layer`.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import _cpu  # noqa: E402, F401
import torch  # noqa: E402

_SCHEMAS = (
    "moe_wna16_marlin_gemm(Tensor! a, Tensor? c_or_none, Tensor! b_q_weight, Tensor? "
    "b_bias_or_none, Tensor! b_scales, Tensor? a_scales, Tensor? global_scale, Tensor? "
    "b_zeros_or_none, Tensor! workspace, Tensor sorted_token_ids, Tensor! expert_ids, "
    "Tensor! num_tokens_past_padded, Tensor! topk_weights, int moe_block_size, int "
    "top_k, bool mul_topk_weights, int b_type_id, int size_m, int size_n, int size_k, "
    "bool use_atomic_add, bool use_fp32_reduce, bool is_zp_float, int thread_k, int "
    "thread_n, int blocks_per_sm) -> Tensor",
    "moe_align_block_size(Tensor topk_ids, int num_experts, int block_size, Tensor! "
    "sorted_token_ids, Tensor! experts_ids, Tensor! num_tokens_post_pad, Tensor? "
    "maybe_expert_map, Tensor? scatter_idx=None) -> ()",
    "batched_moe_align_block_size(int max_tokens_per_batch, int block_size, Tensor "
    "expert_num_tokens, Tensor! sorted_token_ids, Tensor! experts_ids, Tensor! "
    "num_tokens_post_pad) -> ()",
    "moe_sum(Tensor input, Tensor! output, Tensor? topk_ids=None, Tensor? "
    "expert_map=None) -> ()",
)
UNIT = {torch.bfloat16: 2.0**-119, torch.float16: 2.0**-7}
DENSE = {}  # address of a packed weight -> [experts, columns, depth] in float64
CALLS = []  # the arguments of each gemm that matter here

library = torch.library.Library("_moe_C", "DEF")
for _schema in _SCHEMAS:
    library.define(_schema)


def _op(name):
    return lambda function: library.impl(name, function, "CPU")


def _blocks(rows_of_expert, block, pad, sorted_ids, expert_ids, count):
    """Rows sorted by expert, each expert's padded to whole blocks."""
    place = 0
    sorted_ids.fill_(pad)
    for expert, rows in rows_of_expert:
        for start in range(0, len(rows), block):
            part = rows[start : start + block]
            sorted_ids[place : place + len(part)] = torch.tensor(part)
            expert_ids[place // block] = expert
            place += block
    count.fill_(place)


@_op("moe_align_block_size")
def _align(
    topk_ids, experts, block, sorted_ids, expert_ids, count, expert_map, scatter=None
):
    assert scatter is None
    flat = topk_ids.reshape(-1).tolist()
    local = range(experts) if expert_map is None else expert_map.tolist()
    rows = [
        (local[e], [row for row, expert in enumerate(flat) if expert == e])
        for e in range(experts)
        if local[e] >= 0
    ]
    _blocks(rows, block, len(flat), sorted_ids, expert_ids, count)


@_op("batched_moe_align_block_size")
def _align_batched(max_tokens, block, num_tokens, sorted_ids, expert_ids, count):
    rows = [
        (e, list(range(e * max_tokens, e * max_tokens + n)))
        for e, n in enumerate(num_tokens.tolist())
    ]
    _blocks(rows, block, max_tokens * len(rows), sorted_ids, expert_ids, count)


@_op("moe_sum")
def _sum(rows, output, topk_ids=None, expert_map=None):
    if topk_ids is not None:
        local = topk_ids if expert_map is None else expert_map[topk_ids.long()]
        rows = torch.where((local >= 0).unsqueeze(-1), rows, 0)
    output.copy_(rows.float().sum(1))


@_op("moe_wna16_marlin_gemm")
def _gemm(
    a, c, weight, bias, scales, a_scales, global_scale, zeros, workspace, sorted_ids,
    expert_ids, count, topk_weights, block, top_k, mul, b_type, size_m, size_n, size_k,
    atomic, fp32_reduce, zp_float, thread_k, thread_n, blocks_per_sm,
):  # fmt: skip
    CALLS.append({"mul": mul, "top_k": top_k, "size_m": size_m})
    dtype = a.dtype
    for start in range(0, int(count), block):
        expert = int(expert_ids[start // block])
        rows = sorted_ids[start : start + block].long()
        rows = rows[rows < size_m * top_k]
        dense = DENSE[weight.data_ptr()][expert]
        exact = a[rows // top_k].double() @ dense.T
        value = (exact * UNIT[dtype]).float()
        scale = global_scale[expert]
        if not mul:
            value = value * scale
        value = value.to(dtype)
        if bias is not None:
            value = value + bias[expert]
        if mul:
            behind = torch.zeros(size_m * top_k)  # what a too short tensor ends in
            factor = torch.cat((topk_weights.reshape(-1), behind))[rows] * scale
            value = value * factor.to(dtype).unsqueeze(-1)
        c[rows] = value
    return c


def _interpreter_rounds():
    """Triton 3.9's interpreter cuts float32 to bfloat16; a GPU rounds to nearest."""
    import numpy
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder as Builder
    from triton.runtime.interpreter import TensorHandle

    def trunc(self, value, kind):
        if kind.scalar != tl.bfloat16:
            return cast(self, value, kind)
        data = torch.from_numpy(numpy.ascontiguousarray(value.data)).bfloat16()
        return TensorHandle(
            data.view(torch.int16).numpy().view(numpy.uint16), tl.bfloat16
        )

    cast = Builder.cast_impl
    Builder.create_fp_trunc = trunc


_interpreter_rounds()


class Layer:
    """A MoE layer of this rank: its packed weights are empty, DENSE has the values."""

    def __init__(self, dtype, experts, hidden, width, bias, seed=0):
        random = torch.Generator().manual_seed(seed)
        self.dtype, self.hidden, self.width = dtype, hidden, width
        self.w1 = torch.zeros(experts, hidden // 16, 2 * width * 2, dtype=torch.int32)
        self.w2 = torch.zeros(experts, width // 16, hidden * 2, dtype=torch.int32)
        self.dense = torch.randn(
            experts, hidden, width, generator=random, dtype=torch.float64
        )
        self.scale = 1e-4
        DENSE[self.w1.data_ptr()] = torch.zeros(experts, 2 * width, hidden).double()
        DENSE[self.w2.data_ptr()] = self.dense
        shape = (experts, hidden)
        self.bias = None
        if bias:
            self.bias = (torch.randn(*shape, generator=random) * 1e-3).to(dtype)
        self.global_scale = torch.full((experts,), self.scale / UNIT[dtype])
        self.block_scale = torch.zeros(experts, 1, 1)

    def activation(self, rows):
        """An activation that gives these rows, whatever it is given: so the second
        gemm's input is known exactly."""

        def call(kind, output, given, **kwargs):
            output.copy_(rows)

        return call

    def output(self, rows, experts, weights):
        """[tokens, k] experts and weights, [tokens * k] rows, in float64."""
        tokens, k = experts.shape
        total = torch.zeros(tokens, self.hidden, dtype=torch.float64)
        for token in range(tokens):
            for slot in range(k):
                expert = int(experts[token, slot])
                if expert < 0:
                    continue
                value = rows[token * k + slot].double() @ self.dense[expert].T
                value = value * self.scale
                if self.bias is not None:
                    value = value + self.bias[expert].double()
                total[token] += weights[token, slot].double() * value
        return total


def error(found, expected):
    """Relative Frobenius norm of the difference."""
    return float((found.double() - expected).norm() / expected.norm())
