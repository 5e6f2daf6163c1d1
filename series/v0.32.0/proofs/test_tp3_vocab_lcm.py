# SPDX-License-Identifier: Apache-2.0
"""Vocabulary and PLE rows split over three ranks, each row of the checkpoint on one
rank and where it was for 1, 2, 4 and 8 ranks; lookups and logits are one rank's.
"""

from types import SimpleNamespace

import _ranks as ranks  # before vllm
import pytest
import torch
from _tiny_qwen4exp import TEXT, write
from vllm.model_executor.layers.vocab_parallel_embedding import (
    VocabParallelEmbedding,
)

# Rows, padding size, rows a rank of three holds: Qwen3.8-Flash-Next's vocabulary and
# its PLE table.
TABLES = [(248320, 64, 82816), (320001536, 128, 106667264)]


@pytest.fixture(autouse=True)
def heads_are_padded(monkeypatch):
    """Where a later patch pads the heads, three ranks are refused without it."""
    monkeypatch.setenv("VLLM_QWEN4_EXP_TP_PAD", "1")


def shards(rows, padding, world, **vocabulary):
    """The table as each rank of `world` makes it, without memory."""
    try:
        with torch.device("meta"):
            return [
                VocabParallelEmbedding(
                    rows,
                    8,
                    padding_size=padding,
                    parallel_group=SimpleNamespace(
                        rank_in_group=rank, world_size=world
                    ),
                    **vocabulary,
                )
                for rank in range(world)
            ]
    except (AssertionError, NameError) as error:
        pytest.fail(f"{type(error).__name__}: {error}")


def ran(world, work, *args):
    results = ranks.run(world, work, *args)
    assert not isinstance(results, ranks.Refused), results
    return results


def lookups_and_logits(rank, path):
    """The real loader's embedding, LM head and PLE table."""
    from vllm.model_executor.layers.logits_processor import LogitsProcessor
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
    from vllm.models.qwen4_exp.nvidia.ngram_embedding import Qwen4ExpNGramEmbedding

    rank.join(path)
    rows, width = TEXT["vocab_size"], TEXT["hidden_size"]
    table = torch.randn(rows, width, generator=torch.Generator().manual_seed(0))
    embedding, head = VocabParallelEmbedding(rows, width), ParallelLMHead(rows, width)
    for layer in (embedding, head):
        layer.weight_loader(layer.weight, table)
        layer.quant_method.process_weights_after_loading(layer)
    ple = Qwen4ExpNGramEmbedding(
        rank.text, TEXT["ple_embed_dim"], 0, 256, data_parallel_rank=0, prefix="ple"
    )
    size = ple.ngram_embedding.org_vocab_size
    ple_rows = torch.arange(size, dtype=torch.float32)[:, None].expand(size, 8)
    ple.load_weights(
        (f"ngram_embedding.shard_{part}.weight", rows.contiguous())
        for part, rows in enumerate(ple_rows.chunk(TEXT["split_ngram_parts"]))
    )
    tokens = torch.arange(rows)
    context = torch.full((1, 2), TEXT["eos_token_id"], dtype=torch.int32)
    with torch.inference_mode():
        out = {
            "embedding": embedding(tokens),
            "logits": LogitsProcessor(rows)(head, table[:4]),
            "ids": ple.compute_ngram_ids(tokens, torch.tensor([0, rows]), context),
            "ple": ple(None, tokens, torch.tensor([0, rows]), context),
        }
    shard = head.shard_indices
    added = head.weight[shard.num_org_elements :]
    return out, (shard.num_org_elements, len(added), float(added.abs().sum()))


@pytest.mark.witness
@pytest.mark.parametrize(("rows", "padding", "held"), TABLES)
def test_three_ranks_hold_every_row_once(rows, padding, held):
    parts = shards(rows, padding, 3)
    assert [part.weight.shape[0] for part in parts] == [held] * 3
    edge = 0
    for part in parts:
        assert part.shard_indices.org_vocab_start_index == edge
        edge = part.shard_indices.org_vocab_end_index
        assert part.org_vocab_size == rows
    assert edge == rows


@pytest.mark.witness
def test_lookups_and_logits_are_those_of_one_rank(tmp_path):
    path = write(tmp_path)
    three = ran(3, lookups_and_logits, path)
    ((one, _),) = ran(1, lookups_and_logits, path)
    assert one["logits"].shape == (4, TEXT["vocab_size"])
    for got, _ in three:
        assert torch.equal(got["embedding"], one["embedding"])
        assert torch.equal(got["ids"], one["ids"])
        assert torch.equal(got["ple"], one["ple"])
    torch.testing.assert_close(three[0][0]["logits"], one["logits"])
    # Row i of the PLE table holds i, in each of the 16 heads.
    expected = one["ids"].repeat_interleave(8, -1).to(one["ple"].dtype)
    assert torch.equal(one["ple"], expected)
    # 500 rows in 3 x 192: the last rank has 116 and 76 of nothing.
    assert [counts for _, counts in three] == [(192, 0, 0), (192, 0, 0), (116, 76, 0)]


@pytest.mark.parametrize("world", [1, 2, 4, 8])
@pytest.mark.parametrize(("rows", "padding"), [table[:2] for table in TABLES])
def test_worlds_that_divide_the_padding_are_as_before(rows, padding, world):
    for rank, part in enumerate(shards(rows, padding, world)):
        padded = -(-rows // padding) * padding
        assert part.num_embeddings_padded == padded
        assert part.padding_size == padding
        assert part.shard_indices.org_vocab_start_index == rank * padded // world


def test_added_vocabulary_is_padded_too():
    """LoRA's rows stand behind the padded base rows and split as well."""
    part = shards(500 + 10, 64, 3, org_num_embeddings=500)[2]
    assert (part.org_vocab_size_padded, part.num_embeddings_padded) == (576, 768)
    assert part.weight.shape[0] == 256
