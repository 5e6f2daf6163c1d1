# SPDX-License-Identifier: Apache-2.0
"""Tensor-parallel ranks on a CPU: forked processes, joined by gloo, that load a
checkpoint with vLLM's own loader and run it. A world of one is the reference.

Import before vllm. Triton kernels run in Triton's interpreter; what exists only as
C++ in vLLM's wheel, or does not run in the interpreter, gets the torch stand-in
named in `_stand_ins`.
"""

import os

import _cpu

os.environ.setdefault("TORCH_COMPILE_DISABLE", "1")
os.environ.setdefault("VLLM_TRITON_FORCE_FIRST_CONFIG", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
# Where there is no network, the host's name leads nowhere.
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
# A forked process must not wait for threads that only its parent has.
os.environ["OMP_NUM_THREADS"] = "1"
_cpu.triton_interpreter()

import signal  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import triton.language as tl  # noqa: E402
import triton.runtime.interpreter as interpreter  # noqa: E402
import vllm.models.qwen4_exp.nvidia.model  # noqa: E402, F401  (breaks an import cycle)
import vllm.models.qwen4_exp.nvidia.mtp  # noqa: E402, F401
import vllm.models.qwen4_exp.nvidia.qsa as qsa  # noqa: E402
from vllm.config import set_current_vllm_config  # noqa: E402
from vllm.distributed import parallel_state  # noqa: E402
from vllm.engine.arg_utils import EngineArgs  # noqa: E402
from vllm.forward_context import set_forward_context  # noqa: E402
from vllm.model_executor.layers.attention_layer_base import (  # noqa: E402
    AttentionLayerBase,
)
from vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn import (  # noqa: E402
    QwenGatedDeltaNetAttention,
)
from vllm.model_executor.model_loader import get_model  # noqa: E402
from vllm.v1.attention.backend import CommonAttentionMetadata  # noqa: E402
from vllm.v1.attention.backends.flash_attn import (  # noqa: E402
    FlashAttentionMetadata,
)
from vllm.v1.kv_cache_interface import MambaSpec  # noqa: E402

torch.set_num_threads(1)
_cpu.models_are_asked_in_this_process()


# --------------------------------------------------------------------- stand-ins
def _repair_interpreter():
    """Triton 3.9's interpreter keeps BF16 as bit patterns, and a comparison's result
    with the type of its operands: arithmetic and a scalar mask then go wrong."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    binary_op, create_dot = builder.binary_op, builder.create_dot

    def to_fp32(self, value):
        bf16 = value.dtype.scalar == tl.bfloat16
        return self.cast_impl(value, tl.float32) if bf16 else value

    def in_fp32(self, left, right, operation):
        if left.dtype.scalar != tl.bfloat16 or right.dtype.scalar != tl.bfloat16:
            return binary_op(self, left, right, operation)
        out = binary_op(self, to_fp32(self, left), to_fp32(self, right), operation)
        is_mask = out.data.dtype == np.bool_
        return out if is_mask else self.cast_impl(out, tl.bfloat16)

    def dot_in_fp32(self, left, right, *rest):
        return create_dot(self, to_fp32(self, left), to_fp32(self, right), *rest)

    def splat(self, result_type, value):
        data = np.full(result_type.shape, value.data.flat[0], dtype=value.data.dtype)
        return handle(data, value.dtype.scalar)

    builder.binary_op, builder.create_dot = in_fp32, dot_in_fp32
    builder.create_splat = splat
    # Names bound before a kernel starts are not the interpreter's.
    import vllm.third_party.flash_linear_attention.ops.fused_recurrent as recurrent

    recurrent.exp, recurrent.log = lambda x: tl.exp(x), lambda x: tl.log(x)


def _chunk_gated_delta_rule(*, q, k, v, g, beta, initial_state, cu_seqlens, **_):
    """The recurrence itself. (Block pointers left Triton's interpreter in 3.9.)"""
    group = v.shape[2] // q.shape[2]
    q, k = (x[0].float().repeat_interleave(group, 1) for x in (q, k))
    g, beta, value = g[0].float(), beta[0].float(), v[0].float()
    out, states = torch.empty_like(v), []
    for number, state in enumerate(initial_state.float()):
        for t in range(int(cu_seqlens[number]), int(cu_seqlens[number + 1])):
            state = state * g[t].exp()[:, None, None]
            seen = torch.einsum("hvk,hk->hv", state, k[t])
            update = beta[t][:, None] * (value[t] - seen)
            state = state + update[:, :, None] * k[t][:, None, :]
            out[0, t] = torch.einsum("hvk,hk->hv", state, q[t]) * q.shape[-1] ** -0.5
        states.append(state)
    return out, torch.stack(states)


def _conv_update(x, conv_state, weight, bias, activation, *, conv_state_indices, **_):
    from vllm.model_executor.layers.mamba.ops.cpu import causal_conv1d

    slots, length = conv_state_indices.long(), weight.shape[1] - 1
    state = conv_state[slots, :, :length].to(x.dtype)
    out = causal_conv1d.causal_conv1d_update_torch(
        x.unsqueeze(-1), state, weight, bias, activation
    )
    conv_state[slots, :, :length] = state.to(conv_state.dtype)
    return out.squeeze(-1)


def _experts(
    self, *, output, hidden_states, w1, w2, topk_weights, topk_ids, expert_map, **_
):
    width = w2.shape[-1]
    ids = topk_ids.long() if expert_map is None else expert_map[topk_ids.long()]
    output.zero_()
    for expert in range(w1.shape[0]):
        token, choice = (ids == expert).nonzero(as_tuple=True)
        gate_up = hidden_states[token].float() @ w1[expert].float().t()
        hidden = F.silu(gate_up[:, :width]) * gate_up[:, width:]
        share = topk_weights[token, choice, None].float()
        out = hidden @ w2[expert].float().t() * share
        output.index_add_(0, token, out.to(output.dtype))


def _fp8_experts(self, *, w1, w2, **rest):
    """Block-scaled weights, dequantized: what the W8A16 kernel computes."""

    def dequantized(weight, scale):
        for dim in (1, 2):
            scale = scale.repeat_interleave(128, dim)
        return weight.float() * scale[:, : weight.shape[1], : weight.shape[2]]

    w1, w2 = dequantized(w1, self.w1_scale), dequantized(w2, self.w2_scale)
    _experts(self, w1=w1, w2=w2, **rest)


def _store_kv(self, layer, key, value, kv_cache, slot_mapping):
    for cache, rows in zip(
        kv_cache.transpose(1, 2).split(self.head_size, dim=-1), (key, value)
    ):
        for row, slot in enumerate(slot_mapping.tolist()):
            if slot >= 0:
                cache[slot // cache.shape[1], slot % cache.shape[1]] = rows[row]


def _topk(logits, visible_blocks, token_topk, compress_ratio, block_indices, _):
    block_indices.fill_(-1)
    for row, visible in enumerate(visible_blocks.tolist()):
        best = logits[row, :visible].topk(min(visible, block_indices.shape[1])).indices
        block_indices[row, : len(best)] = best.to(torch.int32)


def _silu_and_mul(out, x):
    gate, up = x.chunk(2, dim=-1)
    out.copy_(F.silu(gate) * up)


def _stand_ins():
    import vllm.model_executor.layers.fused_moe.experts.cpu_moe as moe
    import vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn as gdn
    import vllm.model_executor.layers.utils as layer_utils
    import vllm.models.qwen4_exp.nvidia.ops.qsa as qsa_ops
    import vllm.models.qwen4_exp.nvidia.ops.qsa_indexer as indexer
    from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

    _repair_interpreter()
    gdn.fla_chunk_gated_delta_rule = _chunk_gated_delta_rule
    gdn.causal_conv1d_update = _conv_update
    # The GPU's way through GDN: the CPU's is C++.
    QwenGatedDeltaNetAttention.forward_cpu = QwenGatedDeltaNetAttention.forward_cuda
    RotaryEmbedding.forward_cpu = RotaryEmbedding.forward_native
    moe.cpu_prepack_moe_weight = lambda weight, isa: weight
    moe.CPUUnquantizedExperts.apply = _experts
    moe.prepare_fp8_moe_layer_for_cpu = lambda w13, w2: (w13, w2)
    moe.CPUExpertsFp8.apply = _fp8_experts
    moe.CPUExpertsFp8._supports_current_device = staticmethod(lambda: True)
    qsa.is_flash_attn_varlen_func_available = lambda: True
    qsa.Qwen4ExpQSAFlashAttentionImpl.do_kv_cache_update = _store_kv
    indexer._topk = _topk
    # The same kernels in 2 splits: 64, tuned for a GPU, take a minute here.
    qsa_ops._select_config = lambda rows, heads, prefill, columns, fp8=False: (
        64,
        1,
        -(-columns // 64),
        2,
    )

    def linear(layer, remove_weight):
        layer.cpu_linear = F.linear

    layer_utils.dispatch_cpu_unquantized_gemm = linear
    library = torch.library.Library("_C", "FRAGMENT")
    library.define("silu_and_mul(Tensor! out, Tensor x) -> ()")
    library.impl("silu_and_mul", _silu_and_mul, "CompositeExplicitAutograd")
    return library


_library = _stand_ins()


# ------------------------------------------------------------------------- ranks
class Refused:
    """What the product raised in a rank."""

    def __init__(self, error):
        self.trace = "".join(traceback.format_exception(error))

    def __repr__(self):
        return self.trace


# How the product refuses a world that does not divide its layers, or fails in one.
REFUSALS = (AssertionError, ValueError, RuntimeError, NotImplementedError, NameError)


def unregistered_switch(error):
    """vLLM reads a variable that its envs.py does not know."""
    return isinstance(error, AttributeError) and "vllm.envs" in str(error)


_SECONDS = 900


def _rank(work, rank, world, folder, args):
    os.environ["LOCAL_RANK"] = str(rank)
    try:
        result = work(Rank(rank, world, f"file://{folder}/rendezvous"), *args)
    except REFUSALS as error:
        result = Refused(error)
    except AttributeError as error:
        if not unregistered_switch(error):
            raise
        result = Refused(error)
    torch.save(result, folder / f"{rank}.part")
    (folder / f"{rank}.part").rename(folder / f"{rank}.pt")


def run(world, work, *args):
    """Run `work(rank, *args)` in `world` forked ranks; return what each returned.

    Where one of them refuses, that is the result of all.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pids = []
        for rank in range(world):
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    _rank(work, rank, world, folder, args)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stderr.flush()
                    os._exit(code)
            pids.append(pid)
        return _collect(folder, pids)


def _collect(folder, pids):
    end, results = time.monotonic() + _SECONDS, {}
    try:
        while len(results) < len(pids):
            for rank, pid in enumerate(pids):
                path = folder / f"{rank}.pt"
                if rank not in results and path.exists():
                    results[rank] = torch.load(path, weights_only=False)
                    if isinstance(results[rank], Refused):
                        return results[rank]
                elif rank not in results and os.waitpid(pid, os.WNOHANG)[0]:
                    if not path.exists():
                        raise RuntimeError(f"rank {rank} ended without a result")
            if time.monotonic() > end:
                raise TimeoutError(f"ranks {sorted(results)} of {len(pids)} answered")
            time.sleep(0.05)
    finally:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
    return [results[rank] for rank in range(len(pids))]


class Rank:
    """One rank, with the model it loaded."""

    def __init__(self, rank, world, rendezvous):
        self.rank, self.world, self.rendezvous = rank, world, rendezvous

    def join(self, path, drafts=0, **engine):
        """Make the engine's config and join the other ranks under it."""
        if drafts:
            engine["speculative_config"] = {
                "method": "mtp",
                "num_speculative_tokens": drafts,
            }
        self.config = EngineArgs(
            model=path,
            tensor_parallel_size=self.world,
            enable_expert_parallel=True,
            language_model_only=True,
            skip_tokenizer_init=True,
            enforce_eager=True,
            max_model_len=256,
            max_num_seqs=4,
            max_num_batched_tokens=256,
            **engine,
        ).create_engine_config()
        self.context = set_current_vllm_config(self.config)
        self.context.__enter__()
        parallel_state.init_distributed_environment(
            self.world, self.rank, self.rendezvous, self.rank, backend="gloo"
        )
        parallel_state.ensure_model_parallel_initialized(self.world, 1)
        return self

    @property
    def text(self):
        return self.config.model_config.hf_text_config

    @property
    def draft_text(self):
        return self.config.speculative_config.draft_model_config.hf_text_config

    def load(self, target=True, draft=False):
        self.model = get_model(vllm_config=self.config) if target else None
        self.draft = None
        if draft:
            self.draft = get_model(
                vllm_config=self.config,
                model_config=self.config.speculative_config.draft_model_config,
            )
        return self

    def allocate(self):
        """Give every layer a cache of its own and a metadata builder."""
        self.builders = {}
        layers = self.config.compilation_config.static_forward_context
        for name, layer in layers.items():
            if not isinstance(layer, AttentionLayerBase):
                continue
            spec = layer.get_kv_cache_spec(self.config)
            blocks = 1 + 4 * self.config.scheduler_config.max_num_seqs
            if isinstance(spec, MambaSpec):
                layer.kv_cache = tuple(
                    torch.zeros(blocks, *shape, dtype=dtype)
                    for shape, dtype in zip(spec.shapes, spec.dtypes)
                )
            elif isinstance(layer, qsa.Qwen4ExpQSAAttention):
                shape = (spec.num_kv_heads, spec.block_size, 2 * spec.head_size)
                layer.kv_cache = torch.zeros(blocks, *shape, dtype=spec.dtype)
                self.builders[name] = None
                continue
            else:
                shape = (1, spec.num_states, spec.head_size)
                layer.bind_kv_cache(torch.zeros(blocks, *shape, dtype=spec.dtype))
            builder = layer.get_attn_backend().get_builder_cls()
            self.builders[name] = builder(
                spec, [name], self.config, torch.device("cpu")
            )
        return self

    def metadata(self, query_lens, seq_lens):
        """Metadata, positions and query starts; request i owns four blocks."""
        requests, tokens = len(query_lens), sum(query_lens)
        starts = torch.tensor([0, *query_lens]).cumsum(0).to(torch.int32)
        lengths = torch.tensor(seq_lens, dtype=torch.int32)
        table = torch.arange(1, 4 * requests + 1, dtype=torch.int32).view(requests, 4)
        positions = torch.cat(
            [torch.arange(s - q, s) for q, s in zip(query_lens, seq_lens)]
        )
        owner = torch.repeat_interleave(table[:, 0].long(), torch.tensor(query_lens))
        shared = {
            "query_start_loc": starts,
            "seq_lens": lengths,
            "max_query_len": max(query_lens),
            "max_seq_len": max(seq_lens),
            "num_actual_tokens": tokens,
            "slot_mapping": owner * self.config.cache_config.block_size + positions,
        }
        common = CommonAttentionMetadata(
            query_start_loc_cpu=starts,
            num_reqs=requests,
            block_table_tensor=table,
            seq_lens_cpu_upper_bound=lengths,
            is_prefilling=torch.tensor([q > 1 for q in query_lens]),
            **shared,
        )
        flash = FlashAttentionMetadata(
            block_table=table,
            use_cascade=False,
            common_prefix_len=0,
            cu_prefix_query_lens=None,
            prefix_kv_lens=None,
            suffix_kv_lens=None,
            **shared,
        )
        made = {
            name: flash if builder is None else builder.build(0, common)
            for name, builder in self.builders.items()
        }
        return made, positions, starts

    def step(self, tokens, query_lens, seq_lens, context):
        """Logits of the target and, where there is one, of the draft after it."""
        metadata, positions, starts = self.metadata(query_lens, seq_lens)
        out = {}
        with set_forward_context(metadata, self.config), torch.inference_mode():
            hidden = self.model(
                tokens, positions, query_start_loc=starts, ngram_context=context
            )
            out["logits"] = self.model.compute_logits(hidden)
            if self.draft is not None:
                streams = self.model.get_mtp_target_hidden_states()[: len(tokens)]
                hidden, _ = self.draft(tokens, positions, streams.clone())
                out["draft logits"] = self.draft.compute_logits(hidden)
        return out


def relative_error(got, expected):
    got, expected = got.double(), expected.double()
    return ((got - expected).norm() / expected.norm()).item()
