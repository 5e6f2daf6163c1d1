# SPDX-License-Identifier: Apache-2.0
"""With VLLM_QWEN4_EXP_TP_PAD=1 three ranks load a checkpoint of 24/2 and 16/48 heads
each give the logits of one rank: target and MTP draft, BF16 and FP8, prefill and
decode; what the added heads contribute is exactly zero.
"""

import ast
import inspect

import _ranks as ranks  # before vllm
import pytest
import torch
import vllm.envs as envs
from _tiny_qwen4exp import PLAIN, TEXT, write

SWITCH = "VLLM_QWEN4_EXP_TP_PAD"
HEADS = {
    "num_attention_heads": (24, 36),
    "num_key_value_heads": (2, 3),
    "linear_num_key_heads": (16, 18),
    "linear_num_value_heads": (48, 54),
}
BF16, FP32 = 2e-2, 1e-4


@pytest.fixture(autouse=True)
def switch(monkeypatch):
    monkeypatch.setenv(SWITCH, "1")


def rank_of(path, world, drafts=2):
    """The config of one rank, without the ranks."""
    rank, engine = ranks.Rank(0, world, ""), {}
    if drafts:
        engine = {
            "speculative_config": {"method": "mtp", "num_speculative_tokens": drafts}
        }
    engine_args = ranks.EngineArgs(
        model=path,
        tensor_parallel_size=world,
        enable_expert_parallel=True,
        skip_tokenizer_init=True,
        language_model_only=True,
        max_model_len=256,
        **engine,
    )
    try:
        rank.config = engine_args.create_engine_config()
    except AttributeError as error:
        if not ranks.unregistered_switch(error):
            raise
        pytest.fail(str(error))
    return rank


# ---------------------------------------------------------------- what the ranks do
def ran(world, work, *args):
    results = ranks.run(world, work, *args)
    assert not isinstance(results, ranks.Refused), results
    return results


def whole_model(rank, path):
    rank.join(path, drafts=2).load(draft=True).allocate()
    inputs = {}

    def watch(name):
        def hook(_, args):
            inputs.setdefault(name, []).append(args[0].detach().clone())

        return hook

    target, draft = rank.model.model.layers, rank.draft.model.layers
    target[0].linear_attn.out_proj.register_forward_pre_hook(watch("gdn"))
    target[1].self_attn.o_proj.register_forward_pre_hook(watch("qsa"))
    draft[0].self_attn.o_proj.register_forward_pre_hook(watch("draft"))
    tokens = torch.randint(0, 499, (9,), generator=torch.Generator().manual_seed(1))
    context = torch.full((2, 2), TEXT["eos_token_id"], dtype=torch.int32)
    # Two requests, 5 and 2 tokens long, and then a token more of each.
    steps = [rank.step(tokens[:7], [5, 2], [5, 2], context)]
    context = torch.stack((tokens[3:5], tokens[5:7])).to(torch.int32)
    steps.append(rank.step(tokens[7:], [1, 1], [6, 3], context))
    dtypes = {
        module: str(layer.weight.dtype)
        for module, layer in (
            ("qkv_proj", target[1].self_attn.qkv_proj),
            ("in_proj_qkvz", target[0].linear_attn.in_proj_qkvz),
            ("out_proj", target[0].linear_attn.out_proj),
            ("draft", draft[0].self_attn.qkv_proj),
        )
    }
    return {"steps": steps, "inputs": inputs, "dtypes": dtypes}


def plain_layers(rank, path):
    """GDN and MoE in FP32: five tokens at once, then one more."""
    rank.join(path, dtype="float32").load().allocate()
    layer = rank.model.model.layers[0]
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(6, TEXT["hidden_size"], generator=generator)
    out = {"dtype": str(layer.linear_attn.in_proj_qkvz.weight.dtype)}
    for name, tokens, length in (("prefill", x[:5], 5), ("decode", x[5:], 6)):
        metadata, _, _ = rank.metadata([len(tokens)], [length])
        with (
            ranks.set_forward_context(metadata, rank.config),
            torch.inference_mode(),
        ):
            out[f"gdn {name}"] = layer.linear_attn(tokens)
            out[f"moe {name}"] = layer.mlp(tokens)
    return out


