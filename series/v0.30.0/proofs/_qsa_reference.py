# SPDX-License-Identifier: Apache-2.0
"""QSA's sparse attention over a paged cache: an input, and what it gives in float64."""

import torch

HEAD_DIM, PAGE = 256, 16
E4M3 = torch.float8_e4m3fn


def case(rows, query_heads, kv_heads, width, seed=0, device="cpu", spread=1.0):
    """Random requests of different lengths, each query row with its selection.

    `selection` is packed as the expand kernel packs it: indices, the valid ones
    first and some of them -1, and their number in the last column.
    """
    make = torch.Generator().manual_seed(seed)
    requests, pages = 3, -(-4 * width // PAGE)
    table = 1 + torch.randperm(requests * pages, generator=make).view(requests, pages)
    token_to_req = torch.randint(0, requests, (rows,), generator=make)
    selection = torch.full((rows, width + 1), -1)
    for row in range(rows):
        count = [width, width // 2 + 1, 1, 0][row % 4]
        chosen = torch.randperm(pages * PAGE, generator=make)[:count]
        if count > 2:
            chosen[1] = -1
        selection[row, :count] = chosen
        selection[row, width] = count
    normal = lambda *shape: torch.randn(*shape, generator=make)  # noqa: E731
    slots = 1 + requests * pages, PAGE
    return {
        "query": normal(rows, query_heads, HEAD_DIM).bfloat16().to(device),
        "gate": normal(rows, query_heads * HEAD_DIM).bfloat16().to(device),
        "keys": (spread * normal(*slots, kv_heads, HEAD_DIM)).bfloat16().to(device),
        "values": (spread * normal(*slots, kv_heads, HEAD_DIM)).bfloat16().to(device),
        "selection": selection.int().to(device),
        "table": table.int().to(device),
        "token_to_req": token_to_req.int().to(device),
    }


def quantize(rows, scale):
    """What the cache kernel stores: E4M3 of the row over the scale, saturated."""
    return (rows.float() / scale).clamp(-448, 448).to(E4M3)


def attend(case, keys, values):
    """Float64 attention over `keys` and `values`, then the sigmoid gate."""
    query, selection, table = case["query"].double(), case["selection"], case["table"]
    keys, values = keys.double(), values.double()
    owners, counts = case["token_to_req"].tolist(), selection[:, -1].tolist()
    group = query.shape[1] // keys.shape[2]
    out = torch.zeros_like(query)
    for row, (owner, count) in enumerate(zip(owners, counts)):
        chosen = selection[row, :count].long()
        chosen = chosen[chosen >= 0]
        if not chosen.numel():
            continue
        pages, offsets = table[owner].long()[chosen // PAGE], chosen % PAGE
        k = keys[pages, offsets].repeat_interleave(group, dim=1)
        v = values[pages, offsets].repeat_interleave(group, dim=1)
        scores = torch.einsum("hd,thd->ht", query[row], k) * HEAD_DIM**-0.5
        out[row] = torch.einsum("ht,thd->hd", scores.softmax(-1), v)
    return out * case["gate"].double().view_as(out).sigmoid()


def error(found, expected):
    """Relative Frobenius norm of the difference."""
    return ((found.double() - expected).norm() / expected.norm()).item()
