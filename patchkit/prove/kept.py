"""Runs kept in the store, one a key: how a run is written there and read again."""

from __future__ import annotations

import json
from dataclasses import asdict

from patchkit.prove.judge import Seen
from patchkit.store.repo import Store


def kept(store: Store, key: str) -> Seen | None:
    """The run that was kept under `key`; None without one."""
    found = store.results.read(key).get(key)
    if found is None:
        return None
    body = json.loads(found.text)
    raised_in = body.get("raised_in", "")
    return Seen(body["tests"], body["trouble"], body["seconds"], raised_in=raised_in)


def keep(store: Store, key: str, seen: Seen) -> None:
    """Keep a run under `key`."""
    store.remember(key, (), json.dumps(asdict(seen)))
