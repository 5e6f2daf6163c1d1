# SPDX-License-Identifier: Apache-2.0
"""Few rows are multiplied by exllamav3's own kernel, where that is asked for and only
there. Here a stand-in for the package looks at what it is handed; on a GPU it is the
package itself, and what it takes stands beside what our kernels take."""

import _exl3_device as device
import _gpu
import pytest
import torch

import _exl3 as x  # isort: skip
import _exl3_small as small  # isort: skip

import importlib.abc  # noqa: E402
import importlib.machinery  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import types  # noqa: E402

UTILS = "vllm.model_executor.layers.quantization.utils"
SETTINGS = ("EXL3_EXPANDABLE_SEGMENTS", "EXL3_INT8_GEMV")
Q = x.weight(256, 256, 80, "mcg", seed=1)
K = x.weight(256, 128, 64, "3inst", seed=2)
V = x.weight(256, 128, 40, "mul1", seed=3)


def qkv(monkeypatch):
    return x.linear_layer(
        monkeypatch,
        "QKVParallelLinear",
        (256, 128, 2, 1),
        {f"m.{n}_proj": t for n, t in zip("qkv", (Q, K, V))},
        [("q", Q), ("k", K), ("v", V)],
        prefix="m.qkv_proj",
    )


def dense(rows):
    return torch.cat([rows.double() @ x.dense(t) for t in (Q, K, V)], 1)


def inputs(rows, size=256):
    return torch.randn(rows, size, generator=torch.Generator().manual_seed(rows))


def forget():
    """Let the package be looked for again."""
    if (module := sys.modules.get(f"{UTILS}.exl3_package")) is not None:
        module.product.cache_clear()


class Package:
    """Stands for exllamav3 1.6.5: takes what its exl3_gemm takes, and nothing else."""

    def __init__(self):
        self.calls = []

    def exl3_gemm(self, a, trellis, c, suh, a_had, svh, shape, mcg, mul1, processors):
        rows, size = a.shape
        columns = trellis.shape[1] * 16
        assert a.dtype == a_had.dtype == torch.float16
        assert suh.dtype == svh.dtype == torch.float16
        assert trellis.dtype == torch.int16
        assert c.dtype == torch.float32
        assert a_had.shape == a.shape
        assert a_had.data_ptr() != a.data_ptr()
        assert trellis.shape[0] * 16 == size == suh.numel()
        assert c.shape == (rows, columns)
        assert svh.numel() == columns
        for tensor in (a, trellis, c, suh, a_had, svh):
            assert tensor.is_contiguous()
        assert (shape, processors) == (-1, 0)
        codebook = {(True, False): "mcg", (False, True): "mul1", (False, False): "3inst"}
        kind = codebook[mcg, mul1]
        assert trellis.shape[2] % 16 == 0 or kind == "mul1"
        tensors = {"trellis": trellis, "suh": suh, "svh": svh, kind: None}
        c.copy_(a.double() @ x.dense(tensors))
        self.calls.append((rows, size, columns, trellis.shape[2], kind))

    def take(self):
        calls, self.calls = self.calls, []
        return calls


