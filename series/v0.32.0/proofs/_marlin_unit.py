# SPDX-License-Identifier: Apache-2.0
"""The smallest unit of vLLM's MARLIN MoE op that runs on a GPU, built from a tree.

Compiles `moe_wna16_marlin_gemm`, `moe_align_block_size`, `moe_sum` and
`gptq_marlin_repack` from the csrc/ of a vLLM source tree, under the schemas that this
tree itself declares, for the GPU in the machine. Of the generated kernels only those a
proof asks about are instantiated: NVFP4 and, for the per-column scale, uint4b8 with one
scale a column.

    python _marlin_unit.py TREE     builds TREE's unit and prints the library's path

Needs nvcc (CUDA 13.0 was used) and torch >= 2.11. The library is kept by the digest of
its sources under $PATCHKIT_UNIT_DIR (default: the temporary directory).
"""

import ctypes
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

MARLIN = "moe/marlin_moe_wna16"
SOURCES = (
    "quantization/marlin/generate_kernels.py",
    f"{MARLIN}/kernel.h",
    f"{MARLIN}/marlin_template.h",
    f"{MARLIN}/ops.cu",
    "moe/moe_align_sum_kernels.cu",
    "moe/moe_ops.h",
    "moe/torch_bindings.cpp",
    "quantization/marlin/dequant.h",
    "quantization/marlin/gptq_marlin_repack.cu",
    "quantization/marlin/marlin.cuh",
    "quantization/marlin/marlin_dtypes.cuh",
    "quantization/marlin/marlin_mma.h",
    "torch_bindings.cpp",
    "torch_utils.h",
)
MOE_OPS = (
    "moe_sum",
    "moe_align_block_size",
    "moe_wna16_marlin_gemm",
    "moe_wna16_marlin_fp32_epilogue",
)
FLAGS = (
    "-std=c++17 -O3 -Xcompiler -fPIC -DUSE_CUDA --expt-relaxed-constexpr "
    "-static-global-template-stub=false -diag-suppress 20012,177,186 "
    "-DTORCH_TARGET_VERSION=0x020B000000000000ULL"
).split()


def digest(tree: Path) -> str:
    seen = hashlib.sha256(Path(__file__).read_bytes())
    for name in SOURCES:
        seen.update(name.encode() + b"\0" + (tree / "csrc" / name).read_bytes())
    return seen.hexdigest()[:16]


def _schemas(bindings: str, names: tuple[str, ...]) -> list[str]:
    """The declarations of these ops in a torch_bindings.cpp, as they stand there."""
    found = []
    for call in re.findall(r"\w+\.def\(\s*((?:\"[^\"]*\"\s*)+)", bindings):
        schema = "".join(re.findall(r"\"([^\"]*)\"", call))
        if schema.split("(")[0] in names:
            found.append(schema)
    return found


def _bind(csrc: Path) -> str:
    def defs(file: str, names: tuple[str, ...]) -> str:
        text = (csrc / file).read_text()
        return "".join(f'  m.def("{s}");\n' for s in _schemas(text, names))

    moe = defs("moe/torch_bindings.cpp", MOE_OPS)
    repack = defs("torch_bindings.cpp", ("gptq_marlin_repack",))
    return (
        "#include <torch/csrc/stable/library.h>\n"
        '#include "moe/moe_ops.h"\n'
        f"STABLE_TORCH_LIBRARY_FRAGMENT(_moe_C, m) {{\n{moe}}}\n"
        f"STABLE_TORCH_LIBRARY_FRAGMENT(_C, m) {{\n{repack}}}\n"
        "STABLE_TORCH_LIBRARY_IMPL(_moe_C, CUDA, m) {\n"
        '  m.impl("moe_sum", TORCH_BOX(&moe_sum));\n'
        '  m.impl("moe_align_block_size", TORCH_BOX(&moe_align_block_size));\n}\n'
    )


