# SPDX-License-Identifier: Apache-2.0
"""vLLM on a CPU without a build. Import before vllm (and before triton)."""

import os

os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


def triton_interpreter():
    """Run Triton kernels in Python; the empty device list keeps vLLM's Triton on."""
    os.environ["TRITON_INTERPRET"] = "1"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def interpreter_like_a_gpu():
    """Triton 3.9's interpreter multiplies the bit patterns of BF16 matrices, cuts
    float32 off to BF16 instead of rounding it, and widens a scalar condition that
    meets a block to int32, which its masked load then refuses. Put that right."""
    import numpy as np
    import torch
    import triton.language as tl
    from triton.runtime import interpreter

    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    base_dot, base_cast = builder.create_dot, builder.cast_impl

    def wide(operand):
        if operand.dtype.scalar != tl.bfloat16:
            return operand
        bits = operand.data.astype(np.uint32) << 16
        return handle(bits.view(np.float32), tl.float32)

    def create_dot(self, a, b, d, *args):
        return base_dot(self, wide(a), wide(b), d, *args)

    def cast_impl(self, src, dst_type):
        pair = src.dtype.scalar, dst_type.scalar
        if pair != (tl.float32, tl.bfloat16):
            return base_cast(self, src, dst_type)
        data = torch.from_numpy(np.ascontiguousarray(src.data)).bfloat16()
        return handle(data.view(torch.int16).numpy().view(np.uint16), tl.bfloat16)

    def create_splat(self, ret_ty, arg):
        one = np.asarray(arg.data).reshape(-1)[0]
        return handle(np.full(ret_ty.shape, one, arg.data.dtype), arg.dtype.scalar)

    builder.create_dot, builder.cast_impl = create_dot, cast_impl
    builder.create_splat = create_splat


def torchvision_without_its_library():
    """PyPI's torchvision is built for CUDA, so beside a CPU torch its operators are
    missing and the import dies on registering fakes for two of them. Declared by
    hand, its Python part imports."""
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(
                name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
    return library


_library = torchvision_without_its_library()


def models_are_asked_in_this_process():
    """vLLM's registry imports a model class in a fresh process to ask what it can do;
    that process would lack the above (and costs 20 s)."""
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda ask: ask()
