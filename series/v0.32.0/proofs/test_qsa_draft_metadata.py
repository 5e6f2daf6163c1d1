# SPDX-License-Identifier: Apache-2.0
"""QSA metadata is refreshed in place between draft steps, not rebuilt.

On a CPU: the real metadata kernel, in Triton's interpreter, and the real draft loop of
the target-dependent speculator, with a stub for the draft model. On a GPU (marker gpu):
the kernel in a CUDA graph that is captured wider than it is replayed.
"""

from types import SimpleNamespace as Names

import _gpu  # noqa: F401  (before vllm: a GPU machine has no compiled extensions)
import pytest
import torch

RATIO, RING, BLOCK, WIDTH = 4, 8, 64, 8
FIELDS = ("token_to_req", "logical_positions", "visible_blocks", "slot_mapping")
# Lengths before the first draft step: an edge of a block, of the ring, of a group.
LENGTHS = (63, 126, 250, 255)


@pytest.fixture(scope="module")
def vllm():
    import _cpu

    _cpu.triton_interpreter()
    import vllm.v1.worker.gpu.spec_decode.target_dependent_ar.speculator as spec
    from vllm import envs

    return Names(spec=spec, envs=envs)


def builders(drafts, device="cpu"):
    """The metadata builders of a QSA layer's two side caches."""
    import vllm.models.qwen4_exp.common.qsa_cache as qsa
    from vllm.v1.kv_cache_interface import CircularBufferSpec, MLAAttentionSpec

    config = Names(
        scheduler_config=Names(max_num_batched_tokens=64, max_num_seqs=6),
        speculative_config=Names(
            num_speculative_tokens=drafts, parallel_drafting=False
        ),
        parallel_config=Names(decode_context_parallel_size=1),
        num_speculative_tokens=drafts,
    )
    shape = {"num_kv_heads": 1, "head_size": 8, "dtype": torch.bfloat16}
    specs = {
        "ring": CircularBufferSpec(block_size=RING, head_size_v=0, **shape),
        "compressed": MLAAttentionSpec(
            block_size=BLOCK, tokens_per_state=RATIO, **shape
        ),
    }
    return [
        qsa.QSAMetadataBuilder(spec, [name], config, torch.device(device))
        for name, spec in specs.items()
    ]


class Batch:
    """The speculator's persistent buffers: `live` requests and padding up to `size`."""

    def __init__(self, live, size, device="cpu"):
        self.live, self.size = live, size
        with torch.device(device):
            self.seq_lens = torch.zeros(size, dtype=torch.int32)
            self.query_start_loc = torch.arange(size + 1, dtype=torch.int32)
            self.slots = torch.zeros(size, dtype=torch.int64)
            self.table = torch.zeros(size, WIDTH, dtype=torch.int32)
        self.fill(live, LENGTHS)

    def fill(self, live, lengths):
        self.live = live
        self.query_start_loc.copy_(torch.arange(self.size + 1).clamp_max(live))
        self.seq_lens.copy_(torch.tensor([*lengths[:live], *[1] * (self.size - live)]))
        blocks = 1 + torch.arange(self.size * WIDTH, dtype=torch.int32)
        self.table.copy_(blocks.view(self.size, WIDTH))
        self.table[live:] = 0
        self.map_slots()

    def map_slots(self, *_):
        self.slots.copy_(self.seq_lens - 1)
        self.slots[self.live :] = -1

    def advance(self):
        self.seq_lens += 1  # the padding's too, as the kernel does it

    def common(self):
        from vllm.v1.attention.backend import CommonAttentionMetadata

        return CommonAttentionMetadata(
            query_start_loc=self.query_start_loc,
            query_start_loc_cpu=self.query_start_loc.cpu().clone(),
            seq_lens=self.seq_lens,
            num_reqs=self.size,
            num_actual_tokens=self.size,
            max_query_len=1,
            max_seq_len=512,
            block_table_tensor=self.table,
            slot_mapping=self.slots,
        )


