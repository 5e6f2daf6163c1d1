"""The bundle: one file, the same bytes each time, doing what the command does with less."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import patchkit
from patchkit.engine.model import File
from patchkit.target.bundle import LIMIT, PACKED, make_bundle, unfit
from patchkit.target.installed import apply_pins
from tests.unit.target.installing import BASE, Series, Site, numbered, two_patches
from tests.unit.target.pythons import interpreter, needed

ROOT = Path(patchkit.__file__).parent
PYTHON = interpreter("3.10") or sys.executable


def series() -> Series:
    """Of the default stack the lines of the second patch count, and its content does not."""
    return (
        two_patches()
        .add("fast.patch", {"engine/b.py": numbered(40, l5="fast\nfaster")}, "fast")
        .add("last.patch", {"engine/b.py": numbered(40, l5="fast\nfaster", l35="last")})
        .add("docs.patch", {"docs/x.md": b"x\n", "engine/data/table.json": b'{"a": 1}\n'})
    )


class Bundle:
    """A bundle on disk, and how it is run in an image: no git, no home, no PATH."""

    def __init__(self, at: Path, made: Series, stack: str | None = "default") -> None:
        self.packet = made.packet(stack, {"fast": ["fast"]})
        self.at = at / "engine-patch.pyz"
        self.at.write_bytes(make_bundle([self.packet]))

    def run(self, *args: str, python: str = PYTHON) -> subprocess.CompletedProcess[str]:
        env = {"PATH": "/nonexistent", "HOME": "/nonexistent", "LC_ALL": "C"}
        run = subprocess.run(
            [python, str(self.at), *args],
            env=env,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in run.stderr + run.stdout
        return run


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site-packages")
    made.install()
    return made


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle(tmp_path, series())


@pytest.mark.parametrize("stack", ["default", "fast", None])
def test_it_does_what_the_command_does_byte_for_byte(
    tmp_path: Path, site: Site, stack: str | None
) -> None:
    needed("3.10")
    bundle = Bundle(tmp_path, series(), stack)
    twin = Site(tmp_path / "twin")
    twin.install()
    before = site.look()
    assert apply_pins(twin.sites, [bundle.packet]).written
    run = bundle.run("apply", "--site", str(site.at))
    assert run.returncode == 0, run.stderr
    assert "docs/x.md" in run.stderr, "what is left out is named"
    assert site.look() == twin.look()
    after = site.look()
    again = bundle.run("apply", "--site", str(site.at))
    assert (again.returncode, site.look()) == (0, after)
    assert "nothing written" in again.stdout
    back = bundle.run("revert", "--site", str(site.at))
    assert back.returncode == 0, back.stderr
    assert site.look() == before


def test_check_says_what_is_there(bundle: Bundle, site: Site) -> None:
    at = ("--site", str(site.at))
    pristine = bundle.run("check", *at)
    assert (pristine.returncode, "partly-applied" in pristine.stderr) == (1, True)
    assert "engine-patch.pyz apply" in pristine.stderr, "the next command is the bundle's own"
    looked = bundle.run("apply", "--check", *at).stdout
    assert ("would apply" in looked, "  applied" in looked) == (True, False)
    assert "  applied" in bundle.run("apply", *at).stdout
    fine = bundle.run("check", *at)
    assert fine.returncode == 0, fine.stderr
    assert "stack default of v1.0" in fine.stdout
    with open(site.at / "engine/a.py", "ab") as file:
        file.write(b"edited\n")
    edited = bundle.run("check", *at)
    assert edited.returncode == 1
    assert "foreign-edit" in edited.stderr
    assert "engine/a.py" in edited.stderr


def test_a_package_patched_in_part_is_refused_with_what_it_lacks(
    bundle: Bundle, site: Site
) -> None:
    part = series().packet("default", {"fast": ["fast"]}, exclude=("engine/sub/*",))
    apply_pins(site.sites, [part])
    run = bundle.run("check", "--site", str(site.at))
    assert run.returncode == 1
    assert "without engine/sub/c.py (edit.patch)" in run.stderr
    rows = (line.strip().partition(":") for line in run.stderr.splitlines())
    said = {name: text.strip() for name, _, text in rows}
    assert said["expected"] != said["found"]
    assert "compared with this bundle: stack default of v1.0" in run.stdout
    again = bundle.run("apply", "--site", str(site.at))
    assert again.returncode == 0, again.stderr
    assert bundle.run("check", "--site", str(site.at)).returncode == 0


def test_a_bundle_never_guesses_at_a_lost_record(bundle: Bundle, site: Site) -> None:
    apply_pins(site.sites, [series().packet("fast", {"fast": ["fast"]})])
    (site.at / "engine-1.0.dist-info/patchkit.json").unlink()
    before = site.look()
    for verb in ("check", "apply", "revert"):
        run = bundle.run(verb, "--site", str(site.at))
        assert run.returncode == 1, run.stdout
        assert "--force-reinstall --no-deps engine==1.0" in run.stderr
    assert site.look() == before


def test_a_cache_hint_counts_the_files(tmp_path: Path, site: Site) -> None:
    base = {**BASE, "vllm/a.py": b"import triton\n@triton.jit\n", "vllm/b.py": b"@triton.jit\n"}
    made = Series(base).add("v.patch", {"vllm/a.py": b"@triton.jit\n", "vllm/b.py": b"x\n"})
    site.install(base, "vllm", "1.0")
    bundle = Bundle(tmp_path, Series())
    packet = made.packet(dist="vllm")
    bundle.at.write_bytes(make_bundle([packet]))
    run = bundle.run("apply", "--site", str(site.at))
    assert "Triton's kernel cache may hold old code of vllm/a.py and 1 more; clear" in run.stdout


def test_a_dry_run_writes_nothing(bundle: Bundle, site: Site) -> None:
    before = site.look()
    run = bundle.run("apply", "--check", "--site", str(site.at))
    assert run.returncode == 0
    assert site.look() == before


def test_without_site_it_is_the_python_that_runs_it(bundle: Bundle, tmp_path: Path) -> None:
    python = needed("3.10")
    subprocess.run([python, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    own = Site(tmp_path / "env/lib/python3.10/site-packages")
    own.install()
    run = bundle.run("apply", python=str(tmp_path / "env/bin/python"))
    assert run.returncode == 0, run.stderr
    assert (own.at / "engine/new/module.py").is_file()


def test_two_packages_in_one_bundle(tmp_path: Path, site: Site) -> None:
    site.install({"other/x.py": numbered(9)}, "other", "2.0")
    before = site.look()
    other = Series({"other/x.py": numbered(9)}).add("o.patch", {"other/x.py": numbered(9, l2="!")})
    bundle = Bundle(tmp_path, series())
    second = other.packet(dist="other", version="2.0")
    bundle.at.write_bytes(make_bundle([bundle.packet, second]))
    run = bundle.run("apply", "--site", str(site.at))
    assert run.returncode == 0, run.stderr
    assert (site.at / "other/x.py").read_bytes() == numbered(9, l2="!")
    assert bundle.run("check", "--site", str(site.at)).returncode == 0
    assert bundle.run("revert", "--site", str(site.at)).returncode == 0
    assert site.look() == before


def test_the_same_bytes_each_time_and_the_size(tmp_path: Path) -> None:
    made = Series()
    text = numbered(60)
    for number in range(20):
        text = text.replace(b"line %d\n" % (number * 2 + 1), b"changed %d\n" % number)
        made.add(f"p{number}.patch", {"engine/a.py": text, f"engine/n{number}.py": text * 2})
    one = make_bundle([made.packet()])
    program = (
        f"import sys; sys.path[:0] = [{str(Path(__file__).resolve().parents[3])!r}]\n"
        "import os, pickle\n"
        "from patchkit.target.bundle import make_bundle\n"
        "os.umask(0o77)\n"
        "sys.stdout.buffer.write(make_bundle([pickle.load(sys.stdin.buffer)]))\n"
    )
    import pickle

    env = {**os.environ, "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(made.packet()),
        capture_output=True,
        cwd=tmp_path,
        env=env,
        check=True,
    )
    assert run.stdout == one
    assert len(one) < LIMIT


def test_left_out_patches_are_packed_as_lines_only(bundle: Bundle) -> None:
    with zipfile.ZipFile(bundle.at) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert "patches/v1.0/edit.patch" in names
        assert archive.read("patches/v1.0/.left-out/fast.patch").startswith(b"diff --git")
        assert {i.compress_type for i in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {i.date_time for i in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("path", ["csrc/x.cu", "setup.py", "engine/new.cu"])
def test_native_sources_make_no_bundle(path: str) -> None:
    made = series().add("k.patch", {path: b"x\n", "engine/sub/c.py": b"other\n"})
    assert [f.name for f in unfit([made.packet()])] == ["needs-build"]
    assert unfit([series().packet()]) == []


def test_a_source_that_the_package_ships_makes_a_bundle() -> None:
    base = {**BASE, "engine/data/jit.cu": b"old\n"}
    made = Series(base).add("jit.patch", {"engine/data/jit.cu": File(b"new\n")})
    assert unfit([made.packet()]) == []


def test_a_damaged_bundle_says_so(bundle: Bundle, site: Site) -> None:
    data = bundle.at.read_bytes()
    bundle.at.write_bytes(data.replace(b"+line 3\n", b"+line 4\n").replace(b"+three", b"+thr33"))
    before = site.look()
    run = bundle.run("apply", "--site", str(site.at))
    assert run.returncode in (1, 3)
    assert site.look() == before


def test_an_older_python_is_told(bundle: Bundle) -> None:
    run = bundle.run("check", python=needed("3.9"))
    assert run.returncode == 3, "the surroundings, not drift"
    assert "3.10 or newer is needed, this is 3.9\n" in run.stderr
    assert "next:" in run.stderr


def test_what_it_says_next_is_an_option_that_it_has(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for site in ("empty", "nowhere"):
        for verb in ("apply", "check", "revert"):
            run = bundle.run(verb, "--site", str(tmp_path / site))
            assert run.returncode in (1, 2), run.stdout
            assert "--python" not in run.stderr
            assert "with the interpreter that has the package" in run.stderr


def test_a_wrong_command_line(bundle: Bundle) -> None:
    assert bundle.run().returncode == 2
    assert bundle.run("patch").returncode == 2
    assert bundle.run("check", "--site", "/nowhere").returncode == 2


def test_everything_that_is_imported_is_packed() -> None:
    packed = {path.relative_to(ROOT) for pattern in PACKED for path in ROOT.glob(pattern)}
    # Loose patches are no bundle's business: what only they need is imported by that function.
    loose = {"target/installed_loose.py", "target/installed_owner.py"}
    missing = set()
    for path in packed:
        if path.name == "__init__.py":
            continue  # packed empty
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name and name.startswith("patchkit."):
                    inner = Path(*name.split(".")[1:]).with_suffix(".py")
                    if inner not in packed and not (ROOT / inner).with_suffix("").is_dir():
                        missing.add(str(inner))
    assert missing == loose


def test_every_packed_module_is_there() -> None:
    for pattern in PACKED:
        assert list(ROOT.glob(pattern)), pattern
