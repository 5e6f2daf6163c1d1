# SPDX-License-Identifier: Apache-2.0
"""A small n-gram (PLE) table in safetensors files, loaded by vLLM's own code.

16 heads of 160 values as in the real table, with about 130 rows a head instead of
20 million.
"""

import os
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace as Names
from unittest import mock

import _gpu  # noqa: F401  (before _cpu: on a GPU machine it loads torchvision)

import _cpu  # noqa: F401  isort: skip
import pytest
import torch

EOS = 7
HEADS, DIM = 16, 160
CONFIG = Names(
    ngram_size=3,
    heads_per_ngram=8,
    eos_token_id=EOS,
    vocab_size=1000,
    split_ngram_parts=5,
    seed=1234,
    ngram_vocab_size_base=100,
    make_ngram_vocab_size_divisible_by=128,
)


class Stream:
    """Stands for a CUDA stream where there is none."""

    def __init__(self, device=None):
        self.cuda_stream = 0


def interpreter_takes_any_mask():
    """Triton 3.9's interpreter makes int32 of a block of int1 `and` a scalar int1, as
    in the pinned lookup kernel's mask, and then refuses it as a mask."""
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder as Builder
    from triton.runtime.interpreter import TensorHandle

    load = Builder.create_masked_load

    def call(self, pointers, mask, *args):
        mask = TensorHandle(mask.data.astype(bool), tl.int1)
        return load(self, pointers, mask, *args)

    mock.patch.object(Builder, "create_masked_load", call).start()


class ByBytes:
    """The pinned lookup's kernel under the interpreter. Its signature says that the
    table and the output are bytes, which only the compiler heeds."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        def launch(table, ids, output, *args, **kwargs):
            as_bytes = table.view(torch.uint8), ids, output.view(torch.uint8)
            self.kernel[grid](*as_bytes, *args, **kwargs)

        return launch


@contextmanager
def world(rank=0, size=1):
    """One process as rank `rank` of `size`, without torch.distributed."""
    import vllm.model_executor.layers.vocab_parallel_embedding as vocab
    import vllm.model_executor.parameter as parameter
    import vllm.models.qwen4_exp.common.ngram_embedding as ngram

    group = Names(rank_in_group=rank, world_size=size, all_reduce=lambda x: x)
    with mock.patch.multiple(
        ngram, get_etp_group=lambda: group, get_tp_group=lambda: group
    ):
        for module in (vocab, parameter):
            mock.patch.multiple(
                module,
                get_tensor_model_parallel_rank=lambda: rank,
                get_tensor_model_parallel_world_size=lambda: size,
            ).start()
        if not torch.cuda.is_available():
            # No CUDA: host memory is not pinned and serves as its own device view.
            mock.patch.object(torch.cuda, "Stream", Stream).start()
            interpreter_takes_any_mask()
            kernel = "_lookup_ple_embedding_from_pinned_kernel"
            mock.patch.object(ngram, kernel, ByBytes(getattr(ngram, kernel))).start()
            mock.patch.object(
                ngram, "get_accelerator_view_from_cpu_tensor", host_view
            ).start()
            mock.patch.object(
                ngram.Qwen4ExpPLEPinnedHostEmbedding,
                "allocate_embedding_weight",
                lambda self, rows, dim, dtype: torch.empty(rows, dim, dtype=dtype),
            ).start()
        else:
            mock.patch.object(
                ngram, "get_accelerator_view_from_cpu_tensor", device_view
            ).start()
        try:
            yield
        finally:
            mock.patch.stopall()


def host_view(table):
    """Stands for `device_view` where there is no device."""
    assert len(table), "there is no table in memory to view"
    return table


def device_view(pinned):
    """What vLLM's compiled op gives: pinned host memory as a CUDA tensor."""

    class Memory:
        __cuda_array_interface__ = {
            "shape": (pinned.numel() * pinned.element_size(),),
            "typestr": "|u1",
            "data": (pinned.data_ptr(), False),
            "version": 3,
        }
        owner = pinned

    view = torch.as_tensor(Memory(), device="cuda")
    assert view.data_ptr() == pinned.data_ptr()
    return view.view(pinned.dtype).view(pinned.shape)