class Asked(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Notes who asks for exllamav3, and answers with this error."""

    def __init__(self, error):
        self.error, self.times = error, 0

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "exllamav3":
            return None
        self.times += 1
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        raise self.error


@pytest.fixture(autouse=not device.GPU)
def nothing_installed(monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "exllamav3"]:
        monkeypatch.delitem(sys.modules, name)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    forget()
    yield
    forget()
    for name in SETTINGS:  # set by the code under proof, not through monkeypatch
        if name not in before:
            os.environ.pop(name, None)


@pytest.fixture
def package(monkeypatch):
    package = Package()
    modules = {"exllamav3": types.ModuleType("exllamav3")}
    modules["exllamav3.ext"] = types.ModuleType("exllamav3.ext")
    modules["exllamav3.ext"].exllamav3_ext = package
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return package


@pytest.fixture
def asked(monkeypatch):
    def answer(error):
        finder = Asked(error)
        monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
        return finder

    return answer


PARTS = [(256, 256, 80, "mcg"), (256, 128, 64, "3inst"), (256, 128, 40, "mul1")]


@pytest.mark.witness
def test_few_rows_are_the_packages(monkeypatch, package):
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    layer = qkv(monkeypatch)
    monkeypatch.delenv("VLLM_EXL3_BACKEND")  # read when the layer was built
    for rows in (1, 3):
        out = layer(inputs(rows))
        assert package.take() == [(rows, *part) for part in PARTS]
        assert out.dtype == torch.float32
        assert x.relative_error(out, dense(inputs(rows))) < 5e-4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_models_type_comes_out(monkeypatch, package, dtype):
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    wide = torch.cat([inputs(3)] * 2, 1).to(dtype)
    rows = wide[:, :256]  # as a piece of another layer's output
    out = qkv(monkeypatch)(rows)
    assert len(package.take()) == 3
    assert out.dtype == dtype
    limit = 2e-3 if dtype == torch.bfloat16 else 5e-4
    assert x.relative_error(out, dense(rows)) < limit


def test_a_cut_layer(monkeypatch, package):
    """Rows from the middle of a block on, to the middle of another: zeros before."""
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    down = x.weight(640, 128, 56, "mul1", seed=9)
    layer = x.linear_layer(
        monkeypatch,
        "RowParallelLinear",
        (640, 128),
        {"m.down_proj": down},
        [(None, down)],
        1,
        2,
        "m.down_proj",
    )
    mine = inputs(2, 640)[:, 320:]
    out = layer(mine.contiguous())
    assert package.take() == [(2, 384, 128, 56, "mul1")]
    assert x.relative_error(out, mine.double() @ x.dense(down)[320:]) < 5e-4


def test_more_rows_and_other_kernels_stay_ours(monkeypatch, package):
    from vllm.model_executor.layers.quantization.utils import exl3_linear

    monkeypatch.setattr(exl3_linear, "MAX_GEMV_ROWS", 2)
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    monkeypatch.setenv("VLLM_EXL3_PREFILL_RECONSTRUCT", "0")
    out = qkv(monkeypatch)(inputs(3))
    assert package.take() == []
    assert x.relative_error(out, dense(inputs(3))) < 1e-5
    monkeypatch.setenv("VLLM_EXL3_LINEAR_GEMV", "0")
    assert x.relative_error(qkv(monkeypatch)(inputs(2)), dense(inputs(2))) < 1e-5
    assert package.take() == []


def test_the_head_is_the_packages_too(monkeypatch, package):
    from vllm.model_executor.layers.quantization.exl3 import Exl3Switches
    from vllm.model_executor.layers.quantization.utils import exl3_linear

    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    monkeypatch.setenv("VLLM_EXL3_LINEAR_GEMV", "0")
    wanted = exl3_linear.USE_GEMV | exl3_linear.USE_PACKAGE
    assert Exl3Switches.read().linear_flags(head=True) & wanted == wanted
    monkeypatch.setenv("VLLM_EXL3_LM_HEAD", "0")
    assert Exl3Switches.read().linear_flags(head=True) == 0


ERRORS = [
    ModuleNotFoundError("No module named 'exllamav3'"),
    OSError("CUDA_HOME environment variable is not set"),
    RuntimeError("Error building extension 'exllamav3_ext'"),
]


@pytest.mark.witness
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_without_the_package_no_layer_is_built(monkeypatch, asked, error):
    asked(error)
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    try:
        qkv(monkeypatch)
        said = "a layer was built"
    except ImportError as refused:
        said = str(refused)
    except (OSError, RuntimeError) as told:
        said = f"only {told!r}"
    assert said.startswith("VLLM_EXL3_BACKEND=exllamav3 needs")
    assert f"{type(error).__name__}: {error}" in said
    assert "unset VLLM_EXL3_BACKEND" in said


def test_a_package_without_the_operator_is_refused(monkeypatch, package):
    sys.modules["exllamav3.ext"].exllamav3_ext = types.SimpleNamespace()
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    with pytest.raises(ImportError, match=r"exl3_gemm.*1\.6\.5.*AttributeError"):
        qkv(monkeypatch)


def test_unset_the_package_is_not_even_looked_for(monkeypatch, asked):
    finder = asked(AssertionError("imported"))
    ours = qkv(monkeypatch)(inputs(2))
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "triton")
    assert torch.equal(qkv(monkeypatch)(inputs(2)), ours)
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    monkeypatch.setenv("VLLM_EXL3_KERNELS", "0")
    reference = qkv(monkeypatch)(inputs(2))
    assert x.relative_error(reference, dense(inputs(2))) < 1e-5
    assert finder.times == 0
    assert not any(name in os.environ for name in SETTINGS)


def test_the_packages_own_settings(monkeypatch, package):
    """As our kernels count: fp16 activations, and vLLM's allocator as it is; a setting
    of the user stays."""
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    qkv(monkeypatch)
    assert [os.environ.get(name) for name in SETTINGS] == ["0", "0"]
    forget()
    monkeypatch.setenv("EXL3_INT8_GEMV", "1")
    qkv(monkeypatch)
    assert os.environ["EXL3_INT8_GEMV"] == "1"


def test_the_switch_has_two_values_and_counts_for_the_compile_cache(monkeypatch):
    from vllm import envs

    assert envs.compile_factors()["VLLM_EXL3_BACKEND"] == "triton"
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    assert envs.compile_factors()["VLLM_EXL3_BACKEND"] == "exllamav3"
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllama")
    with pytest.raises(ValueError, match=r"exllama.*VLLM_EXL3_BACKEND.*triton"):
        qkv(monkeypatch)


@pytest.fixture
def real(monkeypatch):
    """exllamav3 itself, watched: how often its operator ran."""
    import exllamav3.ext

    times = []
    ext = exllamav3.ext.exllamav3_ext
    product = ext.exl3_gemm

    def watched(*args):
        times.append(args[0].shape[0])
        return product(*args)

    watching = types.SimpleNamespace(exl3_gemm=watched)
    monkeypatch.setattr(exllamav3.ext, "exllamav3_ext", watching)
    forget()
    yield types.SimpleNamespace(ext=ext, times=times)
    forget()


@pytest.mark.gpu
@pytest.mark.witness
def test_gpu_the_package_multiplies_few_rows(monkeypatch, real):
    monkeypatch.setenv("VLLM_EXL3_BACKEND", "exllamav3")
    layer = qkv(monkeypatch).cuda()
    worst = {}
    for rows in (*range(1, 17), 17, 32, 33, 64):
        for dtype, limit in ((torch.bfloat16, 2e-3), (torch.float16, 1e-3)):
            batch = inputs(rows).to(dtype).cuda()
            out = layer(batch)
            assert real.times[-3:] == [rows] * 3
            error = x.relative_error(out.cpu(), dense(batch.cpu()))
            worst[str(dtype)] = max(worst.get(str(dtype), 0), error)
            assert error < limit
    _gpu.record("backend: worst error, q, k and v of three rates, 1 to 64 rows", worst)
    layer(inputs(65).cuda())
    assert 65 not in real.times


@pytest.mark.gpu
@pytest.mark.parametrize("backend", ["triton", "exllamav3"])
def test_gpu_a_small_model(monkeypatch, real, backend):
    """Two layers of attention and routed experts and a head, captured as one graph."""
    monkeypatch.setenv("VLLM_EXL3_BACKEND", backend)
    model = small.Model(monkeypatch, "cuda")
    for dtype, limit in ((torch.bfloat16, 3e-2), (torch.float16, 1e-2)):
        rows = inputs(4).to(dtype).cuda()
        error = x.relative_error(model(rows).cpu(), model.exact(rows.cpu().double()))
        _gpu.record(f"small model, {backend}, {dtype}: relative norm of its logits", error)
        assert error < limit
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = model(rows)
        rows.copy_(inputs(9)[:4].to(dtype))
        graph.replay()
        assert torch.equal(captured, model(rows))
    assert bool(real.times) == (backend == "exllamav3")


@pytest.mark.gpu
def test_gpu_side_by_side(monkeypatch, real):
    """Parity, capture and time of our kernels, and the package's on the same tensors,
    in one run."""
    if f"{UTILS}.exl3_package" not in sys.modules:
        pytest.fail("the tree before: there is nothing to set beside it")
    import _exl3_gpu as linear
    import _exl3_gpu_experts as experts

    linear.compile_all()
    torch.manual_seed(0)
    linear.parity()
    linear.capture()
    linear.times(real.ext)
    linear.other_times()
    held = experts.make_experts()
    experts.capture(held)
    experts.times(real.ext, held)
