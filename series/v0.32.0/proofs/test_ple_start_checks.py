# SPDX-License-Identifier: Apache-2.0
"""A pinned PLE table that the host has no room for is refused, not asked for."""

import ast
import inspect
import resource
from types import SimpleNamespace as Names

import _ple
import pytest
import torch
import vllm.models.qwen4_exp.common.ngram_embedding as ngram

GIB = 1 << 30


@pytest.fixture(autouse=True)
def host(monkeypatch):
    """A machine with 8 GiB, 3 of them free, and a driver that pins what it is asked."""
    import psutil

    memory = Names(total=8 * GIB, available=3 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    for variable in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(variable, raising=False)
    asked = []
    empty = torch.empty

    def pinned_empty(*size, pin_memory=False, **kwargs):
        if pin_memory:
            asked.append(size)
            if host.refuses:
                raise RuntimeError("CUDA error: out of memory")
            return empty(0, size[-1], **kwargs)
        return empty(*size, **kwargs)

    monkeypatch.setattr(torch, "empty", pinned_empty)
    host = Names(memory=memory, asked=asked, refuses=False)
    no_cgroup = monkeypatch.setattr
    try:
        from vllm.utils import host_memory
    except ImportError:
        return host
    no_cgroup(host_memory, "_CGROUP", host_memory.Path("/nowhere"))
    return host


def pin(gib, ranks=1, devices=1):
    """Allocate a table of this size as each of `ranks` ranks does."""
    layer = object.__new__(ngram.Qwen4ExpPLEPinnedHostEmbedding)
    torch.nn.Module.__init__(layer)
    layer.tp_size = ranks
    rows = int(gib * GIB) // 160  # never more than `gib`
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.accelerator, "device_count", lambda: devices)
        return layer.allocate_embedding_weight(rows, 160, torch.float8_e4m3fn)


def refusal(*args, **kwargs):
    try:
        pin(*args, **kwargs)
    except RuntimeError as error:
        return str(error)
    pytest.fail("the allocation was let through")


def test_a_table_that_fits_is_pinned(host):
    pin(2)
    assert host.asked


@pytest.mark.witness
def test_more_than_is_available_is_refused(host):
    message = refusal(4)
    assert not host.asked, "pinned before it was checked"
    assert "needs 4.0 GiB of pinned memory" in message
    assert "3.0 GiB are available" in message
    assert "VLLM_HOST_MEMORY_CHECK=0 skips this check" in message
    assert '--engram-config \'{"placement": "disk"}\'' in message


@pytest.mark.witness
def test_what_all_ranks_of_the_host_need_is_counted(host):
    host.memory.total = 5 * GIB
    message = refusal(2, ranks=3, devices=4)
    assert not host.asked, "pinned before it was checked"
    assert "each of 3 ranks" in message and "5.0 GiB in all" in message
    assert "VLLM_HOST_MEMORY_CHECK=0 skips this check" in message


def test_ranks_on_other_hosts_are_not_counted(host):
    host.memory.total = 5 * GIB
    pin(2, ranks=3, devices=1)
    assert host.asked


@pytest.mark.witness
def test_what_torch_takes_is_counted(host):
    """Its pinned allocator takes the next power of two: 51.2 GB become 68.7."""
    message = refusal(2.5)
    assert not host.asked, "pinned before it was checked"
    assert "needs 4.0 GiB of pinned memory" in message
    assert "(2.5 GiB, rounded up" in message
    host.memory.available, host.memory.total = 4 * GIB, 8 * GIB
    let_through(2.5)
    let_through(2.5, ranks=2, devices=2)
    host.memory.total -= 1
    assert "4.0 GiB of pinned memory" in refusal(2.5, ranks=2, devices=2)


@pytest.mark.parametrize(
    ("names", "conf", "exact"),
    [
        ("PYTORCH_ALLOC_CONF", "pinned_max_round_threshold_mb:1024", True),
        ("PYTORCH_CUDA_ALLOC_CONF", "pinned_max_cached_size_mb:2048", True),
        ("PYTORCH_ALLOC_CONF", "a:1, pinned_max_round_threshold_mb : 2559", True),
        ("PYTORCH_ALLOC_CONF", "pinned_max_round_threshold_mb:2560", False),
        ("PYTORCH_ALLOC_CONF", "expandable_segments:True", False),
    ],
)
def test_torch_can_be_told_not_to_round(host, monkeypatch, names, conf, exact):
    monkeypatch.setenv(names, conf)
    from vllm.utils.host_memory import pinned_size

    size = 2560 << 20
    assert pinned_size(size) == (size if exact else 4 * GIB)
    if exact:
        let_through(2.75)
    else:
        assert "rounded up" in refusal(2.5)


