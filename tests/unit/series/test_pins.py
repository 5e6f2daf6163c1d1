"""pins.toml: what is read, and that every fault is refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.errors import Refused, UsageFault
from patchkit.series.pins import Pin, Stack, Upstream, load_pins
from patchkit.series.pins_edit import add_pin, add_stack, add_upstream, complete_pin, set_files

COMMIT = "ced6857afa0ea7b2e3f0846a62e1394e90f15607"
LATER = "5df63a720" + "0" * 31
ZERO, ONE = "0" * 64, "1" * 64
TEXT = f"""# our pins
[upstreams.vllm]
kind = "vllm"   # the project
git  = "https://github.com/vllm-project/vllm.git"
pypi = "vllm"

[upstreams.mine]
kind = "plain"
package = "engine"
root = "src"

# the oldest
[pins."v0.30.0"]
upstream = "vllm"
commit   = "{COMMIT}"
[pins."v0.30.0".files]
"vllm-0.30.0.tar.gz" = "sha256:{ZERO}"

# the newest
[pins."v0.32.0"]
upstream = "vllm"
commit-prefix = "5df63a720"  # all that is known

[stacks.default]
[stacks.3x4090-nvfp4]
guards = ["tp3", "fp8"]
""".encode()


def test_reads_upstreams_pins_and_stacks() -> None:
    pins = load_pins(TEXT)
    assert pins.upstreams["mine"] == Upstream("mine", "plain", package="engine", root="src")
    assert pins.upstreams["vllm"].pypi == "vllm"
    pin = pins.pin("v0.30.0")
    assert pin == Pin("v0.30.0", "vllm", COMMIT, "", {"vllm-0.30.0.tar.gz": ZERO})
    assert pin.complete
    assert not pins.pin("v0.32.0").complete
    assert pins.upstream_of(pin).name == "vllm"
    assert pins.stack("3x4090-nvfp4").guards == ("tp3", "fp8")


@pytest.mark.parametrize("source", ["sdist", "git", "../mine", "upstream/{pin}", "src"])
def test_an_upstream_may_say_where_its_bases_come_from(source: str) -> None:
    pins = load_pins(f'[upstreams.mine]\nkind = "plain"\nsource = "{source}"\n'.encode())
    assert pins.upstreams["mine"].source == source
    again = load_pins(add_upstream(b"", pins.upstreams["mine"]))
    assert again.upstreams["mine"].source == source


@pytest.mark.parametrize("source", ["/home/me/src", "~/src", "-x", "a\\nb", ""])
def test_a_source_that_only_one_machine_has_is_refused(source: str) -> None:
    with pytest.raises(Refused) as refusal:
        load_pins(f'[upstreams.mine]\nkind = "plain"\nsource = "{source}"\n'.encode())
    assert refusal.value.findings[0].where.line == 3


def test_a_tag_of_another_projects_source_is_fixed_to_a_commit() -> None:
    address, row = "https://x.invalid/deep.git", '"{} v3.13" = "{}"'
    head = TEXT + b'[pins."v0.30.0".sources]\n'
    pins = load_pins(head + row.format(address, COMMIT).encode())
    assert pins.pin("v0.30.0").sources == {(address, "v3.13"): COMMIT}
    edited = load_pins(complete_pin(head + row.format(address, COMMIT).encode(), "v0.32.0", LATER))
    assert edited.pin("v0.30.0").sources == {(address, "v3.13"): COMMIT}
    for bad in ("ext::sh", "--upload-pack=x", ""):
        with pytest.raises(Refused, match="is not a git address, a blank and a tag"):
            load_pins(head + row.format(bad, COMMIT).encode())
    with pytest.raises(Refused, match="40 hex digits"):
        load_pins(head + row.format(address, "v3.13").encode())


def test_default_is_always_a_stack() -> None:
    assert load_pins(b"").stack("default") == Stack("default")


def test_a_prefix_and_a_commit_agree_as_far_as_they_go() -> None:
    pin = load_pins(TEXT).pin("v0.32.0")
    assert pin.is_of("5df63a7")
    assert pin.is_of("5df63a720" + "0" * 31)
    assert not pin.is_of("5df63a721" + "0" * 31)
    assert not Pin("p", "u").is_of(COMMIT)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageFault, match=r"v0\.30\.0"):
        load_pins(TEXT).pin("v0.30")
    with pytest.raises(UsageFault, match="3x4090-nvfp4"):
        load_pins(TEXT).stack("4090-nvfp4")


@pytest.mark.parametrize(
    ("old", "new", "line", "word"),
    [
        ('kind = "vllm"', 'kind = "vllm', 3, ""),
        ('kind = "vllm"', "kind = 3", 3, "kind"),
        ('kind = "plain"', 'knd = "plain"', 8, "kind"),
        ('package = "engine"', 'package = "a b"', 9, "package"),
        ('root = "src"', 'root = "../src"', 10, "root"),
        ("[stacks.default]", "[stacks.default]\nguard = []", 25, "guards"),
        ("[stacks.default]", '[stacks.default]\nguards = ["a"]', 25, "without a guard"),
        ('["tp3", "fp8"]', '["tp3", "tp3"]', 26, "twice"),
        ('["tp3", "fp8"]', '["tp3", 8]', 26, "guard names"),
        ('["tp3", "fp8"]', '["-tp3"]', 26, "guard names"),
        (COMMIT, COMMIT[:39], 15, "40 hex"),
        (COMMIT, COMMIT.upper(), 15, "40 hex"),
        (f"sha256:{ZERO}", f"sha1:{ZERO[:40]}", 17, "sha256"),
        ('"vllm-0.30.0.tar.gz"', '"../vllm.tar.gz"', 17, "plain name"),
        ("commit-prefix =", f'commit = "{COMMIT}"\ncommit-prefix =', 23, "commit"),
        ('"5df63a720"', '"5df6"', 22, "7 to 39"),
        ('[pins."v0.32.0"]\nupstream = "vllm"', '[pins."v0.32.0"]', 20, "upstream"),
        ('[pins."v0.32.0"]\nupstream = "vllm"', '[pins."v0.32.0"]\nupstream = "vlm"', 21, "vllm"),
        ('[pins."v0.32.0"]', '[pins."../x"]', 20, "cannot be a name"),
        ('[pins."v0.32.0"]', '[pins."a..b"]', 20, "cannot be a name"),
        ("[stacks.default]", "[pin.x]", 24, "pins"),
    ],
)
def test_every_fault_has_its_line(old: str, new: str, line: int, word: str) -> None:
    text = TEXT.decode().replace(old, new, 1)
    assert text != TEXT.decode()
    with pytest.raises(Refused) as caught:
        load_pins(text.encode())
    found = [(f.name, f.where.line, f.message + f.next) for f in caught.value.findings]
    assert any(n == "bad-pins" and at == line and word in m for n, at, m in found), found


@pytest.mark.parametrize(
    "address",
    [
        "--upload-pack=touch /tmp/x",
        "ext::sh -c touch% /tmp/x",
        "fd::17",
        "https://a b",
        "ssh://-oProxyCommand=x/y",
        "",
    ],
)
def test_an_address_that_git_could_run_is_refused(address: str) -> None:
    text = f'[upstreams.x]\nkind = "plain"\ngit = "{address}"\n'
    with pytest.raises(Refused, match="git"):
        load_pins(text.encode())


@pytest.mark.parametrize(
    "address", ["https://a.b/c.git", "git@host.example:a/b.git", "/srv/x", "../x", "file:///srv/x"]
)
def test_ordinary_addresses_are_taken(address: str) -> None:
    text = f'[upstreams.x]\nkind = "plain"\ngit = "{address}"\n'
    assert load_pins(text.encode()).upstreams["x"].git == address


def test_all_faults_come_in_one_run() -> None:
    with pytest.raises(Refused) as caught:
        load_pins(b'[upstreams.a]\nkind = 1\n[pins.p]\nupstream = "b"\nx = 1\n')
    assert len(caught.value.findings) == 3


@pytest.mark.parametrize(
    "data",
    [
        b"a = " + b"[" * 100_000,
        b"[upstreams." + b"a." * 50_000 + b"a]",
        b"".join(b"k%d = 1\n" % n for n in range(20_000)),
        b"x = " + b"9" * 5000,
        b"\xff",
        b"a = 1\na = 2\n",
        b"#\n" * (1 << 18),
        b"[upstreams]\nx = 1\n",
        b"upstreams = 1\n",
    ],
)
def test_hostile_documents_are_refused(data: bytes) -> None:
    with pytest.raises(Refused) as caught:
        load_pins(data)
    assert {f.name for f in caught.value.findings} == {"bad-pins"}


@given(st.text(max_size=200))
def test_no_text_does_anything_but_load_or_refuse(text: str) -> None:
    try:
        load_pins(text.encode("utf-8", "surrogatepass"))
    except Refused as refusal:
        names = {f.name for f in refusal.findings}
    else:
        names = {"bad-pins"}
    assert names == {"bad-pins"}


def test_completing_a_pin_changes_one_line_and_keeps_its_comment() -> None:
    full = "5df63a720" + "0" * 31
    data = complete_pin(TEXT, "v0.32.0", full)
    old = 'commit-prefix = "5df63a720"  # all that is known'
    new = f'commit = "{full}"  # all that is known'
    assert data == TEXT.replace(old.encode(), new.encode())
    assert complete_pin(data, "v0.32.0", full) == data


def test_completing_with_a_commit_of_another_release_is_pin_mismatch() -> None:
    for pin in ("v0.32.0", "v0.30.0"):
        with pytest.raises(Refused) as caught:
            complete_pin(TEXT, pin, "a" * 40)
        assert caught.value.findings[0].name == "pin-mismatch"


def test_a_new_pin_stands_behind_the_others_and_all_else_stays() -> None:
    pin = Pin("v0.33.0", "vllm", "", "4ba787ec9", {"b.whl": ONE})
    data = add_pin(TEXT, pin)
    assert load_pins(data).pin("v0.33.0") == pin
    kept = data.decode().split("\n")
    for line in TEXT.decode().split("\n"):
        kept.remove(line)
    assert [line for line in kept if line] == [
        '[pins."v0.33.0"]',
        'upstream = "vllm"',
        'commit-prefix = "4ba787ec9"',
        '[pins."v0.33.0".files]',
        f'"b.whl" = "sha256:{ONE}"',
    ]
    assert data.index(b"v0.33.0") < data.index(b"[stacks.default]")


def test_digests_are_added_in_place_and_never_changed() -> None:
    data = set_files(TEXT, "v0.30.0", {"a.whl": ONE, "vllm-0.30.0.tar.gz": ZERO})
    assert load_pins(data).pin("v0.30.0").files["a.whl"] == ONE
    assert load_pins(set_files(TEXT, "v0.32.0", {"a.whl": ONE})).pin("v0.32.0").files
    with pytest.raises(Refused) as caught:
        set_files(TEXT, "v0.30.0", {"vllm-0.30.0.tar.gz": ONE})
    assert caught.value.findings[0].name == "pin-mismatch"


def test_a_file_can_be_built_from_nothing() -> None:
    data = add_upstream(b"", Upstream("mine", "plain", package="engine"))
    data = add_pin(data, Pin("v1", "mine"))
    data = add_stack(data, Stack("big", ("g",)))
    pins = load_pins(data)
    assert (list(pins.pins), list(pins.stacks)) == (["v1"], ["big", "default"])


def test_names_that_are_taken_are_refused() -> None:
    for edit in (
        lambda: add_pin(TEXT, Pin("v0.30.0", "vllm")),
        lambda: add_upstream(TEXT, Upstream("vllm", "vllm")),
        lambda: add_stack(TEXT, Stack("3x4090-nvfp4")),
    ):
        with pytest.raises(Refused, match="already has"):
            edit()


def test_a_layout_that_is_not_known_is_refused_with_the_text_to_add() -> None:
    inline = f'upstreams.v.kind = "vllm"\npins = {{ p = {{ upstream = "v" }} }}\n# {COMMIT}\n'
    with pytest.raises(Refused) as caught:
        add_pin(inline.encode(), Pin("q", "v"))
    assert "[pins.q]" in caught.value.findings[0].details
