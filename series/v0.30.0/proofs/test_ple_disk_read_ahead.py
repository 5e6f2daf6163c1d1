# SPDX-License-Identifier: Apache-2.0
"""The disk is asked for a prompt's PLE rows some steps before they are looked up.

The model state is driven as the model runner drives it; what it asked the disk for is
read from the page cache itself (mincore). On a GPU the steps are CUDA graphs, and a
trace shows that they do not wait for it.
"""

import _gpu

import _cpu  # isort: skip

if not _gpu.HERE:
    _cpu.triton_interpreter()

import ctypes  # noqa: E402
import mmap  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from types import SimpleNamespace as Names  # noqa: E402

import _ple  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
import vllm.models.qwen4_exp.nvidia.model_state as model_state  # noqa: E402
from _ple_steps import WAITS, Steps, on_gpu, trace_of  # noqa: E402
from vllm.v1.worker.gpu.model_states.mamba_hybrid import (  # noqa: E402
    MambaHybridModelState,
)

FP8 = torch.float8_e4m3fn
WINDOW = 8


def prompt(length, seed=3):
    tokens = torch.randint(
        1, _ple.CONFIG.vocab_size, (length,), generator=torch.manual_seed(seed)
    )
    tokens[length // 3] = _ple.EOS
    return tokens.tolist()


def looked_up(module, tokens, **where):
    """The rows that the lookup of each token will read: vLLM's own hash."""
    return module.compute_ngram_ids(
        torch.tensor(tokens, **where),
        torch.tensor([0, len(tokens)], **where),
        torch.full((1, 2), _ple.EOS, **where),
    )


def resident(table, rows):
    """For each row, whether the page cache holds its page(s)."""
    libc = ctypes.CDLL(None)
    found = []
    for row in rows:
        piece = max(start for start in table.pieces if start <= row)
        address = table.pieces[piece].data_ptr() + (row - piece) * table.row_bytes
        start = address // mmap.PAGESIZE * mmap.PAGESIZE
        length = address + table.row_bytes - start
        pages = (ctypes.c_ubyte * 2)()
        assert not libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(length), pages)
        found.append(all(p & 1 for p in pages[: -(-length // mmap.PAGESIZE)]))
    return found


def share(found):
    """The loader touches each piece's first page, and the kernel some around it: a
    few rows are always there."""
    return sum(found) / len(found)


class State(model_state.Qwen4ExpModelState):
    """The model state without the parts that are not PLE's."""

    def __init__(self, config, module, device="cpu"):
        text = Names(
            ple_layer_ids=[2],
            ngram_size=_ple.CONFIG.ngram_size,
            eos_token_id=_ple.EOS,
        )
        self.model_config = Names(hf_text_config=text)
        self.max_num_reqs, self.device = 4, torch.device(device)
        super().__init__(
            Names(
                engram_config=config,
                parallel_config=Names(pipeline_parallel_size=1),
                speculative_config=None,
            ),
            torch.nn.ModuleList([module]),
            None,
            self.device,
        )


@pytest.fixture
def only_ple(monkeypatch):
    monkeypatch.setattr(MambaHybridModelState, "__init__", lambda self, *a: None)
    monkeypatch.setattr(MambaHybridModelState, "add_request", lambda self, *a: None)
    monkeypatch.setattr(MambaHybridModelState, "remove_request", lambda self, *a: None)
    monkeypatch.setattr(MambaHybridModelState, "prepare_inputs", lambda self, *a: {})


@pytest.fixture
def drive(tmp_path, monkeypatch, only_ple):
    """Builds a state over a table on disk, and steps it through prompts."""
    # Rows far apart, so that few share a page: a sparse table of 5 MB.
    monkeypatch.setattr(_ple.CONFIG, "ngram_vocab_size_base", 2000)
    table = _ple.rows(FP8)
    files = _ple.write(tmp_path, table)

    def build(**options):
        with _ple.world():
            config = _ple.engram(placement="disk", **options)
            module = _ple.embedding(config, FP8)
            _ple.load(module, files)
        state = State(config, module)
        _ple.evict(files)
        rows = torch.arange(0, len(table), 97).tolist()
        if share(resident(module.ngram_embedding._rows, rows)) > 0.15:
            pytest.fail("the page cache kept the file: nothing can be seen here")
        return state, module

    return build


def add(state, index, tokens, computed=0):
    new = Names(
        req_id=f"r{index}", prefill_token_ids=tokens, num_computed_tokens=computed
    )
    state.add_request(index, new)


def step(state, computed):
    """One step of the model runner for these requests (index -> tokens computed)."""
    state.prepare_inputs(*batch_of(computed))


def batch_of(computed, device="cpu"):
    """What the model runner hands to the model state in such a step."""
    num = len(computed)
    counts = np.zeros(4, dtype=np.int32)
    for index, count in computed.items():
        counts[index] = count
    batch = Names(
        req_ids=[f"r{index}" for index in computed],
        num_reqs=num,
        num_reqs_after_padding=num,
        query_start_loc=torch.zeros(num + 1, dtype=torch.int32, device=device),
        idx_mapping=torch.tensor(list(computed), device=device),
        idx_mapping_np=np.array(list(computed)),
    )
    tokens = torch.zeros(4, 2000, dtype=torch.int32, device=device)
    requests = Names(
        num_computed_tokens=Names(gpu=torch.from_numpy(counts.copy()).to(device)),
        num_computed_tokens_np=counts,
        all_token_ids=Names(gpu=tokens),
    )
    return batch, requests


def settle(state):
    """Let the background thread and the disk finish."""
    if (ahead := getattr(state, "read_ahead", None)) is not None:
        ahead._thread.submit(lambda: None).result()
    time.sleep(0.3)


@pytest.mark.witness
def test_a_prompts_rows_are_in_the_page_cache_before_their_step(drive):
    try:
        state, module = drive(disk_read_ahead_tokens=WINDOW)
    except pytest.fail.Exception as error:
        if "disk_read_ahead_tokens" not in str(error):
            raise
        state, module = drive()  # the tree before: it has no such option
    table = module.ngram_embedding._rows
    tokens = prompt(40)
    rows = looked_up(module, tokens)
    add(state, 1, tokens)
    settle(state)
    assert all(resident(table, rows[:WINDOW].flatten().tolist()))
    # Some of the others share a page with those asked for.
    assert share(resident(table, rows[WINDOW:].flatten().tolist())) < 1 / 3
    step(state, {1: 16})
    settle(state)
    assert all(resident(table, rows[16 : 16 + WINDOW].flatten().tolist()))
    step(state, {1: 32})
    settle(state)
    assert all(resident(table, rows[32:].flatten().tolist()))
    assert not state.read_ahead.prompts


def test_the_rows_are_those_of_the_lookup(drive):
    from vllm.models.qwen4_exp.nvidia.disk_embedding import _native

    _, module = drive()
    tokens = prompt(60)
    tokens[30:33] = [_ple.EOS, 5, _ple.EOS]
    rows = looked_up(module, tokens)
    hashing = (
        module.layer_multipliers.numpy(),
        module.ngram_heads_vocab_sizes.numpy(),
        module.ngram_heads_offsets.numpy(),
    )
    for begin, end in ((0, 60), (0, 1), (1, 2), (2, 9), (31, 60), (33, 34)):
        start = max(0, begin - 2)
        found = np.empty((end - begin, 16), dtype=np.int64)
        _native().prompt_rows(
            np.array(tokens[start:end]), begin - start, end - start, _ple.EOS, 8,
            hashing, found,
        )  # fmt: skip
        assert (found == rows[begin:end].numpy()).all()


def test_only_what_is_new_is_asked_for(drive, monkeypatch):
    state, _ = drive(disk_read_ahead_tokens=WINDOW)
    asked = []
    ahead = state.read_ahead
    monkeypatch.setattr(
        ahead._thread, "submit", lambda ask, tokens, *span: asked.append(span)
    )
    add(state, 0, prompt(20), computed=4)  # the prefix cache had four
    step(state, {0: 4})
    step(state, {0: 6})
    step(state, {0: 16})
    assert asked == [(4, 12), (12, 14), (16, 20)]
    assert not ahead.prompts
    step(state, {0: 20})
    add(state, 0, prompt(3))
    assert asked[3:] == [(0, 3)] and not ahead.prompts


def test_requests_are_told_apart(drive, monkeypatch):
    """Two prompts in a batch, in another order than they came, each at its place."""
    state, _ = drive(disk_read_ahead_tokens=WINDOW)
    asked = []
    monkeypatch.setattr(
        state.read_ahead._thread,
        "submit",
        lambda ask, tokens, *span: asked.append((len(tokens), *span)),
    )
    add(state, 0, prompt(30))
    add(state, 2, prompt(40))
    step(state, {2: 10, 1: 0, 0: 4})
    assert asked == [(30, 0, 8), (40, 0, 8), (40, 10, 18), (30, 8, 12)]


def test_a_request_that_ends_early_is_forgotten(drive):
    """Aborted or preempted within its prompt, it must not keep that for ever."""
    state, _ = drive(disk_read_ahead_tokens=WINDOW)
    add(state, 0, prompt(30))
    add(state, 1, prompt(30))
    state.remove_request("r0")
    assert list(state.read_ahead.prompts) == ["r1"]
    state.remove_request("r7")
    step(state, {1: 30})
    assert not state.read_ahead.prompts
    without, _ = drive(disk_read_ahead_tokens=0)
    without.remove_request("r0")


@pytest.mark.parametrize("left", [25, 22, 21, 20, 5])
def test_a_prompt_that_is_cut_before_it_is_asked_for(drive, monkeypatch, left):
    """The scheduler's own list when it lives in this process: what is gone is not
    read, what is left is asked for."""
    from vllm.models.qwen4_exp.nvidia import disk_embedding

    state, module = drive(disk_read_ahead_tokens=WINDOW)
    asked = []
    monkeypatch.setattr(
        disk_embedding._native(),
        "ask_for_rows",
        lambda rows, *_: asked.extend(rows.tolist()),
    )
    tokens = prompt(30)
    rows = looked_up(module, tokens).tolist()
    del tokens[left:]
    state.read_ahead._ask(tokens, 21, 29)
    assert asked == rows[21:left]


def test_zero_and_other_placements_ask_for_nothing(drive):
    state, module = drive(disk_read_ahead_tokens=0)
    assert state.read_ahead is None
    add(state, 0, prompt(20))
    step(state, {0: 4})
    settle(state)
    rows = looked_up(module, prompt(20)).flatten().tolist()
    assert share(resident(module.ngram_embedding._rows, rows)) < 0.15
    for placement in ("device", "pinned"):
        assert State(_ple.engram(placement=placement), module).read_ahead is None
    assert State(None, module).read_ahead is None


def test_the_window_is_no_part_of_the_compile_key():
    configs = [_ple.engram(disk_read_ahead_tokens=n) for n in (0, 4096)]
    assert configs[0].compute_hash() == configs[1].compute_hash()
    with pytest.raises(pytest.fail.Exception):
        _ple.engram(disk_read_ahead_tokens=-1)


@pytest.mark.gpu
@pytest.mark.witness
def test_no_step_waits_for_the_disk_that_was_asked(tmp_path, monkeypatch, only_ple):
    """30 replayed steps beside a prompt whose every request to the disk is made 20 ms
    late: the steps are over long before, the host waits in none, and their rows are
    the pinned table's."""
    from torch.profiler import ProfilerActivity, profile, record_function

    monkeypatch.setattr(_ple.CONFIG, "ngram_vocab_size_base", 20_000)
    table = _ple.rows(FP8)
    files = _ple.write(tmp_path, table)
    count, chunk = 30, 32
    tokens = prompt((count - 1) * chunk + 512)
    asks, began = [], [0.0]

    def now():
        return (time.perf_counter() - began[0]) * 1e6

    with _ple.world():
        try:
            options = {"placement": "disk", "disk_read_ahead_tokens": 512}
            config = _ple.engram(**options)
        except pytest.fail.Exception as error:
            if "disk_read_ahead_tokens" not in str(error):
                raise
            options = {"placement": "disk"}  # the tree before: it has no such option
            config = _ple.engram(**options)
        steps = Steps(on_gpu(files, FP8, max_tokens=2048, **options), 8)
        graph, output = steps.capture()
        inputs = [steps.inputs(seed) for seed in range(count)]
        batches = [batch_of({1: n * chunk}, "cuda") for n in range(count)]
        kept = torch.empty(count, *output.shape, dtype=FP8, device="cuda")
        state = State(config, steps.module, "cuda")
        if (ahead := getattr(state, "read_ahead", None)) is not None:
            add(state, 3, prompt(8))  # compiles
            settle(state)
            ask = ahead._ask

            def late(*span):
                thread, begin = threading.get_ident(), now()
                time.sleep(0.02)
                ask(*span)
                asks.append((thread, begin, now()))

            ahead._ask = late
        state.prepare_inputs(*batches[0])
        torch.cuda.synchronize()
        _ple.evict(files)
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profile(activities=activities) as trace:
            torch.cuda.synchronize()
            with record_function("steps"):
                began[0] = time.perf_counter()
                add(state, 1, tokens)
                for number, given in enumerate(inputs):
                    with record_function("model state"):
                        state.prepare_inputs(*batches[number])
                    steps.give(given)
                    graph.replay()
                    kept[number].copy_(output)
                launched = now()
            torch.cuda.synchronize()
            done = now()
        settle(state)
        where = {"device": "cuda", "dtype": torch.int32}
        rows = looked_up(steps.module, tokens, **where)[-256:].flatten().tolist()
        assert all(resident(steps.module.ngram_embedding._rows, rows))
        pinned = Steps(on_gpu(files, FP8, placement="pinned"), 8)
        graph, output = pinned.capture()
        for number, given in enumerate(inputs):
            pinned.give(given)
            graph.replay()
            assert _ple.same_bits(kept[number], output)
            assert _ple.same_bits(output, pinned.expected(table, given))
    spans = [("ple-read-ahead", begin, end) for _, begin, end in asks]
    seen, copies = trace_of(trace, tmp_path, threads=spans)
    _gpu.record("host calls in 30 replayed steps", seen)
    _gpu.record("copies in the trace", copies)
    _gpu.record(
        "ms: until the last step was launched, and done; of asking, in another thread",
        [round(us / 1000, 2) for us in (launched, done, asks[-1][2])],
    )
    assert len(asks) == count
    assert threading.get_ident() not in {thread for thread, *_ in asks}
    assert asks[0][1] < launched < done < asks[-1][2] / 2
    assert not [name for name in seen if WAITS.search(name)], seen
    assert seen["cudaGraphLaunch"] == count
    assert copies == {"DtoH": count, "HtoD": 3 * count}


@pytest.mark.gpu
def test_a_prompts_step_finds_its_rows(tmp_path, monkeypatch):
    """The step of a 2048-token prompt over a table of 1 GiB, with and without."""
    from vllm.models.qwen4_exp.nvidia.disk_embedding import PromptReadAhead

    monkeypatch.setattr(_ple.CONFIG, "ngram_vocab_size_base", 419_000)
    monkeypatch.setattr(_ple.CONFIG, "vocab_size", 248_320)
    count = 2048
    bits = np.random.default_rng(0).integers(0, 256, 6_706_304 * _ple.DIM, np.uint8)
    table = torch.from_numpy(bits).view(FP8).view(-1, _ple.DIM)
    files = _ple.write(tmp_path, table)
    with _ple.world():
        config = _ple.engram(placement="disk")
        module = _ple.embedding(config, FP8, device="cuda", max_tokens=count)
        _ple.load(module, files)
        ahead = PromptReadAhead([module], 16384)
        ahead.start(0, prompt(8), 0)  # compiles
        ahead._thread.submit(lambda: None).result()
        _ple.evict(files)
        hidden = torch.zeros(count, 8, device="cuda", dtype=torch.bfloat16)

        def took(tokens, start=lambda: None):
            ids = module.compute_ngram_ids(
                torch.tensor(tokens, device="cuda", dtype=torch.int32),
                torch.tensor([0, count], device="cuda", dtype=torch.int32),
                torch.full((1, 2), _ple.EOS, device="cuda", dtype=torch.int32),
            )
            start()
            torch.cuda.synchronize()
            began = time.perf_counter()
            module.ngram_embedding.start_prefetch(hidden, ids)
            found = module.ngram_embedding(hidden)
            torch.cuda.synchronize()
            seconds = time.perf_counter() - began
            assert _ple.same_bits(found, table[ids.cpu()].flatten(-2))
            return round(seconds * 1000, 1)

        def asked(tokens):
            began = time.perf_counter()
            ahead.start(1, tokens, 0)
            seconds = time.perf_counter() - began
            ahead._thread.submit(lambda: None).result()
            time.sleep(1)
            return seconds

        took(prompt(count, seed=50))
        cold = [took(prompt(count, seed=60 + i)) for i in range(5)]
        starts = []
        warm = []
        for seed in range(70, 75):
            tokens = prompt(count, seed)
            warm.append(took(tokens, lambda t=tokens: starts.append(asked(t))))
    _gpu.record("ms of a 2048-token lookup, cold", sorted(cold))
    _gpu.record("ms of a 2048-token lookup, read ahead", sorted(warm))
    _gpu.record("ms to ask", round(max(starts) * 1000, 3))
    assert sorted(warm)[2] < sorted(cold)[2] / 2
