# SPDX-License-Identifier: Apache-2.0
"""EXL3's linear layers on a GPU: parity with the reference, capture and replay, and time
beside dense bf16, the weights' bytes, the reference and exllamav3's own kernel on the same
tensors. Shapes are those of Qwen3.8-Flash-Next, and 5120 x 17408.

    python _exl3_gpu.py 3/14     compiles the third of fourteen shares of the kernels
"""

import os
import subprocess
import sys

import _exl3_device  # noqa: F401  (before vllm)
import _gpu
import torch
from vllm.model_executor.layers.quantization.utils import (
    exl3_linear,
    exl3_ref,
    exl3_triton,
)

KERNELS = exl3_linear.USE_GEMV | exl3_linear.USE_FUSED_HADAMARD
PACKAGE = exl3_linear.USE_GEMV | getattr(exl3_linear, "USE_PACKAGE", 0)
SHAPES = ((2560, 12288), (6144, 2560), (2560, 2560), (2560, 1280), (2560, 640), (640, 2560))
TIMED = ((5120, 17408), (2560, 12288), (6144, 2560), (2560, 2560), (2560, 640), (640, 2560))
RATES = [(16 * b, c) for b in range(2, 9) for c in ("3inst", "mcg", "mul1")]
RATES += [(words, "mul1") for words in (24, 40, 56)]
ROWS = (*range(1, 17), 17, 32, 33, 64)
LIMITS = {torch.bfloat16: 2e-3, torch.float16: 5e-4}


def words_of(*shape):
    """Random trellis words: any are valid weights."""
    return torch.randint(-(2**15), 2**15, shape, dtype=torch.int16, device="cuda")


def signs(*shape):
    sign = torch.randint(0, 2, shape, device="cuda") * 2 - 1
    return sign * (0.5 + torch.rand(shape, device="cuda"))