def compared(path):
    three = ran(3, whole_model, path)
    (one,) = ran(1, whole_model, path)
    for step, expected in enumerate(one["steps"]):
        for name, logits in expected.items():
            assert logits.isfinite().all()
            assert logits.shape[-1] == TEXT["vocab_size"]
            for rank, got in enumerate(three):
                got = got["steps"][step][name]
                assert ranks.relative_error(got, logits) < BF16, (rank, step, name)
                assert (got - logits).abs().max() < 0.05, (rank, step, name)
    # Heads 24 to 35 are the last rank's, of 48 GDN heads it has 12 and six added.
    per_head = TEXT["linear_value_head_dim"]
    for rank, got in enumerate(three):
        for name in ("gdn", "qsa", "draft"):
            assert len(got["inputs"][name]) == 2, name
        for name in ("qsa", "draft"):
            norms = [float(x.float().norm()) for x in got["inputs"][name]]
            assert all(norm == 0 for norm in norms) == (rank == 2), (name, norms)
        for x in got["inputs"]["gdn"]:
            assert x.shape[1] == 18 * per_head
            added = x[:, 12 * per_head :]
            assert (float(added.float().norm()) == 0) == (rank == 2)
    return one, three


# -------------------------------------------------------------------- the witnesses
@pytest.mark.witness
def test_three_ranks_give_the_logits_of_one(tmp_path):
    compared(write(tmp_path))


@pytest.mark.witness
def test_three_ranks_give_the_logits_of_one_in_fp8(tmp_path):
    one, three = compared(write(tmp_path, fp8=True))
    for got in (one, *three):
        assert set(got["dtypes"].values()) == {"torch.float8_e4m3fn"}


@pytest.mark.witness
def test_gdn_and_moe_agree_in_fp32(tmp_path):
    path = write(tmp_path, **PLAIN)
    three = ran(3, plain_layers, path)
    (one,) = ran(1, plain_layers, path)
    assert one.pop("dtype") == "torch.float32"
    for name, expected in one.items():
        assert expected.norm() > 1e-2
        for got in three:
            assert ranks.relative_error(got[name], expected) < FP32, name


# ---------------------------------------------------------------------- the config
def test_target_and_draft_get_the_padded_heads(tmp_path):
    path = write(tmp_path)
    rank = rank_of(path, 3)
    for text in (rank.text, rank.draft_text):
        for name, (_, padded) in HEADS.items():
            assert getattr(text, name) == padded
    models = (
        rank.config.model_config,
        rank.config.speculative_config.draft_model_config,
    )
    for model in models:
        # What cache sizes are reckoned with.
        assert model.get_num_kv_heads(rank.config.parallel_config) == 1
        assert model.get_num_attention_heads(rank.config.parallel_config) == 12


def test_padding_twice_is_padding_once(tmp_path):
    from vllm.models.qwen4_exp.common.tp_pad import pad_head_config

    rank = rank_of(write(tmp_path), 3)
    pad_head_config(rank.config)
    assert rank.text.num_attention_heads == 36


# Two key/value heads stand on 4 and 8 ranks in copies, as they always did.
@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_heads_stay_where_they_divide(tmp_path, world):
    rank = rank_of(write(tmp_path), world)
    for text in (rank.text, rank.draft_text):
        assert {name: getattr(text, name) for name in HEADS} == {
            name: heads for name, (heads, _) in HEADS.items()
        }


def test_heads_that_ranks_hold_in_copies_are_not_padded(tmp_path):
    """Six ranks hold three copies of each key/value head; only GDN is padded."""
    rank = rank_of(write(tmp_path), 6)
    for text in (rank.text, rank.draft_text):
        assert [getattr(text, name) for name in HEADS] == [24, 2, 18, 54]


