# SPDX-License-Identifier: Apache-2.0
"""Decode steps over a PLE table on a GPU, in CUDA graphs, and what a trace says of them."""

import gzip
import json
import os
import re
from types import SimpleNamespace as Names

import _ple
import torch


class Steps:
    """Decode steps of one token a request, by vLLM's module: hash, prefetch, lookup.

    Inputs lie in fixed buffers, as in the model runner, and a step's part before the
    lookup is a matrix product that stands for a layer.
    """

    def __init__(self, module, tokens):
        self.module, self.tokens = module, tokens
        cuda = {"device": "cuda", "dtype": torch.int32}
        self.input_ids = torch.zeros(tokens, **cuda)
        self.starts = torch.arange(tokens + 1, **cuda)
        self.context = torch.zeros(tokens, 2, **cuda)
        self.hidden = torch.randn(tokens, 2048, device="cuda", dtype=torch.bfloat16)
        self.matrix = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)

    def inputs(self, seed):
        """Tokens and their two predecessors, in pinned memory."""
        size, random = (self.tokens, 3), torch.Generator().manual_seed(seed)
        ids = torch.randint(1, _ple.CONFIG.vocab_size, size, generator=random).int()
        return ids[:, 2].contiguous().pin_memory(), ids[:, :2].contiguous().pin_memory()

    def give(self, inputs):
        self.input_ids.copy_(inputs[0], non_blocking=True)
        self.context.copy_(inputs[1], non_blocking=True)

    def body(self):
        arguments = (self.hidden, self.input_ids, self.starts, self.context)
        self.module.start_prefetch(*arguments)
        self.layer = self.hidden @ self.matrix
        return self.module(*arguments)

    def capture(self):
        """The step as one CUDA graph; returns it and its output."""
        self.body()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = self.body()
        return graph, output

    def expected(self, table, inputs):
        """The rows of these inputs, by the hash's reference on the CPU."""
        module = self.module
        names = ("layer_multipliers", "ngram_heads_vocab_sizes", "ngram_heads_offsets")
        reference = Names(
            **{name: getattr(module, name).cpu() for name in names},
            eos_token_id=module.eos_token_id,
            ngram_size=module.ngram_size,
            heads_per_ngram=module.heads_per_ngram,
            _shift_precompute=module._shift_precompute,
            _shift_apply=module._shift_apply,
        )
        ids = type(module).compute_ngram_ids(
            reference, inputs[0], self.starts.cpu(), inputs[1]
        )
        return table[ids].flatten(-2)


def on_gpu(files, dtype, max_tokens=64, **options):
    """vLLM's module on a GPU, its table loaded, by these options of EngramConfig."""
    config = _ple.engram(**options)
    module = _ple.embedding(config, dtype, device="cuda", max_tokens=max_tokens)
    _ple.load(module, files)
    return module


# What a host thread waits in.
WAITS = re.compile(
    "Synchronize|cudaMemcpy(2D|3D)?$|cuMemcpy[A-Za-z]*_v2$|StreamWaitValue"
)


def trace_of(trace, folder, span="steps", threads=()):
    """({host call: times} within the annotation `span`, {direction: copies}). threads:
    (name, begin, end) of what other threads did, in microseconds after the span's
    start; they are added to the trace, which goes to $PATCHKIT_TRACE."""
    path = folder / "trace.json"
    trace.export_chrome_trace(str(path))
    body = json.loads(path.read_text())
    events = body["traceEvents"]
    whole = next(e for e in events if e.get("name") == span and e.get("dur"))
    end = whole["ts"] + whole["dur"]
    calls = [
        e["name"]
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver")
        and whole["ts"] <= e["ts"] <= end
    ]
    copies = [e["name"] for e in events if e.get("cat") == "gpu_memcpy"]
    for name, begin, until in threads:
        lasts = {"ts": whole["ts"] + begin, "dur": until - begin}
        place = {"ph": "X", "cat": "thread", "pid": whole["pid"], "tid": name}
        events.append({"name": name, **place, **lasts})
    if target := os.environ.get("PATCHKIT_TRACE"):
        with gzip.open(target, "wt") as file:
            json.dump(body, file)
    return (
        {name: calls.count(name) for name in sorted(set(calls))},
        {d: sum(d in name for name in copies) for d in ("DtoH", "HtoD")},
    )
