# SPDX-License-Identifier: Apache-2.0
"""MTP's two fusion projections are whole on each rank where the hidden size does not
divide by the ranks, and split and gathered where it does: one rank's output.

The heads are multiples of three here, so that nothing else stands in the way.
"""

import _ranks as ranks  # before vllm
import pytest
import torch
from _tiny_qwen4exp import TEXT, write

HIDDEN = TEXT["hidden_size"]
HEADS = {
    "num_attention_heads": 36,
    "num_key_value_heads": 6,
    "linear_num_key_heads": 18,
    "linear_num_value_heads": 54,
}


def projections(rank, path):
    rank.join(path, drafts=2).load(target=False, draft=True)
    x = torch.randn(3, HIDDEN, generator=torch.Generator().manual_seed(1)).bfloat16()
    predictor = rank.draft.model
    with torch.inference_mode():
        return {
            name: (
                getattr(predictor, name).weight.shape[0],
                getattr(predictor, name)(x),
            )
            for name in ("fc_embedding", "fc_hidden")
        }


def ran(world, work, *args):
    results = ranks.run(world, work, *args)
    assert not isinstance(results, ranks.Refused), results
    return results


@pytest.mark.witness
def test_three_ranks_hold_all_rows(tmp_path):
    path = write(tmp_path, **HEADS)
    three = ran(3, projections, path)
    (one,) = ran(1, projections, path)
    assert not torch.equal(one["fc_embedding"][1], one["fc_hidden"][1])
    for name, (rows, expected) in one.items():
        assert rows == HIDDEN
        for got in three:
            assert got[name][0] == HIDDEN
            assert torch.equal(got[name][1], expected)


def test_two_ranks_hold_half_each(tmp_path):
    path = write(tmp_path, **HEADS)
    two = ran(2, projections, path)
    (one,) = ran(1, projections, path)
    for name, (_, expected) in one.items():
        for got in two:
            assert got[name][0] == HIDDEN // 2
            torch.testing.assert_close(got[name][1], expected)