def test_what_torch_takes_of_small_sizes():
    from vllm.utils.host_memory import pinned_size

    sizes = {0: 1, 1: 1, 2: 2, 3: 4, 4096: 4096, 4097: 8192}
    assert {size: pinned_size(size) for size in sizes} == sizes


@pytest.mark.witness
@pytest.mark.parametrize("limit", [64 << 10, resource.RLIM_INFINITY])
def test_a_refusal_of_the_driver_is_explained(host, monkeypatch, limit):
    monkeypatch.setattr(resource, "getrlimit", lambda what: (limit, limit))
    host.refuses = True
    message = refusal(2)
    assert "CUDA error: out of memory" in message
    assert "3.0 GiB are available" in message, message
    if limit == resource.RLIM_INFINITY:
        assert "`ulimit -l` sets no limit" in message
    else:
        assert "`ulimit -l` is 64 KiB" in message
        assert "memlock=-1" in message


def test_a_containers_limit_is_the_host(host, monkeypatch, tmp_path):
    from vllm.utils import host_memory

    monkeypatch.setattr(host_memory, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(f"{4 * GIB}\n")
    (tmp_path / "memory.current").write_text(f"{3 * GIB}\n")
    # Clean page cache counts as used, yet is there for the asking.
    stat = f"anon {GIB}\ninactive_file {GIB}\nactive_file {GIB // 2}\n"
    (tmp_path / "memory.stat").write_text(stat)
    assert host_memory.host_memory() == (4 * GIB, 2.5 * GIB)
    let_through(2)
    assert "2.5 GiB are available" in refusal(4)
    (tmp_path / "memory.max").write_text("max\n")
    assert host_memory.host_memory() == (8 * GIB, 3 * GIB)


def let_through(*args, **kwargs):
    try:
        pin(*args, **kwargs)
    except RuntimeError as error:
        pytest.fail(f"refused: {error}")


@pytest.mark.parametrize("room", [1, 2])
def test_the_last_byte_counts(host, room):
    """What is available may be taken whole; a byte less is too little."""
    host.memory.available = room * GIB
    let_through(room)
    host.memory.available -= 1
    assert f"needs {room}.0 GiB" in refusal(room)
    host.memory.available, host.memory.total = 8 * GIB, 2 * GIB
    let_through(1, ranks=2, devices=2)
    host.memory.total -= 1
    assert "each of 2 ranks" in refusal(1, ranks=2, devices=2)


def test_the_check_can_be_turned_off(host, monkeypatch):
    monkeypatch.setenv("VLLM_HOST_MEMORY_CHECK", "0")
    let_through(3.5)
    let_through(3.5, ranks=3, devices=3)
    assert host.asked
    host.refuses = True
    message = refusal(3.5)
    assert "3.0 GiB are available" in message and "`ulimit -l`" in message


def test_the_switch_is_declared_as_it_holds_and_leaves_compiled_code_alone(monkeypatch):
    """Type checkers read the declared default; the compile cache must not be made anew
    for a check of memory."""
    import vllm.envs as envs

    monkeypatch.delenv("VLLM_HOST_MEMORY_CHECK", raising=False)
    declared = {
        entry.target.id: ast.literal_eval(entry.value)
        for block in ast.parse(inspect.getsource(envs)).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for entry in block.body
        if isinstance(entry, ast.AnnAssign) and entry.target.id == "VLLM_HOST_MEMORY_CHECK"
    }
    assert declared == {"VLLM_HOST_MEMORY_CHECK": envs.VLLM_HOST_MEMORY_CHECK}
    factors = envs.compile_factors()
    monkeypatch.setenv("VLLM_HOST_MEMORY_CHECK", "0")
    assert envs.compile_factors() == factors


@pytest.mark.witness
def test_the_disk_placements_staging_is_checked(host):
    """512 tokens of 16 rows: an id of 8 bytes and 160 bytes of FP8 each, and torch
    makes 2 MiB of 1.25."""
    need = 512 * 16 * 8 + (2 << 20)
    config = _ple.engram(placement="disk")
    host.memory.available = need
    with _ple.world():
        table = _ple.embedding(config, torch.float8_e4m3fn, max_tokens=512).ngram_embedding
        assert table._host_ids.shape == (512 * 16,)
        assert table._host_rows.shape == (512 * 16, 160)
        host.memory.available = need - 1
        with pytest.raises(RuntimeError, match="PLE rows of 512 tokens needs") as said:
            _ple.embedding(config, torch.float8_e4m3fn, max_tokens=512)
    assert "Lower --max-num-batched-tokens." in str(said.value)
