# SPDX-License-Identifier: Apache-2.0
"""EXL3 rows of the n-gram (PLE) table: decoded bit for bit, the same in every
placement; and a complete checkpoint, with every kind of tensor, that runs.
"""

import _ranks as ranks  # before vllm

import _cpu  # isort: skip
import _exl3_qwen4exp as q  # isort: skip
import json  # noqa: E402
from pathlib import Path  # noqa: E402
from types import SimpleNamespace as Names  # noqa: E402
from unittest import mock  # noqa: E402

import _ple  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from _exl3 import Calls, named, relative_error, weight  # noqa: E402
from _exl3 import write as write_llama  # noqa: E402

PREFIX = "model.layers.1.ple.ple_embedding"
VECTORS = Path(__file__).with_name("exl3-ngram-table.vectors.json")
BIAS = torch.randn(16, 160, generator=torch.Generator().manual_seed(3)).half()


def rows_module():
    from vllm.model_executor.layers.quantization.utils import exl3_rows

    return exl3_rows


def some(bits):
    """Three tokens of two heads."""
    rows = q.row_words(6, bits, seed=bits)
    return rows, rows.view(3, -1), BIAS[:2], BIAS[:2].repeat(3, 1)


@pytest.fixture
def rounding():
    """Let the interpreter round to BF16 as a GPU does. Not for the ranks below, whose
    processes put the interpreter right in their own way."""
    from triton.runtime.interpreter import InterpreterBuilder as Builder

    names = ("create_dot", "cast_impl", "create_splat")
    kept = {name: getattr(Builder, name) for name in names}
    _cpu.interpreter_like_a_gpu()
    yield
    for name, function in kept.items():
        setattr(Builder, name, function)


# ------------------------------------------------------------------- the decode
@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize("bits", range(1, 9))
def test_rows_are_decoded_by_their_definition(bits):
    rows, packed, heads, bias = some(bits)
    exl3_rows = rows_module()
    expected = q.decoded_rows(rows, bias)
    assert torch.equal(exl3_rows.decode(rows, bias), expected)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for kernels in (False, True):
            out = exl3_rows.dequantize(packed, heads, dtype, kernels)
            assert out.shape == (3, 320) and out.dtype == dtype
            assert torch.equal(out, expected.to(dtype).view(3, -1))


@pytest.mark.parametrize("bits", range(1, 9))
def test_rows_are_decoded_as_exllamav3_does(bits):
    """Against what its own kernel computed on a GPU; the file names the command."""
    vector = json.loads(VECTORS.read_text())["rows"][str(bits)]
    words = torch.tensor(vector["words"], dtype=torch.int16)
    bias = torch.tensor(vector["bias"], dtype=torch.int16).view(torch.float16)
    expected = torch.tensor(vector["values"], dtype=torch.int16)
    found = rows_module().decode(words, bias).half()
    assert torch.equal(found.view(torch.int16), expected)


def test_no_other_row_is_taken_for_one():
    for words in (1, 10, 12, 50, 91):
        with pytest.raises(ValueError, match=f"{words} words are no EXL3 row"):
            rows_module().bits_of(words)


# ------------------------------------------------------------- tables and placements
@pytest.fixture(scope="module")
def table():
    size = len(_ple.rows(torch.bfloat16))
    return q.row_words(size, 5)


