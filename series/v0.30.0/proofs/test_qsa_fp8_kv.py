# SPDX-License-Identifier: Apache-2.0
"""QSA attends over an FP8 (E4M3) KV cache.

On a CPU the layer is built as the model builds it, its cache written through its own
update with a plain writer in place of the CUDA one, and read by the real kernel in
Triton's interpreter. On a GPU (marker gpu) the kernel alone runs, at the published
geometry. Scales are not 1.
"""

import inspect
from types import SimpleNamespace as Names

import _gpu  # noqa: F401  (before vllm: a GPU machine has no compiled extensions)
import pytest
import torch

import _qsa_reference as ref

K_SCALE, V_SCALE = 0.37, 2.5
# Two BF16 roundings of the output leave 1.7e-3. Where the softmax is flat over 2048
# tokens, the rounding of the probabilities adds to it: FP16 for FP8 caches, else BF16.
BOUND, BF16_BOUND = 3e-3, 4e-3
QUERY_HEADS, KV_HEADS, WIDTH = 6, 2, 96


@pytest.fixture(scope="module")
def vllm(tmp_path_factory):
    """vLLM on a CPU, one rank."""
    import _cpu

    _cpu.triton_interpreter()
    _cpu.interpreter_like_a_gpu()
    import vllm.models.qwen4_exp.nvidia.model  # noqa: F401  (it breaks a cycle)
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.distributed import parallel_state as state
    from vllm.models.qwen4_exp.nvidia import qsa
    from vllm.models.qwen4_exp.nvidia.ops import qsa as ops
    from vllm.v1.attention.backends import flash_attn

    store = tmp_path_factory.mktemp("store") / "init"
    with set_current_vllm_config(VllmConfig()):
        state.init_distributed_environment(1, 0, f"file://{store}", 0, "gloo")
        state.ensure_model_parallel_initialized(1, 1)
        yield Names(qsa=qsa, ops=ops, flash_attn=flash_attn)
    state.destroy_model_parallel()
    state.destroy_distributed_environment()


def layer(vllm, monkeypatch, kv_cache_dtype):
    """A QSA layer of a narrow model, as the decoder layer makes it."""
    from vllm.config import AttentionConfig
    from vllm.models.qwen4_exp.config import Qwen4ExpTextConfig

    import _qwen4exp as q

    monkeypatch.setattr(vllm.qsa, "is_flash_attn_varlen_func_available", lambda: True)
    text = {
        **q.TEXT,
        "hidden_size": 64,
        "num_attention_heads": QUERY_HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": ref.HEAD_DIM,
        "ple_layer_ids": [],
        "max_position_embeddings": 256,
        "rope_parameters": {**q.ROPE, "rope_theta": 10000},
    }
    config = Names(
        cache_config=Names(block_size=ref.PAGE, cache_dtype=kv_cache_dtype),
        model_config=Names(
            dtype=torch.bfloat16, multimodal_config=None, uses_mrope=True
        ),
        parallel_config=Names(
            prefill_context_parallel_size=1, decode_context_parallel_size=1
        ),
        scheduler_config=Names(max_num_batched_tokens=16),
        compilation_config=Names(static_forward_context={}),
        attention_config=AttentionConfig(),
        num_speculative_tokens=0,
    )
    return vllm.qsa.Qwen4ExpQSAAttention(
        vllm_config=config, config=Qwen4ExpTextConfig(**text), layer_id=3, prefix="l"
    )


def scaled_layer(vllm, monkeypatch, kv_cache_dtype="fp8"):
    try:
        made = layer(vllm, monkeypatch, kv_cache_dtype)
    except NotImplementedError as error:
        pytest.fail(f"{kv_cache_dtype}: {error}")
    made._k_scale.fill_(K_SCALE)
    made._v_scale.fill_(V_SCALE)
    return made


def spec_of(made):
    return made.get_kv_cache_spec(Names(cache_config=Names(block_size=ref.PAGE)))