def rows(dtype, seed=0):
    """The whole table: every bit pattern but NaN, so that equality means bits."""
    import vllm.models.qwen4_exp.nvidia.ngram_embedding as ngram

    *_, total = ngram.Qwen4ExpNGramEmbedding._make_vocab_layout(
        ngram_vocab_size_base=CONFIG.ngram_vocab_size_base,
        ngram_heads=HEADS,
        ple_dense_layer_id=0,
    )
    padded = -(-total // 128) * 128
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(padded, DIM, generator=generator).mul_(30).to(dtype)


def write(folder: Path, table, scale=0.25, parts=CONFIG.split_ngram_parts):
    """The table as a checkpoint has it: row shards, spread over two files."""
    from safetensors.torch import save_file

    size = -(-len(table) // parts)
    files = [{"odd.offset": torch.zeros(13, dtype=torch.uint8)}, {}]
    for part in range(parts):
        shard = table[part * size : (part + 1) * size].clone()
        files[part % 2][f"ngram_embedding.shard_{part}.weight"] = shard
    if table.dtype == torch.float8_e4m3fn:
        files[1]["ngram_embedding.weight_scale"] = torch.tensor([scale])
    names = []
    for number, tensors in enumerate(files):
        names.append(str(folder / f"model-{number}.safetensors"))
        save_file(tensors, names[-1])
    return names


def weights(files, strategy="lazy"):
    from vllm.model_executor.model_loader.weight_utils import (
        safetensors_weights_iterator,
    )

    for name, tensor in safetensors_weights_iterator(files, False, strategy):
        if name.startswith("ngram_embedding"):
            yield name, tensor


def engram(**options):
    """An EngramConfig; one that cannot be had is a failure, not an error."""
    from pydantic import ValidationError
    from vllm.config.engram import EngramConfig

    try:
        return EngramConfig(**options)
    except ValidationError as error:
        pytest.fail(f"EngramConfig({options}): {error}")


def embedding(config, dtype, device="cpu", max_tokens=64):
    """vLLM's module for this placement, before its weights are loaded."""
    import vllm.models.qwen4_exp.nvidia.ngram_embedding as ngram

    text = Names(**vars(CONFIG))
    if dtype == torch.float8_e4m3fn:
        text.ple_embedding_dtype = "float8_e4m3fn"
    current = Names(engram_config=config)
    with (
        torch.device(device),
        mock.patch.object(ngram, "get_current_vllm_config", lambda: current),
    ):
        return ngram.Qwen4ExpNGramEmbedding(
            text,
            HEADS * DIM,
            0,
            max_tokens,
            data_parallel_rank=0,
            prefix="model.layers.1.ple.ple_embedding",
            params_dtype=dtype,
        )


def load(module, files, strategy="lazy"):
    """What the default loader does: load, then the post-load hooks."""
    from vllm.model_executor.model_loader import utils

    loaded = module.load_weights(weights(files, strategy))
    with (
        mock.patch.object(utils, "maybe_retie_word_embeddings", lambda *a: None),
        mock.patch.object(
            utils, "release_device_memory_under_pressure", lambda *a: None
        ),
    ):
        utils.process_weights_after_loading(
            module, Names(quantization=None, dtype=torch.bfloat16), torch.device("cpu")
        )
    return loaded


def same_bits(found, expected):
    return torch.equal(
        found.contiguous().view(torch.uint8).cpu(),
        expected.contiguous().view(torch.uint8).cpu(),
    )


def evict(files):
    """Drop the files' pages from the page cache."""
    for name in files:
        handle = os.open(name, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)
