# SPDX-License-Identifier: Apache-2.0
"""Where an EXL3 proof's kernels run: on the machine's GPU, or in Triton's interpreter.
Import before vllm."""

import _gpu

import _cpu  # isort: skip

GPU = _gpu.HERE
if GPU:
    from vllm.platforms import current_platform

    # vLLM takes itself for a CPU build; its operators are for the GPU's tensors here.
    type(current_platform).dispatch_key = "CUDA"
else:
    _cpu.triton_interpreter()