def _generate(csrc: Path, work: Path) -> None:
    """Run the tree's own generator, with fewer quantisations, beside a copy."""
    for name in ("kernel.h", "marlin_template.h", "ops.cu"):
        (work / name).write_bytes((csrc / MARLIN / name).read_bytes())
    source = (csrc / "quantization/marlin/generate_kernels.py").read_text()
    few = (
        'QUANT_CONFIGS = [c for c in QUANT_CONFIGS if "a_type" not in c and ('
        'c.get("s_type") == "kFE4M3fn" or c["b_type"] == "kU4B8")]\n'
        "for c in QUANT_CONFIGS:\n"
        '    if c["b_type"] == "kU4B8":\n'
        '        c["group_blocks"] = [-1]\n\n\n'
    )
    assert source.count("def remove_old_kernels") == 1
    source = source.replace("def remove_old_kernels", few + "def remove_old_kernels")
    script = work / "generate_few.py"
    script.write_text(source)
    subprocess.run([sys.executable, str(script), "9.0", str(work)], check=True)


def _arch() -> str:
    if arch := os.environ.get("PATCHKIT_UNIT_ARCH"):
        return arch
    return "{}{}".format(*torch.cuda.get_device_capability())


def build(tree: Path) -> Path:
    csrc = tree / "csrc"
    home = Path(os.environ.get("PATCHKIT_UNIT_DIR") or tempfile.gettempdir())
    folder = home / f"marlin-unit-{digest(tree)}-sm{_arch()}"
    library = folder / "libunit.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    _generate(csrc, folder)
    (folder / "bind.cpp").write_text(_bind(csrc))
    includes = [csrc, Path(torch.__file__).parent / "include"]
    includes.append(includes[-1] / "torch/csrc/api/include")
    nvcc = os.environ.get("NVCC", "nvcc")
    probe = subprocess.run(
        [nvcc, "-E", "-x", "cu", "-", "-o", os.devnull],
        input=b"#include <cublas_v2.h>",
        capture_output=True,
    )
    if probe.returncode:  # torch_utils.h wants only the handle's type
        shim = folder / "shim"
        shim.mkdir(exist_ok=True)
        (shim / "cublas_v2.h").write_text(
            "typedef struct cublasContext* cublasHandle_t;\n"
        )
        includes.append(shim)
    common = [nvcc, *FLAGS, *(f"-I{path}" for path in includes)]
    common += ["-gencode", f"arch=compute_{_arch()},code=sm_{_arch()}"]
    units = sorted(folder.glob("sm80_kernel_*.cu"))
    units += [
        folder / "ops.cu",
        csrc / "moe/moe_align_sum_kernels.cu",
        csrc / "quantization/marlin/gptq_marlin_repack.cu",
        folder / "bind.cpp",
    ]

    def compile_one(unit: Path) -> Path:
        out = folder / (unit.name + ".o")
        done = subprocess.run(
            [*common, "-c", str(unit), "-o", str(out)], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{unit.name}: {done.stdout}{done.stderr}")
        return out

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, units))
    part = library.with_suffix(".part")
    subprocess.run([nvcc, "-shared", *map(str, objects), "-o", str(part)], check=True)
    part.rename(library)
    return library


def tree() -> Path:
    """The vLLM source tree that Python imports from."""
    for place in (*os.environ.get("PYTHONPATH", "").split(os.pathsep), *sys.path):
        if place and (Path(place) / "csrc/moe").is_dir():
            return Path(place)
    raise RuntimeError("no vLLM source tree on PYTHONPATH")


def load(tree: Path) -> None:
    """Build where needed, then register the ops in this process."""
    libs = Path(torch.__file__).parent / "lib"
    for name in ("c10", "torch_cpu", "c10_cuda", "torch_cuda"):
        ctypes.CDLL(str(libs / f"lib{name}.so"), mode=ctypes.RTLD_GLOBAL)
    torch.ops.load_library(str(build(tree)))


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