class Linear:
    """One EXL3 weight as a layer holds it, in as many copies as outgrow the L2 cache."""

    def __init__(self, size, columns, words, codebook, copies=1):
        self.size, self.columns, self.words, self.codebook = size, columns, words, codebook
        self.trellis = [words_of(size // 16, columns // 16, words) for _ in range(copies)]
        self.suh = signs(size).half()
        self.svh = (signs(columns) / (1.25 * size**0.5)).half()
        self.plans = {flags: self.plan(flags) for flags in (0, 1, KERNELS, 7, PACKAGE)}
        self.table = self.plans[0].table().cuda()

    def plan(self, flags):
        part = exl3_linear.Part(self.words, self.codebook, self.columns // 128)
        columns = ((0, self.columns),)
        return exl3_linear.LinearPlan(flags, 0, self.size, self.size // 128, (part,), columns)

    def __call__(self, rows, flags=KERNELS, copy=0):
        trellis = self.trellis[copy % len(self.trellis)].flatten()
        arguments = (rows, trellis, self.suh, self.svh, self.table)
        return torch.ops.vllm.exl3_linear(*arguments, self.plans[flags].encode())

    def package(self, ext, rows, out, rotated, copy=0):
        trellis = self.trellis[copy % len(self.trellis)]
        kind = self.codebook == "mcg", self.codebook == "mul1"
        ext.exl3_gemm(rows, trellis, out, self.suh, rotated, self.svh, -1, *kind, 0)

    def dense(self):
        signs = self.suh, self.svh, self.codebook
        return exl3_ref.dequantize(self.trellis[0], *signs, dtype=torch.float64)


def many(size, columns, words, codebook):
    copies = int(2.5e8 // (size * columns * words / 128))
    return Linear(size, columns, words, codebook, max(2, min(24, copies)))


def microseconds(function, calls=16, repeats=7):
    """GPU time of one of function(0), function(1), …, in a CUDA graph: the best replay."""
    for i in range(min(calls, 3)):
        function(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(calls):
            function(i)
    times = []
    for _ in range(repeats + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000 / calls)
    return round(min(times[2:]), 2)


def error(out, expected):
    return ((out.double() - expected).norm() / expected.norm()).item()


def parity():
    """Every rate, shape and number of rows, against the reference in float64; and the
    decoded weights, bit for bit."""
    worst = {dtype: (0.0, "") for dtype in LIMITS}
    package, cases, halves = {}, 0, 0
    for size, columns in SHAPES:
        for words, codebook in RATES:
            linear = Linear(size, columns, words, codebook)
            dense = linear.dense()
            for dtype in LIMITS:
                for rows in ROWS:
                    batch = (torch.randn(rows, size, device="cuda") * 3).to(dtype)
                    found = error(linear(batch), batch.double() @ dense)
                    case = f"{size} x {columns}, {words / 16:g} bits {codebook}, {rows} rows"
                    worst[dtype] = max(worst[dtype], (found, case))
                    cases += 1
                    if rows in (1, 16, 64) and (size, columns) == SHAPES[2]:
                        other = error(linear(batch, PACKAGE), batch.double() @ dense)
                        package[dtype] = max(package.get(dtype, 0.0), other)
    for words, codebook in RATES:
        linear = Linear(512, 384, words, codebook)
        out = torch.empty(512, 384, dtype=torch.float16, device="cuda")
        for first, count, width, kind in linear.plans[0].runs():
            trellis = linear.trellis[0].flatten()
            exl3_triton.dequant(trellis, linear.table, first, count, 4, width, kind, out)
        expected = exl3_ref.decode_trellis(linear.trellis[0], codebook)
        halves += int((out.view(torch.int16) != expected.view(torch.int16)).sum())
    found = {str(dtype): [round(value, 6), case] for dtype, (value, case) in worst.items()}
    _gpu.record("parity: worst relative norm, and where", found)
    _gpu.record("parity: products compared", cases)
    _gpu.record("parity: decoded halves that differ", halves)
    other = {str(dtype): round(value, 6) for dtype, value in package.items()}
    _gpu.record("parity: exllamav3 through the switch, 2560 x 2560, worst", other)
    assert halves == 0
    for dtype, limit in LIMITS.items():
        assert worst[dtype][0] <= limit, worst[dtype]


def captured(function, inputs, others):
    """Whether a graph of function(*inputs) gives on other inputs what a call gives."""
    function(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = function(*inputs)
    for given, other in zip(inputs, others, strict=True):
        given.copy_(other)
    graph.replay()
    torch.cuda.synchronize()
    return out.clone(), function(*others)


def capture():
    equal = {}
    linear = Linear(2560, 2560, 80, "mcg")
    names = {KERNELS: "kernels", 1: "Hadamard in torch", 7: "with prefill", PACKAGE: "exllamav3"}
    for flags, name in names.items():
        for rows in (1, 4, 16, 64, *([200] if flags == 7 else [])):
            batches = [torch.randn(rows, 2560, device="cuda").bfloat16() for _ in range(2)]
            one, other = captured(lambda b, f=flags: linear(b, f), batches[:1], batches[1:])
            equal[f"{name}, {rows} rows"] = torch.equal(one, other)
            assert error(one, other.double()) < 2e-3
    _gpu.record("linear: replayed with other inputs, bit for bit", equal)
    assert all(same for name, same in equal.items() if "exllamav3" not in name), equal


def times(ext):
    """CSV lines: the layer and, in microseconds, what each way takes."""
    wide = [torch.randn(65536, 8192, device="cuda").bfloat16() for _ in range(2)]
    row = torch.randn(1, 8192, device="cuda").bfloat16()
    product = torch.nn.functional.linear
    microseconds(lambda i: product(row, wide[i % 2]), 200)  # the clocks are up
    rate = wide[0].nbytes / microseconds(lambda i: product(row, wide[i % 2])) / 1000
    del wide
    _gpu.record("read by a dense product of one row and 65536 x 8192, GB/s", round(rate))
    lines = ["size,columns,bits,codebook,rows,ours,exllamav3,by the switch,dense,bytes"]
    for size, columns in TIMED:
        copies = max(2, min(16, int(3e8 // (size * columns * 2))))
        plain = [torch.randn(columns, size, device="cuda").bfloat16() for _ in range(copies)]
        inputs = {m: torch.randn(m, size, device="cuda").bfloat16() for m in (1, 4, 16, 32, 64)}
        dense = {
            m: microseconds(lambda i, b=b: product(b, plain[i % copies])) for m, b in inputs.items()
        }
        del plain
        for words in (64, 80):
            for codebook in ("3inst", "mcg", "mul1"):
                linear = many(size, columns, words, codebook)
                least = round(size * columns * words / 128 / rate / 1000, 2)
                for m, rows in inputs.items():
                    half = rows.half()
                    out = torch.empty(m, columns, dtype=torch.float16, device="cuda")
                    rotated = torch.empty_like(half)
                    took = [
                        microseconds(lambda i: linear(rows, KERNELS, i)),
                        microseconds(lambda i: linear.package(ext, half, out, rotated, i)),
                        microseconds(lambda i: linear(rows, PACKAGE, i)),
                        dense[m],
                        least,
                    ]
                    line = [size, columns, words // 16, codebook, m, *took]
                    lines.append(",".join(map(str, line)))
    _gpu.record("linear layers, us", lines)
    linear = Linear(5120, 17408, 80, "mcg")
    row = torch.randn(1, 5120, device="cuda").bfloat16()
    _gpu.record(
        "5120 x 17408, one row, 5 bits mcg, us",
        {
            "reference": microseconds(lambda i: linear(row, 0), 4, 4),
            "Hadamard in torch": microseconds(lambda i: linear(row, 1), 4, 4),
            "kernels": microseconds(lambda i: linear(row), 4, 4),
        },
    )


def other_times():
    """Many rows, the output head and the n-gram table's rows."""
    lines = ["size,columns,rows,ours,dense,MiB beside weights and input,relative norm"]
    for size, columns in ((2560, 12288), (6144, 2560), (5120, 17408)):
        plain = torch.randn(columns, size, device="cuda").bfloat16()
        linear = Linear(size, columns, 80, "mcg")
        dense = linear.dense()
        for m in (65, 128, 512, 2048, 8192):
            rows = torch.randn(m, size, device="cuda").bfloat16()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            out = linear(rows, 7)
            torch.cuda.synchronize()
            peak = (torch.cuda.max_memory_allocated() - before) / 2**20
            found = error(out[:128], rows[:128].double() @ dense)
            assert found < LIMITS[torch.bfloat16]
            ours = microseconds(lambda i: linear(rows, 7), 4, 4)
            theirs = microseconds(lambda i: torch.nn.functional.linear(rows, plain), 4, 4)
            line = [size, columns, m, ours, theirs, round(peak, 1), round(found, 6)]
            lines.append(",".join(map(str, line)))
    _gpu.record("linear layers of many rows, 5 bits mcg, us", lines)
    plain = torch.randn(248320, 2560, device="cuda").bfloat16()
    linear, times = Linear(2560, 248320, 96, "mcg"), {}
    for m in (1, 4, 16, 32):
        rows = torch.randn(m, 2560, device="cuda").bfloat16()
        ours = microseconds(lambda i: linear(rows), 4)
        theirs = microseconds(lambda i: torch.nn.functional.linear(rows, plain), 4)
        times[f"{m} rows"] = {"ours": ours, "dense": theirs}
    _gpu.record("output head 2560 x 248320, 6 bits mcg, us", times)
    _gpu.record("n-gram rows of 16 heads, 5 bits, us", row_times())


def row_times():
    """Of a kernel and of torch, whose values are the same, bit for bit."""
    from vllm.model_executor.layers.quantization.utils import exl3_rows

    times = {}
    for tokens in (1, 32, 2048):
        rows, bias = words_of(tokens, 16, 51), torch.randn(16, 160, device="cuda").half()
        rows[..., 0] = torch.rand(tokens, 16, device="cuda").half().view(torch.int16)
        rows = rows.flatten(1)

        def values(i, kernel=True, rows=rows, bias=bias):
            return exl3_rows.dequantize(rows, bias, torch.bfloat16, kernel)

        assert torch.equal(values(0), values(0, False))
        slow = microseconds(lambda i, v=values: v(i, False), 8, 4)
        times[f"{tokens} tokens"] = {"kernel": microseconds(values, 8), "torch": slow}
    return times


def compile_share(share):
    """One process's part of the kernels that the rest will want."""
    index, of = map(int, share.split("/"))
    jobs = [(words, codebook, rows) for words, codebook in RATES for rows in (1, 32, 64)]
    for words, codebook, rows in jobs[index::of]:
        for dtype in LIMITS:
            Linear(256, 128, words, codebook)(torch.randn(rows, 256, device="cuda").to(dtype))


def compile_all():
    shares = max(1, min(14, (os.cpu_count() or 1) - 2))
    line = [sys.executable, __file__]
    children = [subprocess.Popen([*line, f"{i}/{shares}"]) for i in range(shares)]
    assert [child.wait() for child in children] == [0] * shares


if __name__ == "__main__":
    compile_share(sys.argv[1])
