# SPDX-License-Identifier: Apache-2.0
"""vLLM's Python on a GPU, without vLLM's compiled extensions. Import before vllm.

vLLM takes itself for a CPU build (its CUDA platform needs the extensions), while torch
and Triton see the GPU. Packages that the modules under proof import by the way, and
that a GPU machine may lack, are stood in for.
"""

import importlib.abc
import importlib.machinery
import json
import os
import subprocess
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import torch

HERE = torch.cuda.is_available()


class NVMLErrorNotAsked(Exception):
    """So named: vLLM takes an NVML error for "no CUDA platform"."""


class _Anything(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock(name=name)


class _StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives a package that has whatever is asked of it."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == self.package:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Anything(spec.name)

    def exec_module(self, module): ...


def _prepare():
    os.environ["VLLM_TARGET_DEVICE"] = "cpu"
    import torchvision  # noqa: F401  (its operators, before anyone declares them)

    nvml = types.ModuleType("vllm.third_party.pynvml")

    def init():
        raise NVMLErrorNotAsked

    nvml.nvmlInit = init
    sys.modules["vllm.third_party.pynvml"] = nvml
    for package in ("llguidance", "xgrammar"):
        if find_spec(package) is None:
            sys.meta_path.append(_StandIn(package))


if HERE:
    _prepare()


def record(name, value):
    """Add a measurement to $PATCHKIT_GPU_RECORD, a JSON file."""
    if not (target := os.environ.get("PATCHKIT_GPU_RECORD")):
        return
    path = Path(target)
    known = json.loads(path.read_text()) if path.exists() else {}
    known[name] = value
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def machine():
    """What a result says of the machine it came from."""
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
    ).stdout.split()
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": driver[0] if driver else "unknown",
        "torch": torch.__version__,
    }


def microseconds(function, calls=20, repeats=20):
    """GPU time of a call: of 20 in a CUDA graph, the best of 20 replays."""
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            function()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000 / calls)
    return round(min(times), 2)