def writer(key, value, key_cache, value_cache, slots, dtype, k_scale, v_scale):
    """The contract of the CUDA reshape_and_cache_flash."""
    for rows, cache, scale in (
        (key, key_cache, k_scale),
        (value, value_cache, v_scale),
    ):
        if dtype in ("fp8", "fp8_e4m3"):
            rows = ref.quantize(rows, scale).view(torch.uint8)
        cache[slots // ref.PAGE, slots % ref.PAGE] = rows


def run(vllm, made, case, monkeypatch, splits):
    """Write the case's keys and values through the layer, then attend."""
    monkeypatch.setattr(
        vllm.flash_attn, "reshape_and_cache_flash", writer, raising=False
    )
    if splits:
        tiles = -(-WIDTH // 32)
        fixed = lambda *args: (32, 4, tiles, splits)  # noqa: E731
        monkeypatch.setattr(vllm.ops, "_select_config", fixed)
    pages = case["keys"].shape[0]
    made.kv_cache = torch.zeros(
        pages, KV_HEADS, ref.PAGE, 2 * ref.HEAD_DIM, dtype=spec_of(made).dtype
    )
    slots = torch.arange(pages * ref.PAGE)
    keys, values = case["keys"].flatten(0, 1), case["values"].flatten(0, 1)
    made.impl.do_kv_cache_update(made, keys, values, made.kv_cache, slots)
    rows = case["query"].shape[0]
    made.topk_indices_buffer = case["selection"]
    return made.impl.forward_qsa(
        made,
        case["query"],
        None,
        None,
        made.kv_cache,
        Names(num_actual_tokens=rows, block_table=case["table"]),
        torch.empty_like(case["query"]),
        token_to_req=case["token_to_req"],
        use_prefill_config=False,
        output_gate=case["gate"],
    )


def dequantized(case):
    """The values that an FP8 cache of this case stands for."""
    return (
        ref.quantize(case["keys"], K_SCALE).double() * K_SCALE,
        ref.quantize(case["values"], V_SCALE).double() * V_SCALE,
    )


@pytest.mark.witness
@pytest.mark.parametrize("kv_cache_dtype", ["fp8", "fp8_e4m3"])
def test_the_layer_stores_bytes(vllm, monkeypatch, kv_cache_dtype):
    made = scaled_layer(vllm, monkeypatch, kv_cache_dtype)
    # K and V of two heads, a byte each: half of what BF16 takes.
    assert spec_of(made).page_size_bytes == ref.PAGE * KV_HEADS * 2 * ref.HEAD_DIM


@pytest.mark.witness
@pytest.mark.parametrize("kv_cache_dtype", ["fp8", "fp8_e4m3"])
def test_the_backend_takes_it_where_it_takes_bf16(vllm, kv_cache_dtype):
    """Compute capability 8.9, where FlashAttention has no FP8 cache."""
    from vllm.platforms.interface import DeviceCapability

    arguments = {
        "head_size": ref.HEAD_DIM,
        "dtype": torch.bfloat16,
        "block_size": ref.PAGE,
        "use_mla": False,
        "has_sink": False,
        "use_sparse": True,
        "use_mm_prefix": False,
        "use_per_head_quant_scales": False,
        "device_capability": DeviceCapability(8, 9),
        "attn_type": "decoder",
    }
    check = vllm.qsa.Qwen4ExpQSAFlashAttentionBackend.validate_configuration
    plain = check(kv_cache_dtype="auto", **arguments)
    assert check(kv_cache_dtype=kv_cache_dtype, **arguments) == plain == []


@pytest.mark.witness
@pytest.mark.parametrize("splits", [1, 3, None], ids=["one", "three", "selected"])
def test_attention_over_the_bytes(vllm, monkeypatch, splits):
    """Against float64 over the very values that the cache holds."""
    case = ref.case(8, QUERY_HEADS, KV_HEADS, WIDTH)
    made = scaled_layer(vllm, monkeypatch)
    found = run(vllm, made, case, monkeypatch, splits)
    assert ref.error(found, ref.attend(case, *dequantized(case))) < BOUND
    assert (found[3].float() == 0).all(), "a row without a selection is zero"


@pytest.mark.witness
def test_attention_against_what_was_never_quantized(vllm, monkeypatch):
    """E4M3 keeps 3 bits of mantissa: at most 2^-4 a value, less on average."""
    case = ref.case(8, QUERY_HEADS, KV_HEADS, WIDTH, spread=0.7)
    made = scaled_layer(vllm, monkeypatch)
    found = run(vllm, made, case, monkeypatch, None)
    assert ref.error(found, ref.attend(case, case["keys"], case["values"])) < 0.05


@pytest.mark.witness
def test_the_warm_up_compiles_what_runs(vllm, monkeypatch):
    """Over bytes it must compile for E4M3 with scales, or the first request does."""
    kernel, launches = vllm.ops._qsa_sparse_paged_gqa_splitk_kernel, []
    names = list(inspect.signature(kernel.fn).parameters)
    monkeypatch.setattr(
        kernel,
        "warmup",
        lambda *args, **kwargs: launches.append(dict(zip(names, args)) | kwargs),
        raising=False,
    )
    monkeypatch.setattr(
        vllm.ops._qsa_merge_splitk_kernel,
        "warmup",
        lambda *args, **kwargs: None,
        raising=False,
    )
    seen = {}
    for dtype in (torch.bfloat16, torch.uint8):
        launches.clear()
        vllm.ops.warmup_qsa_sparse_paged_attention(
            torch.zeros(4, KV_HEADS, ref.PAGE, 2 * ref.HEAD_DIM, dtype=dtype),
            torch.zeros(2, 4, dtype=torch.int32),
            num_query_heads=QUERY_HEADS,
            selection_width=WIDTH,
        )
        assert all(set(names) < set(launch) for launch in launches)
        pointers = "k_cache_ptr", "v_cache_ptr", "k_scale_ptr", "v_scale_ptr"
        types = {
            tuple(getattr(launch.get(n), "dtype", None) for n in pointers)
            for launch in launches
        }
        seen[dtype] = types
    assert seen == {
        torch.bfloat16: {(torch.bfloat16, torch.bfloat16, None, None)},
        torch.uint8: {(ref.E4M3, ref.E4M3, torch.float32, torch.float32)},
    }


@pytest.mark.parametrize("splits", [1, 3, None], ids=["one", "three", "selected"])
@pytest.mark.parametrize("kv_cache_dtype", ["auto", "bfloat16"])
def test_bf16_is_as_before(vllm, monkeypatch, splits, kv_cache_dtype):
    """Scales do not touch it."""
    case = ref.case(8, QUERY_HEADS, KV_HEADS, WIDTH)
    made = scaled_layer(vllm, monkeypatch, kv_cache_dtype)
    found = run(vllm, made, case, monkeypatch, splits)
    expected = ref.attend(case, case["keys"], case["values"])
    assert ref.error(found, expected) < BF16_BOUND


@pytest.mark.parametrize("kv_cache_dtype", ["fp8_e5m2", "int8_per_token_head"])
def test_other_formats_are_refused(vllm, monkeypatch, kv_cache_dtype):
    with pytest.raises(NotImplementedError, match="main KV cache"):
        layer(vllm, monkeypatch, kv_cache_dtype)
    backend = vllm.qsa.Qwen4ExpQSAFlashAttentionBackend
    assert not backend.supports_kv_cache_dtype(kv_cache_dtype)


@pytest.mark.parametrize("capability", [80, 86, 89, 90, 120])
def test_the_compute_capability_decides(vllm, monkeypatch, capability):
    """Triton has no E4M3 below 8.9; said at start, not by the first compile."""
    platform = vllm.qsa.current_platform
    monkeypatch.setattr(platform, "is_cuda", lambda: True)
    has = lambda least, device_id=0: capability >= least  # noqa: E731
    monkeypatch.setattr(platform, "has_device_capability", has)
    for kv_cache_dtype in ("auto", "bfloat16"):
        vllm.qsa._check_kv_cache_dtype(kv_cache_dtype)
    for kv_cache_dtype in ("fp8", "fp8_e4m3"):
        if capability >= 89:
            vllm.qsa._check_kv_cache_dtype(kv_cache_dtype)
        else:
            with pytest.raises(NotImplementedError, match="compute capability 8.9"):
                layer(vllm, monkeypatch, kv_cache_dtype)


# On a GPU: the kernel alone, at the widths of TP1, TP2, and TP3 with padded and with
# copied heads; the row counts reach every entry of the kernel's table of shapes.
WIDE = 2048
SHAPES = [(24, 2), (12, 1), (8, 2)]
ROWS = [1, 8, 24, 48, 100, 200, 400, 700, 2100]


def on_gpu(case, keys, values, prefill=False, **scales):
    from vllm.models.qwen4_exp.nvidia.ops.qsa import qsa_sparse_paged_attention

    if "k_scale" not in inspect.signature(qsa_sparse_paged_attention).parameters:
        scales = {}
    try:
        return qsa_sparse_paged_attention(
            case["query"],
            keys,
            values,
            case["selection"],
            case["table"],
            case["token_to_req"],
            prefill,
            output_gate=case["gate"],
            **scales,
        )
    except AssertionError:
        pytest.fail(f"a cache of {keys.dtype} is refused")


def device_scales():
    return {
        "k_scale": torch.tensor(K_SCALE, device="cuda"),
        "v_scale": torch.tensor(V_SCALE, device="cuda"),
    }


@pytest.mark.gpu
@pytest.mark.witness
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("heads", SHAPES, ids=str)
def test_gpu_attention_over_the_bytes(heads, rows, record_property):
    case = ref.case(rows, *heads, WIDE, device="cuda")
    keys = ref.quantize(case["keys"], K_SCALE)
    values = ref.quantize(case["values"], V_SCALE)
    found = on_gpu(case, keys, values, rows > 2048, **device_scales())
    error = ref.error(found, ref.attend(case, *dequantized(case)))
    record_property("error", error)
    assert error < BOUND


@pytest.mark.gpu
@pytest.mark.witness
def test_gpu_a_captured_graph_follows_the_scales(record_property):
    case = ref.case(8, 12, 1, WIDE, device="cuda")
    keys = ref.quantize(case["keys"], K_SCALE)
    values = ref.quantize(case["values"], V_SCALE)
    scales = device_scales()
    on_gpu(case, keys, values, **scales)  # compile before capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = on_gpu(case, keys, values, **scales)
    for factor in (1.0, 0.5):
        scales["k_scale"].fill_(K_SCALE * factor)
        scales["v_scale"].fill_(V_SCALE * factor)
        graph.replay()
        expected = ref.attend(case, *(t * factor for t in dequantized(case)))
        error = ref.error(found, expected)
        record_property(f"error at {factor}", error)
        assert error < BOUND


@pytest.mark.gpu
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("heads", SHAPES, ids=str)
def test_gpu_bf16_is_as_before(heads, rows, record_property):
    case = ref.case(rows, *heads, WIDE, device="cuda")
    found = on_gpu(case, case["keys"], case["values"], rows > 2048)
    error = ref.error(found, ref.attend(case, case["keys"], case["values"]))
    record_property("error", error)
    assert error < BF16_BOUND