def expected(name, batch):
    """What one draft step must see, in plain Python."""
    rows = {field: [] for field in FIELDS}
    work = []
    for request in range(batch.live):
        length = int(batch.seq_lens[request])
        position, table = length - 1, batch.table[request].tolist()
        rows["token_to_req"].append(request)
        rows["logical_positions"].append(position)
        if name == "ring":
            rows["visible_blocks"].append(length)
            slot = table[0] * RING + position % RING
        else:
            states = BLOCK // RATIO
            rows["visible_blocks"].append(length // RATIO)
            group = position // RATIO
            slot = table[group // states] * states + group % states
            if length % RATIO:
                slot = -1
            work.append([request, 0])
        rows["slot_mapping"].append(slot)
    return rows, work


def check(name, metadata, batch):
    rows, work = expected(name, batch)
    for field in FIELDS:
        assert getattr(metadata, field)[: batch.live].tolist() == rows[field], field
    assert metadata.slot_mapping[batch.live :].tolist() == [-1] * (
        batch.size - batch.live
    )
    if name == "compressed":
        capacity = metadata.k_work_metadata.shape[0]
        work += [[-1, -1]] * (capacity - len(work))
        assert metadata.k_work_metadata.tolist() == work


def draft(vllm, monkeypatch, drafts, batch):
    """Run the real draft loop, whichever it chooses; what surrounds it is a stub.

    Every draft step checks the metadata that it is given. Returns the number of builds.
    """
    from vllm.config.compilation import CUDAGraphMode
    from vllm.models.qwen4_exp.common.qsa_cache import QSAStateBackend
    from vllm.v1.worker.utils import AttentionGroup

    groups = []
    for number, builder in enumerate(builders(drafts)):
        group = AttentionGroup(
            QSAStateBackend, builder.layer_names, builder.kv_cache_spec, number
        )
        group.metadata_builders = [builder]
        groups.append(group)
    calls = {"builds": 0, "steps": 0}

    class Speculator(vllm.spec.TargetDependentARSpeculator):
        def __init__(self):
            self.num_speculative_steps = drafts
            self.attn_groups = [[group] for group in groups]
            self.kv_cache_config = None
            self.input_buffers = Names(
                positions=batch.seq_lens, query_start_loc=batch.query_start_loc
            )
            self.idx_mapping = torch.arange(batch.size)
            self.current_draft_step = torch.tensor(0)
            self.block_tables = Names(
                compute_slot_mappings=batch.map_slots, cp_size=1
            )

        def load_draft_model(self, *args, **kwargs): ...

        def _build_uniform_attn_metadata(self, **kwargs):
            calls["builds"] += 1
            return {
                group.layer_names[0]: group.get_metadata_builder().build(
                    0, batch.common()
                )
                for group in groups
            }

        def _generate_draft(self, num_reqs, num_tokens, metadata, *args, **kwargs):
            for name, one in metadata.items():
                check(name, one, batch)
            calls["steps"] += 1
            batch.advance()

    monkeypatch.setattr(vllm.spec, "build_slot_mappings_by_layer", lambda *args: {})
    speculator = Speculator()
    speculator._configure_decode_metadata_update()
    loop = (
        speculator._fused_multi_step_decode
        if speculator.supports_decode_metadata_update
        else speculator._multi_step_decode
    )
    size = batch.size
    shape = Names(num_tokens=size, num_reqs=size, cg_mode=CUDAGraphMode.NONE)
    loop(size, False, shape, None, torch.zeros(size), drafts)
    assert calls["steps"] == drafts - 1
    return calls["builds"]


@pytest.mark.witness
@pytest.mark.parametrize("drafts", [3, 4, 6])
@pytest.mark.parametrize("live", [4, 2])
def test_one_build_serves_all_draft_steps(vllm, drafts, live, monkeypatch):
    """And each step sees what a rebuild would have given it."""
    assert draft(vllm, monkeypatch, drafts, Batch(live, 4)) == 1


def test_with_two_drafts_there_is_nothing_to_save(vllm, monkeypatch):
    assert draft(vllm, monkeypatch, 2, Batch(4, 4)) == 1


def refresh(builder, metadata):
    try:
        builder.update_draft_decode_metadata(metadata)
    except NotImplementedError:
        pytest.fail("QSA metadata cannot be refreshed in place")


def addresses(metadata):
    return [getattr(metadata, f).data_ptr() for f in (*FIELDS, "k_work_metadata")]


def narrower_replays(builder, batch, metadata, again):
    """Only device tensors differ then; the host still says four requests."""
    where = addresses(metadata)
    for live, lengths in ((2, (63, 255)), (1, (4,)), (3, (8, 9, 10))):
        batch.fill(live, lengths)
        for _ in range(RATIO + 1):
            again()
            check(builder.layer_names[0], metadata, batch)
            batch.advance()
            batch.map_slots()
    assert addresses(metadata) == where


@pytest.mark.witness
@pytest.mark.parametrize("number", [0, 1], ids=["ring", "compressed"])
def test_a_graph_captured_wider_than_it_is_replayed(vllm, number):
    builder, batch = builders(4)[number], Batch(4, 4)
    metadata = builder.build(0, batch.common())
    narrower_replays(builder, batch, metadata, lambda: refresh(builder, metadata))


@pytest.mark.witness
def test_the_switch(vllm, monkeypatch):
    builds = {}
    for value in ("0", "1"):
        monkeypatch.setenv("VLLM_QSA_FUSED_DRAFT", value)
        builds[value] = draft(vllm, monkeypatch, 4, Batch(4, 4))
    assert builds == {"0": 3, "1": 1}


def test_without_triton_it_is_rebuilt(vllm, monkeypatch):
    """The fallback reads tensors on the host, which no graph may."""
    import vllm.models.qwen4_exp.common.qsa_cache as qsa

    monkeypatch.setattr(qsa, "HAS_TRITON", False)
    monkeypatch.setattr(qsa, "build_qsa_metadata", qsa._build_qsa_metadata_torch)
    assert draft(vllm, monkeypatch, 4, Batch(4, 4)) == 3


def test_the_switch_leaves_the_compile_cache_alone(vllm, monkeypatch):
    monkeypatch.setenv("VLLM_QSA_FUSED_DRAFT", "0")
    off = vllm.envs.compile_factors()
    monkeypatch.setenv("VLLM_QSA_FUSED_DRAFT", "1")
    assert vllm.envs.compile_factors() == off


def test_the_switch_is_declared_for_type_checkers(vllm):
    import inspect

    assert "    VLLM_QSA_FUSED_DRAFT: bool = True\n" in inspect.getsource(vllm.envs)


@pytest.mark.gpu
@pytest.mark.witness
@pytest.mark.parametrize("number", [0, 1], ids=["ring", "compressed"])
def test_gpu_a_graph_captured_wider_than_it_is_replayed(number):
    builder, batch = builders(4, "cuda")[number], Batch(4, 4, "cuda")
    metadata = builder.build(0, batch.common())
    refresh(builder, metadata)  # compile before capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        refresh(builder, metadata)
    narrower_replays(builder, batch, metadata, graph.replay)
