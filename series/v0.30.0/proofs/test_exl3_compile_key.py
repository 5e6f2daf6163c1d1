# SPDX-License-Identifier: Apache-2.0
"""A graph compiled for one EXL3 checkpoint is not taken for another."""

import pickle

import _exl3 as x
import pytest
import torch

PREFIX = "model.layers.0.self_attn"


def engine(folder, tensors, **quantization):
    """What a checkpoint gives in a process that has read no other one there."""
    from vllm.config import VllmConfig
    from vllm.model_executor.layers.quantization import exl3

    x.write(folder, tensors, **quantization)
    exl3._read_headers.cache_clear()
    config = VllmConfig(model_config=x.model_config(str(folder)))
    assert config.quant_config.get_name() == "exl3"
    return config


def key(folder, tensors, **quantization):
    """The key under which the engine's compiled graphs are cached."""
    return engine(folder, tensors, **quantization).compute_hash()


def checkpoint(q=(80, "mcg"), k=(64, "mcg"), seed=0, **more):
    tensors = {f"{name}.trellis": rows for name, rows in more.items()}
    for name, kind in (("q_proj", q), ("k_proj", k)):
        group = x.weight(256, 256, *kind, seed=seed)
        tensors.update(x.named(f"{PREFIX}.{name}", group))
    return tensors


OTHERS = {
    "rates exchanged": checkpoint(q=(64, "mcg"), k=(80, "mcg")),
    "codebook": checkpoint(q=(80, "mul1")),
    "a table of rows": checkpoint(ngram_embedding=torch.zeros(8, 51, dtype=torch.int16)),
}


@pytest.mark.witness
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_tensors_under_the_same_config_have_another_key(tmp_path, other):
    """Requantised in place: the same path, the same config.json."""
    assert key(tmp_path, checkpoint()) != key(tmp_path, other)


@pytest.mark.witness
def test_the_bits_of_a_tables_rows_count(tmp_path):
    tables = (torch.zeros(8, words, dtype=torch.int16) for words in (51, 41))
    first, second = (key(tmp_path, checkpoint(ngram_embedding=rows)) for rows in tables)
    assert first != second


def test_other_values_of_the_same_tensors_do_not(tmp_path):
    """So that a restart compiles nothing."""
    first = key(tmp_path, checkpoint())
    assert first == key(tmp_path, checkpoint(seed=1)) == key(tmp_path, checkpoint())
    assert first != key(tmp_path, checkpoint(), bits=4.0)


def test_a_worker_has_the_key_of_its_engine(tmp_path):
    """It gets the config by pickle and reads no header."""
    config = engine(tmp_path, checkpoint())
    copy = pickle.loads(pickle.dumps(config))
    assert copy.compute_hash() == config.compute_hash()