def test_without_the_switch_the_refusal_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv(SWITCH, "0")
    with pytest.raises(ValueError, match=f"{SWITCH}=1 .* 24 -> 36"):
        rank_of(write(tmp_path), 3)


def test_rocm_refuses(tmp_path, monkeypatch):
    import vllm.models.qwen4_exp.common.tp_pad as tp_pad

    monkeypatch.setattr(type(tp_pad.current_platform), "is_rocm", lambda self: True)
    rank = rank_of(write(tmp_path), 1, drafts=0)
    rank.config.parallel_config.tensor_parallel_size = 3
    with pytest.raises(NotImplementedError, match=SWITCH):
        tp_pad.pad_head_config(rank.config)


def test_switch_is_off_unless_set_and_part_of_the_compile_key(monkeypatch):
    monkeypatch.delenv(SWITCH)
    assert SWITCH in envs.environment_variables
    assert getattr(envs, SWITCH) is False
    assert envs.compile_factors()[SWITCH] is False
    # mypy's declaration says the same.
    declared = {
        node.target.id: ast.literal_eval(node.value)
        for node in ast.walk(ast.parse(inspect.getsource(envs)))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == SWITCH
    }
    assert declared == {SWITCH: False}


# --------------------------------------------------------------------- the tensors
def padded(name, weight, world=3, heads=HEADS):
    from types import SimpleNamespace

    from vllm.models.qwen4_exp.common.tp_pad import pad_head_weights

    text = SimpleNamespace(
        **{field: new for field, (_, new) in heads.items()},
        tp_pad_checkpoint_heads={field: old for field, (old, _) in heads.items()},
    )
    ((got_name, got),) = pad_head_weights([(name, weight)], text)
    assert got_name == name
    assert got.dtype == weight.dtype
    return got


def added_and_kept(got, weight, dim, groups):
    """Split `got` into its added parts and the checkpoint's."""
    old = [HEADS[group][0] for group in groups]
    new = [HEADS[group][1] for group in groups]
    unit = weight.shape[dim] // sum(old)
    assert got.shape[dim] == unit * sum(new)
    kept, added = [], []
    for piece, count in zip(got.split([n * unit for n in new], dim), old):
        parts = piece.split([count * unit, piece.shape[dim] - count * unit], dim)
        kept.append(parts[0])
        added.append(parts[1])
    return torch.cat(added, dim), torch.cat(kept, dim)


Q, KV = ("num_attention_heads",), ("num_key_value_heads",)
V = ("linear_num_value_heads",)
QKV = ("linear_num_key_heads", "linear_num_key_heads", "linear_num_value_heads")
MODULES = [
    ("self_attn.q_proj", 0, Q),
    ("self_attn.k_proj", 0, KV),
    ("self_attn.v_proj", 0, KV),
    ("self_attn.o_proj", 1, Q),
    ("linear_attn.in_proj_qkv", 0, QKV),
    ("linear_attn.in_proj_z", 0, V),
    ("linear_attn.in_proj_b", 0, V),
    ("linear_attn.in_proj_a", 0, V),
    ("linear_attn.out_proj", 1, V),
]


def count(groups):
    return sum(HEADS[group][0] for group in groups)


@pytest.mark.parametrize(("module", "dim", "groups"), MODULES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.uint8])
def test_added_rows_and_columns_are_zero(module, dim, groups, dtype):
    shape = [8, 8]
    shape[dim] = 4 * count(groups)
    weight = torch.randint(1, 100, shape).to(torch.float32).to(dtype)
    got = padded(f"layers.3.{module}.weight", weight)
    added, kept = added_and_kept(got, weight, dim, groups)
    assert (added.float() == 0).all()
    assert added.numel() > 0
    assert torch.equal(kept.view(torch.uint8), weight.view(torch.uint8))


