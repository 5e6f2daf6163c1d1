# SPDX-License-Identifier: Apache-2.0
"""The PLE table on disk gives the pinned table's rows, bit for bit.

On a CPU: vLLM's own loader and modules, the pinned kernel in Triton's interpreter, and
the row reader called as the CUDA driver would call it. On a GPU: the same in streams
and in CUDA graphs, with a trace of the host's calls.
"""

import _gpu

import _cpu  # isort: skip

if not _gpu.HERE:
    _cpu.triton_interpreter()

import ctypes  # noqa: E402
import re  # noqa: E402
import time  # noqa: E402
from types import SimpleNamespace as Names  # noqa: E402

import _ple  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from _ple_steps import WAITS, Steps, on_gpu, trace_of  # noqa: E402
from pydantic import ValidationError  # noqa: E402
from vllm.config.engram import EngramConfig  # noqa: E402
from vllm.config.load import LoadConfig  # noqa: E402
from vllm.models.qwen4_exp.nvidia.ngram_embedding import (  # noqa: E402
    Qwen4ExpNGramEmbedding,
)

FP8, BF16 = torch.float8_e4m3fn, torch.bfloat16


def some_ids(table, count=24, seed=1):
    """[tokens, heads] of rows, with repeats, the first and the last row."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(len(table), (count // 4, 4), generator=generator)
    ids[0, 0], ids[0, 1], ids[1, 0] = 0, len(table) - 1, len(table) - 1
    return ids


def disk_module(files, dtype, **kwargs):
    module = _ple.embedding(_ple.engram(placement="disk"), dtype, **kwargs)
    assert _ple.load(module, files) >= {"ngram_embedding.weight"}
    return module.ngram_embedding


@pytest.mark.witness
@pytest.mark.parametrize("dtype", [FP8, BF16])
def test_rows_are_the_pinned_tables(tmp_path, dtype):
    table = _ple.rows(dtype)
    files = _ple.write(tmp_path, table)
    ids = some_ids(table)
    with _ple.world():
        pinned = _ple.embedding(_ple.engram(placement="pinned"), dtype)
        _ple.load(pinned, files)
        disk = disk_module(files, dtype)
        expected = pinned.ngram_embedding._lookup(ids)
        found = disk._lookup(ids)
        every = torch.arange(len(table)).reshape(-1, 16)
        assert found.shape == expected.shape and found.dtype == dtype
        assert _ple.same_bits(found, expected)
        assert _ple.same_bits(expected, table[ids])
        for start in range(0, len(every), 64):
            part = every[start : start + 64]
            assert _ple.same_bits(disk._lookup(part), table[part])
        if dtype == FP8:
            assert disk.weight_scale.item() == 0.25


@pytest.mark.witness
def test_each_rank_reads_its_own_rows(tmp_path):
    table = _ple.rows(FP8)
    files = _ple.write(tmp_path, table)
    ids = some_ids(table, count=200)
    total = torch.zeros(*ids.shape, _ple.DIM, dtype=torch.int8)
    counts = []
    for rank in range(2):
        with _ple.world(rank, 2):
            disk = disk_module(files, FP8)
            bounds = disk.shard_indices
            found = disk._lookup(ids).view(torch.int8)
            foreign = (ids < bounds.org_vocab_start_index) | (
                ids >= bounds.org_vocab_end_index
            )
            counts.append(int(foreign.sum()))
            assert not found[foreign].any()
            total += found
    assert sum(counts) == ids.numel() and min(counts) > 50
    assert _ple.same_bits(total, table[ids])


@pytest.mark.witness
def test_nothing_is_copied_and_nothing_read_around(tmp_path):
    table = _ple.rows(FP8)
    files = _ple.write(tmp_path, table)
    with _ple.world():
        disk = disk_module(files, FP8)
    held = sum(p.numel() * p.element_size() for p in disk.parameters())
    assert held < 100 < table.numel()
    # Every mapping of the files that holds rows is private, clean and advised random.
    smaps = open("/proc/self/smaps").read()
    blocks = [b for b in re.split(r"(?m)^(?=[0-9a-f]+-)", smaps) if str(tmp_path) in b]
    advised = [b for b in blocks if re.search(r"VmFlags:.* rr\b", b)]
    size = sum(int(re.search(r"Size:\s+(\d+)", b)[1]) << 10 for b in advised)
    assert size >= table.numel()
    assert all(re.search(r"Anonymous:\s+0 kB", b) for b in blocks)


def test_a_captured_job_sees_the_next_steps_ids(tmp_path):
    """A graph replays a job by its address: its ids and rows are read anew."""
    from vllm.models.qwen4_exp.nvidia import disk_embedding

    table = _ple.rows(FP8)
    with _ple.world():
        disk = disk_module(_ple.write(tmp_path, table), FP8)
        first, second = some_ids(table), some_ids(table, seed=2)
        disk._lookup(first)
        address = disk._jobs[first.numel()].ctypes.data
        disk._lookup(some_ids(table, count=48))
        disk._host_ids[: second.numel()] = second.flatten()
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
            disk_embedding._native().read_rows.address
        )
        call(address)
    found = disk._host_rows[: second.numel()].view(FP8).view(*second.shape, -1)
    assert _ple.same_bits(found, table[second])
    assert not _ple.same_bits(table[first], table[second])


def test_more_rows_than_reads_in_flight(tmp_path):
    table = _ple.rows(FP8)
    with _ple.world():
        disk = disk_module(_ple.write(tmp_path, table), FP8, max_tokens=512)
        ids = torch.randint(len(table), (512, 16))
        assert _ple.same_bits(disk._lookup(ids), table[ids])


def test_a_row_outside_the_table_is_zero(tmp_path):
    table = _ple.rows(FP8)
    with _ple.world():
        disk = disk_module(_ple.write(tmp_path, table), FP8)
        ids = torch.tensor([[-1, len(table), 3]])
        disk._host_rows.fill_(1)
        found = disk._lookup(ids)
    assert not found[0, :2].float().any()
    assert _ple.same_bits(found[0, 2], table[3])


def test_rows_that_came_in_memory_are_refused(tmp_path):
    files = _ple.write(tmp_path, _ple.rows(FP8))
    with _ple.world():
        module = _ple.embedding(_ple.engram(placement="disk"), FP8)
        with pytest.raises(ValueError, match="not as a view of a mapped file"):
            _ple.load(module, files, "eager")


def test_a_missing_row_is_named(tmp_path):
    table = _ple.rows(FP8)
    files = _ple.write(tmp_path, table)
    size = -(-len(table) // 5)
    with _ple.world():
        module = _ple.embedding(_ple.engram(placement="disk"), FP8)
        few = [(n, t) for n, t in _ple.weights(files) if "shard_2" not in n]
        module.load_weights(few)
        with pytest.raises(ValueError, match=rf"lacks embedding row {2 * size} "):
            module.ngram_embedding.finish_loading()
        with pytest.raises(RuntimeError, match="before the weights are loaded"):
            module.ngram_embedding._lookup(torch.tensor([[0]]))


def test_another_type_than_the_stored_one_is_refused(tmp_path):
    files = _ple.write(tmp_path, _ple.rows(torch.float16))
    with _ple.world():
        module = _ple.embedding(_ple.engram(placement="disk"), BF16)
        with pytest.raises(ValueError, match="stored as torch.float16"):
            _ple.load(module, files)


def whole(folder, table):
    """A checkpoint that has the table as one tensor; returns its only file."""
    from safetensors.torch import save_file

    name = str(folder / "model.safetensors")
    scale = torch.tensor([0.25])
    tensors = {"ngram_embedding.weight": table, "ngram_embedding.weight_scale": scale}
    save_file(tensors, name)
    return [name]


def test_a_table_that_is_one_tensor(tmp_path):
    table = _ple.rows(FP8)
    ids = some_ids(table)
    for rank in range(2):
        with _ple.world(rank, 2):
            disk = disk_module(whole(tmp_path, table), FP8)
            found, low = disk._lookup(ids), disk.shard_indices.org_vocab_start_index
            own = (ids >= low) & (ids < disk.shard_indices.org_vocab_end_index)
            assert own.any() and _ple.same_bits(found[own], table[ids[own]])


@pytest.mark.parametrize("change", ["longer", "shorter", "wider", "narrower"])
def test_the_table_of_another_model_is_refused(tmp_path, change):
    """Its rows lie elsewhere: read as they come they would be others'."""
    table = _ple.rows(FP8)
    bits = table.view(torch.uint8)
    other = {
        "longer": lambda: torch.cat([bits, bits[:128]]),
        "shorter": lambda: bits[:-128],
        "wider": lambda: torch.cat([bits, bits], 1),
        "narrower": lambda: bits[:, : _ple.DIM // 2],
    }[change]()
    files = whole(tmp_path, other.contiguous().view(FP8))
    with _ple.world():
        module = _ple.embedding(_ple.engram(placement="disk"), FP8)
        with pytest.raises(ValueError, match=r"have the shape .*, wanted is \("):
            _ple.load(module, files)


def test_a_second_load_is_refused(tmp_path):
    files = _ple.write(tmp_path, _ple.rows(FP8))
    with _ple.world():
        module = _ple.embedding(_ple.engram(placement="disk"), FP8)
        _ple.load(module, files)
        with pytest.raises(RuntimeError, match="a second time"):
            _ple.load(module, files)


def test_cpu_offload_keeps_its_meaning(monkeypatch):
    monkeypatch.delenv("VLLM_PLE_CPU_OFFLOAD", raising=False)
    assert EngramConfig().cpu_offload is True
    assert EngramConfig().table_placement == "pinned"
    assert EngramConfig(cpu_offload=False).table_placement == "device"
    monkeypatch.setenv("VLLM_PLE_CPU_OFFLOAD", "0")
    assert EngramConfig().table_placement == "device"
    for placement in ("device", "pinned", "disk"):
        config = EngramConfig(placement=placement)
        assert config.table_placement == placement
        assert config.cpu_offload is (placement == "pinned")
    assert EngramConfig(cpu_offload=False, placement="device").placement == "device"
    for offload, placement in ((True, "device"), (True, "disk"), (False, "pinned")):
        with pytest.raises(ValidationError, match="contradicts cpu_offload"):
            EngramConfig(cpu_offload=offload, placement=placement)
    with pytest.raises(ValidationError, match="dp_shared_memory requires"):
        EngramConfig(placement="disk", dp_shared_memory=True)
    hashes = {EngramConfig(placement=p).compute_hash() for p in ("disk", "device")}
    assert len(hashes) == 2


@pytest.mark.witness
def test_the_command_line_chooses_the_class(tmp_path):
    from vllm.engine.arg_utils import EngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    classes = []
    for placement in ("device", "pinned", "disk"):
        options = ["--engram-config", f'{{"placement": "{placement}"}}']
        try:
            config = parser.parse_args(options).engram_config
        except SystemExit:
            pytest.fail(f"{options} was refused")
        with _ple.world():
            module = _ple.embedding(config, FP8)
        classes.append(type(module.ngram_embedding).__name__)
    assert classes == [
        "Qwen4ExpPLEDeviceEmbedding",
        "Qwen4ExpPLEPinnedHostEmbedding",
        "Qwen4ExpPLEDiskEmbedding",
    ]


@pytest.mark.parametrize(
    ("options", "fits"),
    [
        ({}, True),
        ({"load_format": "safetensors"}, True),
        ({"safetensors_load_strategy": "prefetch"}, True),
        ({"load_format": "dummy"}, False),
        ({"load_format": "pt"}, False),
        ({"safetensors_load_strategy": "eager"}, False),
    ],
)
def test_only_a_loader_that_maps_will_do(options, fits):
    load = LoadConfig(**options)
    EngramConfig(placement="pinned").verify_load_config(load)
    if fits:
        EngramConfig(placement="disk").verify_load_config(load)
    else:
        with pytest.raises(ValueError, match="keeps the mapped checkpoint files"):
            EngramConfig(placement="disk").verify_load_config(load)


def test_other_models_are_refused(monkeypatch):
    from vllm.platforms import current_platform

    monkeypatch.setattr(current_platform, "is_cuda", lambda: True)
    text = Names(ple_layer_ids=[2], engram_layer_ids=[1])
    deepseek = Names(architecture="DeepseekV41ForCausalLM", hf_text_config=text)
    qwen = Names(architecture="Qwen4ExpForCausalLM", hf_text_config=text)
    EngramConfig(placement="disk").verify_model_config(qwen)
    EngramConfig(placement="pinned").verify_model_config(deepseek)
    with pytest.raises(ValueError, match="only supported for Qwen4Exp"):
        EngramConfig(placement="disk").verify_model_config(deepseek)


@pytest.mark.gpu
@pytest.mark.witness
@pytest.mark.parametrize("dtype", [FP8, BF16])
def test_three_placements_agree_on_a_gpu(tmp_path, dtype):
    table = _ple.rows(dtype)
    files = _ple.write(tmp_path, table)
    with _ple.world():
        for tokens in (1, 7, 64):
            outputs = {}
            for placement in ("device", "pinned", "disk"):
                steps = Steps(on_gpu(files, dtype, placement=placement), tokens)
                inputs = [steps.inputs(seed) for seed in range(5)]
                eager, replayed = [], []
                for given in inputs:
                    steps.give(given)
                    eager.append(steps.body().clone())
                graph, output = steps.capture()
                for given in inputs:
                    steps.give(given)
                    graph.replay()
                    replayed.append(output.clone())
                outputs[placement] = eager + replayed
            expected = [steps.expected(table, given) for given in inputs] * 2
            for placement, found in outputs.items():
                for one, right in zip(found, expected, strict=True):
                    assert _ple.same_bits(one, right), placement


@pytest.mark.gpu
@pytest.mark.witness
def test_a_replayed_step_waits_for_nothing_on_the_host(tmp_path):
    from torch.profiler import ProfilerActivity, profile, record_function

    table = _ple.rows(FP8)
    files = _ple.write(tmp_path, table)
    count = 30
    with _ple.world():
        steps = Steps(on_gpu(files, FP8, placement="disk"), 8)
        graph, output = steps.capture()
        inputs = [steps.inputs(seed) for seed in range(count)]
        kept = torch.empty(count, *output.shape, dtype=FP8, device="cuda")
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profile(activities=activities) as trace:
            torch.cuda.synchronize()
            with record_function("steps"):
                for number, given in enumerate(inputs):
                    steps.give(given)
                    graph.replay()
                    kept[number].copy_(output)
            torch.cuda.synchronize()
        for number, given in enumerate(inputs):
            assert _ple.same_bits(kept[number], steps.expected(table, given))
    seen, copies = trace_of(trace, tmp_path)
    _gpu.record("host calls in 30 replayed steps", seen)
    _gpu.record("copies in the trace", copies)
    assert not [name for name in seen if WAITS.search(name)], seen
    assert seen["cudaGraphLaunch"] == count
    # Each step's ids went to the host and its rows came back (inputs are HtoD too).
    assert copies == {"DtoH": count, "HtoD": 3 * count}


def took(function):
    """(ms until the launching thread is free, ms until the GPU is done)"""
    start = time.perf_counter()
    function()
    launched = time.perf_counter()
    torch.cuda.synchronize()
    done = time.perf_counter()
    return (launched - start) * 1000, (done - start) * 1000


@pytest.mark.gpu
def test_times_with_a_larger_table(tmp_path, monkeypatch):
    """For the record: a table of 2 GiB, warm and cold, in graphs and (2048 tokens) out
    of them. Cold steps look up rows that no one read since the file was evicted."""
    monkeypatch.setattr(_ple.CONFIG, "ngram_vocab_size_base", 838_000)
    monkeypatch.setattr(_ple.CONFIG, "vocab_size", 248_320)
    with _ple.world():
        *_, total = Qwen4ExpNGramEmbedding._make_vocab_layout(
            ngram_vocab_size_base=838_000, ngram_heads=16, ple_dense_layer_id=0
        )
        padded = -(-total // 128) * 128
        bits = np.random.default_rng(0).integers(0, 256, padded * _ple.DIM, np.uint8)
        table = torch.from_numpy(bits).view(FP8).view(padded, _ple.DIM)
        files = _ple.write(tmp_path, table)
        modules = {
            placement: on_gpu(files, FP8, max_tokens=2048, placement=placement)
            for placement in ("pinned", "disk")
        }
        _ple.evict(files)
        report = {}
        for tokens in (1, 8, 64, 2048):
            for placement, module in modules.items():
                steps = Steps(module, tokens)
                steps.body()
                torch.cuda.synchronize()
                run = steps.body
                if tokens < 2048:
                    graph, output = steps.capture()
                    run = graph.replay
                cold = []
                for seed in range(1000, 1010):
                    given = steps.inputs(seed * tokens)
                    steps.give(given)
                    torch.cuda.synchronize()
                    cold.append(took(run))
                found = run() if tokens == 2048 else (run(), output)[1]
                assert _ple.same_bits(found, steps.expected(table, given))
                launch, done = (sorted(column) for column in zip(*cold, strict=True))
                warm = [took(run)[1] for _ in range(50)]
                report[f"{placement} tokens={tokens}"] = {
                    "warm ms": round(sorted(warm)[25], 4),
                    "cold ms": [round(done[i], 3) for i in (0, 5, 9)],
                    "cold launch ms": round(launch[5], 4),
                }
        _gpu.record("times, 2 GiB table", report)
