"""The lock: reads back as written, one path a line, and takes no broken or hostile document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.errors import Refused
from patchkit.series.lockfile import Blob, Chain, Lock, LockedPin, Step, chain_of
from patchkit.series.lockjson import dumps, loads

SHA = "5" * 64


def blob(char: str, mode: int = 0o100644) -> Blob:
    return Blob(mode, char * 40)


def tree(char: str) -> str:
    return char * 40


A0, A1, A2, B1, C0, C2 = (blob(c) for c in "abcdef")


def example() -> Lock:
    base = {"pkg/a.py": A0, "pkg/new.py": None, "pkg/old.py": C0}
    steps = [
        {"pkg/a.py": A1, "pkg/new.py": B1},
        {"pkg/a.py": A2},
        {"pkg/old.py": None, "pkg/a.py": A2},
    ]
    names = ["one.patch", "sub/two.patch", "three.patch"]
    whole = chain_of(names, {"sdist": [tree(c) for c in "1234"]}, base, steps)
    default = chain_of(
        ["one.patch", "three.patch"],
        {"sdist": [tree(c) for c in "156"]},
        base,
        [steps[0], {"pkg/old.py": None}],
    )
    pin = LockedPin("v1", "mine", "9" * 40, "", {"mine-1.tar.gz": SHA})
    patches = tuple((name, SHA) for name in names)
    return Lock(pin, SHA, patches, {"proofs/test_one.py": SHA}, whole, {"default": default})


def test_reads_back_as_written_and_writes_the_same_bytes() -> None:
    lock = example()
    assert loads(dumps(lock)) == lock
    assert dumps(loads(dumps(lock))) == dumps(lock)


def test_one_path_one_patch_and_one_tree_a_line_with_sorted_keys() -> None:
    text = dumps(example()).decode("ascii")
    lines = [line.strip().rstrip(",") for line in text.split("\n")]
    assert lines.count('["one.patch", "' + SHA + '"]') == 1
    states = [["", str(C0)], ["three.patch", None]]
    assert lines.count('"pkg/old.py": ' + json.dumps(states)) == 2
    assert '["sub/two.patch", "' + tree("3") + '"]' in lines
    assert text.index('"pkg/a.py"') < text.index('"pkg/new.py"') < text.index('"pkg/old.py"')
    assert text.endswith("}\n")
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_a_chain_leaves_out_untouched_paths_and_steps_without_effect() -> None:
    chain = chain_of(["p", "q"], {}, {"x": A0, "y": A0}, [{"x": A0, "y": A1}, {"y": A1}])
    assert dict(chain.paths) == {"y": (Step("", A0), Step("p", A1))}


def test_a_chain_answers_for_base_any_patch_and_the_end() -> None:
    chain = example().series
    assert chain.before("pkg/new.py") is None
    assert [chain.after("pkg/a.py", k) for k in range(4)] == [A0, A1, A2, A2]
    assert chain.after("pkg/old.py") is None
    assert (chain.base_tree("sdist"), chain.patched_tree("sdist")) == (tree("1"), tree("4"))
    assert chain.patched_tree("sdist", 2) == tree("3")


def test_chain_of_refuses_what_does_not_fit() -> None:
    for arguments in (
        (["p"], {}, {}, []),
        (["p"], {"s": [tree("1")]}, {}, [{}]),
        (["p"], {}, {}, [{"x": A0}]),
    ):
        with pytest.raises(ValueError):
            chain_of(*arguments)  # type: ignore[arg-type]


def test_paths_that_are_not_utf8_read_back() -> None:
    path = b"pkg/\xff.py".decode("utf-8", "surrogateescape")
    chain = chain_of(["p"], {}, {path: None}, [{path: A0}])
    lock = Lock(LockedPin("v1", "mine"), SHA, (("p", SHA),), {}, chain, {})
    assert loads(dumps(lock)) == lock


def edited(*keys: str | int, to: Any) -> bytes:
    document = json.loads(dumps(example()))
    at = document
    for key in keys[:-1]:
        at = at[key]
    if to is ...:
        del at[keys[-1]]
    else:
        at[keys[-1]] = to
    return json.dumps(document).encode()


ROWS = json.loads(dumps(example()))["series"]["paths"]["pkg/a.py"]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "line 1"),
        (b"[]", "object"),
        (b"{}", "missing"),
        (b"[" * 200_000, ""),
        (b'{"format": 1, "format": 1}', "twice"),
        (b'{"x": ' + b"9" * 5000 + b"}", ""),
        (b"\xff", "ASCII"),
        (b"<<<<<<< ours\n{}", "merge conflict"),
        (edited("format", to=2), "format 1"),
        (edited("format", to=True), "format 1"),
        (edited("extra", to=1), "extra"),
        (edited("entries", to="x"), "sha256"),
        (edited("entries", to=...), "entries"),
        (edited("patches", 0, to=["one.patch"]), "pairs"),
        (edited("patches", 0, to=["../one.patch", SHA]), "may not be used"),
        (edited("patches", 0, to=["three.patch", SHA]), "twice"),
        (edited("patches", 0, 1, to="q"), "sha256"),
        (edited("pin", "commit", to="q"), "commit id"),
        (edited("pin", "name", to="../x"), "a name"),
        (edited("pin", to=...), "pin"),
        (edited("proofs", "proofs/test_one.py", to=1), "sha256"),
        (edited("proofs", "/etc/passwd", to=SHA), "may not be used"),
        (edited("series", "patches", to=["one.patch"]), "series"),
        (edited("stacks", "default", "patches", to=["three.patch", "one.patch"]), "order"),
        (edited("stacks", "default", "trees", "sdist", to=[["", tree("1")]]), "tree id"),
        (edited("series", "trees", "sdist", 0, 1, to="zz"), "tree id"),
        (edited("series", "paths", "../x", to=[["", None], ["one.patch", str(A0)]]), "../x"),
        (edited("series", "paths", "x", to=[["", None]]), "base"),
        (edited("series", "paths", "x", to=[["one.patch", None], ["", None]]), "base"),
        (edited("series", "paths", "x", to=[["", None], ["no.patch", str(A0)]]), "order"),
        (edited("series", "paths", "x", to=[["", None], ["one.patch", None]]), "nothing"),
        (edited("series", "paths", "x", to=[["", None], ["one.patch", "100600 " + "a" * 40]]), "m"),
        (edited("series", "paths", "x", to={}), "base"),
        # as in the whole series, of which this stack leaves a patch out
        (edited("stacks", "default", "paths", "pkg/a.py", to=ROWS), "order"),
    ],
)
def test_a_document_that_is_no_lock_is_refused(data: bytes, word: str) -> None:
    with pytest.raises(Refused) as caught:
        loads(data)
    (finding,) = caught.value.findings
    assert finding.name == "bad-lock"
    assert word in finding.message
    assert finding.next == "patchkit lock"


KEYS = ["format", "pin", "series", "stacks", "patches", "paths", "trees", "a"]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(KEYS), x),
    max_leaves=12,
)


@given(ANY)
def test_any_json_is_a_lock_or_a_bad_lock(document: Any) -> None:
    with pytest.raises(Refused):
        loads(json.dumps(document).encode())


def test_the_empty_chain_is_a_lock_too() -> None:
    lock = Lock(LockedPin("v1", "mine"), SHA, (), {}, Chain((), {"sdist": (tree("1"),)}, {}), {})
    assert loads(dumps(lock)) == lock