@pytest.mark.parametrize("name", ["A_log", "dt_bias", "conv1d.weight"])
def test_gdn_parameters_get_finite_zeros(name):
    groups = QKV if name == "conv1d.weight" else V
    shape = (count(groups) * 32, 1, 4) if groups is QKV else (count(groups),)
    weight = torch.randn(shape)
    got = padded(f"model.layers.0.linear_attn.{name}", weight)
    added, kept = added_and_kept(got, weight, 0, groups)
    assert (added == 0).all()
    assert torch.equal(kept, weight)


# A head of QSA is 256 wide, of GDN 128; q_proj holds the gate too.
WIDTH = {Q: 256, KV: 256, V: 128, QKV: 128}
SCALES = {
    "channel": lambda rows, cols: (torch.rand(rows), "weight_scale", (0, None)),
    "channel 2-d": lambda rows, cols: (
        torch.rand(rows, 1),
        "weight_scale",
        (0, None),
    ),
    "block": lambda rows, cols: (
        torch.rand(-(-rows // 128), -(-cols // 128)),
        "weight_scale_inv",
        (0, 1),
    ),
    "block 4-d": lambda rows, cols: (
        torch.rand(-(-rows // 128), 1, -(-cols // 128), 1),
        "weight_scale",
        (0, 2),
    ),
    "mxfp8": lambda rows, cols: (
        torch.randint(100, 120, (rows, cols // 32), dtype=torch.uint8),
        "weight_scale",
        (0, 1),
    ),
    "nvfp4": lambda rows, cols: (
        torch.rand(rows, cols // 16).to(torch.float8_e4m3fn),
        "weight_scale",
        (0, 1),
    ),
}


@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize(
    ("module", "dim", "groups"), [m for m in MODULES if m[0][-1] not in "ab"]
)
def test_added_scales_are_one(module, dim, groups, kind):
    heads = count(groups) * WIDTH[groups] * (2 if module.endswith("q_proj") else 1)
    rows, cols = (heads, 2560) if dim == 0 else (2560, heads)
    scale, param, dims = SCALES[kind](rows, cols)
    got = padded(f"layers.3.{module}.{param}", scale)
    if dims[dim] is None:
        assert torch.equal(got, scale)
        return
    added, kept = added_and_kept(got, scale, dims[dim], groups)
    one = 127 if kind == "mxfp8" else 1.0
    assert (added.float() == one).all()
    assert torch.equal(kept.view(torch.uint8), scale.view(torch.uint8))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("layers.3.self_attn.q_norm.weight", (256,)),
        ("layers.3.self_attn.indexer.index_qk_proj.weight", (640, 8)),
        ("layers.3.self_attn.q_proj.weight_scale_2", ()),
        ("layers.3.self_attn.q_proj.input_scale", (1,)),
        ("layers.3.self_attn._k_scale", ()),
        ("layers.3.self_attn.o_proj.bias", (8,)),
        ("layers.0.linear_attn.norm.weight", (128,)),
        ("layers.0.mlp.experts.7.up_proj.weight", (24, 48)),
        ("embed_tokens.weight", (48, 8)),
    ],
)
def test_tensors_without_heads_stay(name, shape):
    weight = torch.randn(shape)
    assert torch.equal(padded(name, weight), weight)


@pytest.mark.parametrize(
    ("param", "shape"),
    [("qweight", (24, 8)), ("qzeros", (24, 8)), ("weight", (25, 8))],
)
def test_what_cannot_be_padded_is_refused_by_name(param, shape):
    name = f"layers.3.self_attn.q_proj.{param}"
    with pytest.raises(ValueError, match=name):
        padded(name, torch.ones(shape))


def test_config_without_padding_leaves_weights_alone():
    from types import SimpleNamespace

    from vllm.models.qwen4_exp.common.tp_pad import pad_head_weights

    weight = torch.randn(24, 8)
    name = "layers.3.self_attn.q_proj.qweight"
    (((_, got)),) = pad_head_weights([(name, weight)], SimpleNamespace())
    assert got is weight