def checkpoint(folder, table, parts, bias=BIAS, **more):
    """The table in row shards over two files; returns their names."""
    from safetensors.torch import save_file

    size = -(-len(table) // parts)
    files = [{}, {}]
    for part in range(parts):
        name = f"{PREFIX}.ngram_embedding.shard_{part}.trellis"
        if parts == 1:
            name = f"{PREFIX}.ngram_embedding.trellis"
        files[part % 2][name] = table[part * size : (part + 1) * size].clone()
    if bias is not None:
        files[1][f"{PREFIX}.ngram_embedding.head_bias"] = bias
    files[1] |= {f"{PREFIX}.ngram_embedding.{name}": t for name, t in more.items()}
    files[0] |= named("model.layers.0.o_proj", weight(128, 128))
    names = []
    for number, tensors in enumerate(files):
        names.append(str(folder / f"model-{number}.safetensors"))
        save_file(tensors, names[-1])
    return names


def config_of(folder):
    """What the engine makes of a folder's headers."""
    from vllm.model_executor.layers.quantization.exl3 import Exl3Config

    config = Exl3Config.from_config({"quant_method": "exl3"})
    (folder / "config.json").write_text("{}")
    try:
        config.maybe_update_config(str(folder))
    except ValueError as error:
        if "table of embedding rows" not in str(error):
            raise
        pytest.fail(str(error))
    return config


def weights(files):
    from vllm.model_executor.model_loader.weight_utils import (
        safetensors_weights_iterator,
    )

    for name, tensor in safetensors_weights_iterator(files, False, "lazy"):
        if name.startswith(PREFIX):
            yield name.removeprefix(f"{PREFIX}."), tensor


def module(folder, files, placement, load=True):
    """The module of a placement, built and loaded by vLLM's own code."""
    import vllm.models.qwen4_exp.nvidia.ngram_embedding as ngram
    from vllm.model_executor.model_loader import utils

    current = Names(engram_config=_ple.engram(placement=placement))
    quant_config = config_of(folder)
    with mock.patch.object(ngram, "get_current_vllm_config", lambda: current):
        built = ngram.Qwen4ExpNGramEmbedding(
            Names(**vars(_ple.CONFIG)),
            16 * 160,
            0,
            64,
            data_parallel_rank=0,
            prefix=PREFIX,
            quant_config=quant_config,
            params_dtype=torch.bfloat16,
        )
    if load:
        try:
            loaded = built.load_weights(weights(files))
        except ValueError as error:
            pytest.fail(f"the checkpoint is refused: {error}")
        assert loaded >= {"ngram_embedding.weight"}
        with (
            mock.patch.object(utils, "maybe_retie_word_embeddings", lambda *a: None),
            mock.patch.object(utils, "release_device_memory_under_pressure", lambda *a: None),
        ):
            utils.process_weights_after_loading(
                built, Names(quantization=None, dtype=torch.bfloat16), torch.device("cpu")
            )
    return built


def lookup(built, ids):
    """The stored rows of these ids as a step gets them."""
    embedding = built.ngram_embedding
    if embedding.supports_prefetch:
        embedding.start_prefetch(ids, ids)
        return embedding(ids)
    return embedding(ids).flatten(-2)


def ids_of(table, tokens=2, seed=1):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(len(table), (tokens, 16), generator=generator)
    ids[0, 0], ids[1, 1] = 0, len(table) - 1
    return ids


@pytest.fixture
def streams():
    """The calls of a prefetch that need a GPU."""
    with (
        mock.patch.object(_ple.Stream, "wait_stream", lambda *a: None, create=True),
        mock.patch.object(torch.cuda, "current_stream", lambda *a: _ple.Stream()),
        mock.patch.object(torch.cuda, "stream", lambda *a: mock.MagicMock()),
        mock.patch.object(torch.Tensor, "record_stream", lambda *a: None),
    ):
        yield


@pytest.mark.witness
@pytest.mark.usefixtures("rounding", "streams")
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("placement", ["device", "pinned", "disk"])
def test_every_placement_gives_the_stored_rows(tmp_path, table, placement, parts):
    files = checkpoint(tmp_path, table, parts)
    ids = ids_of(table)
    with _ple.world():
        built = module(tmp_path, files, placement)
        if placement == "disk":  # what is wrong here reads past the file
            assert built.ngram_embedding._rows.row_bytes == 2 * table.shape[1]
        found = lookup(built, ids)
        assert found.dtype == torch.int16
        assert torch.equal(found, table[ids].flatten(1))
        values = built.ngram_embedding.dequantize(found, torch.bfloat16)
    expected = q.decoded_rows(table[ids].flatten(0, 1), BIAS.repeat(2, 1))
    assert torch.equal(values, expected.bfloat16().view(2, -1))


@pytest.mark.witness
@pytest.mark.usefixtures("streams")
@pytest.mark.parametrize("placement", ["device", "pinned", "disk"])
def test_ranks_give_a_row_each_and_sum_its_bytes(tmp_path, table, placement):
    files, ids = checkpoint(tmp_path, table, 3), ids_of(table)
    sent = []

    def all_reduce(tensor):
        sent.append(tensor.clone())
        return tensor

    for rank in range(2):
        with _ple.world(rank, 2):
            import vllm.models.qwen4_exp.nvidia.ngram_embedding as ngram

            group = ngram.get_etp_group()
            group.all_reduce = all_reduce
            built = module(tmp_path, files, placement)
            assert len(built.ngram_embedding.weight) in (0, len(table) // 2)
            lookup(built, ids)
    first, second = sent
    # int16 has no sum over ranks; a byte of one rank and the zeros of the other do.
    assert first.dtype == second.dtype == torch.int8
    assert first.any() and second.any()
    total = (first + second).contiguous().view(torch.int16).view(2, -1)
    assert torch.equal(total, table[ids].flatten(1))


@pytest.mark.usefixtures("streams")
def test_hashing_and_bias_come_from_the_checkpoint(tmp_path, table):
    stored = {
        "layer_multipliers": torch.tensor([5, 7, 9]),
        "head_offsets": torch.arange(16) * 3,
        "head_vocab_sizes": torch.arange(16) + 11,
    }
    with _ple.world():
        built = module(tmp_path, checkpoint(tmp_path, table, 2, **stored), "device")
        assert torch.equal(built.layer_multipliers, stored["layer_multipliers"])
        assert torch.equal(built.ngram_heads_offsets, stored["head_offsets"])
        assert torch.equal(built.ngram_heads_vocab_sizes, stored["head_vocab_sizes"])
        assert torch.equal(built.ngram_embedding.head_bias, BIAS)


def test_a_table_without_bias_has_none(tmp_path, table):
    with _ple.world():
        built = module(tmp_path, checkpoint(tmp_path, table, 2, None), "device")
        out = built.ngram_embedding.dequantize(lookup(built, ids_of(table)), torch.float32)
    expected = q.decoded_rows(table[ids_of(table)].flatten(0, 1), torch.zeros(1, 160))
    assert torch.equal(out, expected.view(2, -1))


def test_tables_follow_the_models_names(tmp_path, table):
    from vllm.model_executor.layers.quantization.exl3 import Exl3Config
    from vllm.model_executor.models.utils import WeightsMapper

    mapper = WeightsMapper(orig_to_new_prefix={"model.": "language_model.model."})
    checkpoint(tmp_path, table, 2)
    config, unread = config_of(tmp_path), Exl3Config()
    try:
        for each in (config, unread):
            each.apply_vllm_mapper(mapper)
            each.apply_vllm_mapper(mapper)  # no name of this kind any more
    except AttributeError as error:
        pytest.fail(f"before the headers are read: {error}")
    assert unread.row_tables == {}
    ((name, found),) = config.row_tables.items()
    assert name == f"language_model.{PREFIX}.ngram_embedding"
    assert (found.num_rows, found.words) == (len(table), table.shape[1])


@pytest.mark.parametrize("master", ["0", "1"])
def test_the_master_switch_has_its_path(monkeypatch, tmp_path, table, master):
    monkeypatch.setenv("VLLM_EXL3_KERNELS", master)
    with _ple.world():
        built = module(tmp_path, checkpoint(tmp_path, table, 1), "device")
        monkeypatch.setenv("VLLM_EXL3_KERNELS", "1")
        exl3_rows = rows_module()
        paths = Calls(monkeypatch, kernel=(exl3_rows, "_rows"), reference=(exl3_rows, "decode"))
        rows = table[ids_of(table)].flatten(1)
        built.ngram_embedding.dequantize(rows, torch.bfloat16)
        assert paths.take() == ["kernel" if master == "1" else "reference"]


def test_what_is_no_table_of_this_model_is_refused(tmp_path, table):
    with _ple.world():
        files = checkpoint(tmp_path, table[:-128], 2)
        with pytest.raises(ValueError, match=r"checkpoint has \d+ rows, the model \d+"):
            module(tmp_path, files, "device", load=False)


@pytest.mark.parametrize(
    "shapes, reason",
    [
        ({0: (8, 51), 2: (8, 51)}, "numbered from 0"),
        ({1: (8, 51)}, "numbered from 0"),
        ({0: (8, 51), 1: (9, 51)}, "the last may be shorter"),
        ({0: (8, 51), 1: (7, 51), 2: (8, 51)}, "of one shape"),
        ({0: (8, 51), 1: (8, 41)}, "of one shape"),
        ({0: (8, 50)}, "50 words are no EXL3 row"),
        ({0: (8, 2, 51)}, r"should be I16 \[rows, words\]"),
    ],
)
def test_headers_that_make_no_table_are_refused(shapes, reason):
    from vllm.model_executor.layers.quantization.exl3 import parse_tables

    entries = {
        f"m.ngram_embedding.shard_{i}.trellis": {"dtype": "I16", "shape": list(shape)}
        for i, shape in shapes.items()
    }
    with pytest.raises(ValueError, match=reason):
        parse_tables(entries)


def test_other_tables_of_rows_are_still_refused(tmp_path):
    rows = {"trellis": q.row_words(8, 5)}
    tensors = named("model.embed_tokens", rows) | named("m.o_proj", weight(128, 128))
    from vllm.model_executor.layers.quantization.exl3 import Exl3Config

    config = Exl3Config()
    with pytest.raises(ValueError, match="embed_tokens.*table of embedding rows"):
        config.maybe_update_config(write_llama(tmp_path / "m", tensors))


# ------------------------------------------------------------ a complete checkpoint
def whole(rank, path):
    try:
        return q.run(rank, path, switches={"VLLM_EXL3_KERNELS": "0"})
    except AttributeError as error:  # what a table of another kind lacks
        return ranks.Refused(error)


def ran(path):
    results = ranks.run(1, whole, path)
    assert not isinstance(results, ranks.Refused), results
    return results[0]


@pytest.mark.witness
def test_a_complete_checkpoint_runs(tmp_path):
    """Every kind of tensor, by vLLM's own loader, target and draft; the logits are
    those of the same weights in BF16."""
    exl3, plain = q.write(tmp_path)
    got, expected = ran(exl3), ran(plain)
    for step, wanted in zip(got, expected, strict=True):
        for name, logits in wanted.items():
            assert logits.isfinite().all()
            assert relative_error(step[name], logits) < 5e-2, name
