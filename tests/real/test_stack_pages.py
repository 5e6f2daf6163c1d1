"""Every flag and variable that a page of docs/stacks names exists in the pinned source.

vLLM drops and ignores flags and variables between releases, and says nothing. A page is checked
against the patched tree of its own stack, for each pin that it applies.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from patchkit.derive.base import open_bases
from patchkit.derive.derive import derive, trees_of
from patchkit.derive.project import find
from patchkit.derive.selection import Selection
from patchkit.prove import environment
from patchkit.prove.run import Where, environment_of
from patchkit.prove.trees import Trees
from patchkit.upstreams import known, proving

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "stacks").glob("*.md"))
PARSERS = ("vllm/engine/arg_utils.py", "vllm/entrypoints/launchers/cli_args.py")

pytestmark = pytest.mark.real


@dataclass(frozen=True)
class Page:
    """A page: its stack, and the text of its shell blocks and of everything else."""

    stack: str
    text: str

    @property
    def pins(self) -> list[str]:
        """The pins that its commands apply."""
        return sorted(set(re.findall(r"patchkit apply --pin (\S+)", self.text)))

    def variables(self) -> set[str]:
        """vLLM's variables, wherever they are named."""
        return set(re.findall(r"\bVLLM_[A-Z0-9_]*[A-Z0-9]\b", self.text))

    def flags(self) -> set[str]:
        """Flags in prose: code spans that begin with one."""
        return set(re.findall(r"`(--[a-z][a-z-]*)", self.text))

    def commands(self) -> list[list[str]]:
        """The arguments of each `vllm serve` of its sh blocks, as a shell gives them."""
        script = "\n".join(re.findall(r"```sh\n(.*?)```", self.text, re.S))
        say = "vllm() { python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))' \"$@\"; }\n"
        done = subprocess.run(
            ["bash", "-euc", say + script], capture_output=True, text=True, check=True
        )
        return [json.loads(line) for line in done.stdout.splitlines()]


def page(path: Path) -> Page:
    return Page(path.stem, path.read_text("utf-8"))


CASES = [(path.stem, pin) for path in PAGES for pin in page(path).pins]


@cache
def tree(pin: str, stack: str) -> str:
    """A folder with the package of the stack's patched tree."""
    project = find(ROOT)
    chosen = project.pins.pin(pin)
    with open_bases(project) as bases:
        base = bases.get(chosen, None)
        selection = Selection(project.stack(stack))
        derived = derive(project.series(pin), base.tree(bases.store), selection)
        assert derived.ok, derived.findings
        trees = Trees(bases.store, base, known(project.pins.upstream_of(chosen)))
        return trees.folder(trees_of(bases.store, derived, base.tree_id)[-1])


def registered(folder: str) -> tuple[set[str], set[str]]:
    """The flags that the parsers of a tree register, and the variables that its envs.py does."""
    flags: set[str] = set()
    for path in PARSERS:
        parsed = ast.parse(Path(folder, path).read_text("utf-8"))
        for node in ast.walk(parsed):
            if isinstance(node, ast.Constant) and str(node.value).startswith("--"):
                flags.add(str(node.value))
        flags.update(_fields(parsed))
    parsed = ast.parse(Path(folder, "vllm/envs.py").read_text("utf-8"))
    variables = {
        str(key.value)
        for node in ast.walk(parsed)
        if isinstance(node, ast.AnnAssign | ast.Assign)
        and isinstance(node.value, ast.Dict)
        and "environment_variables" in ast.unparse(node)[:60]
        for key in node.value.keys
        if isinstance(key, ast.Constant)
    }
    return flags, variables


def _fields(parsed: ast.Module) -> Iterator[str]:
    """Flags that are made of the fields of the front end's arguments."""
    for node in parsed.body:
        if isinstance(node, ast.ClassDef) and node.name.endswith("FrontendArgs"):
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    yield "--" + each.target.id.replace("_", "-")


def test_every_page_is_of_a_stack_and_applies_a_pin() -> None:
    stacks = set(find(ROOT).pins.stacks)
    assert {path.stem for path in PAGES} == stacks
    assert {stack for stack, _ in CASES} == stacks


@pytest.mark.parametrize(("stack", "pin"), CASES)
def test_flags_and_variables_are_registered(stack: str, pin: str) -> None:
    it = page(ROOT / "docs" / "stacks" / f"{stack}.md")
    flags, variables = registered(tree(pin, stack))
    assert len(flags) > 150
    assert len(variables) > 150
    assert it.variables() - variables == set()
    used = {arg for line in it.commands() for arg in line if arg.startswith("--")}
    assert (it.flags() | used) - flags == set()


def test_a_dropped_flag_or_variable_would_be_seen() -> None:
    flags, variables = registered(tree("v0.30.0", "default"))
    assert "--no-such-flag" not in flags
    assert "VLLM_NO_SUCH" not in variables
    assert "VLLM_QWEN4_EXP_TP_PAD" not in variables  # a switch of another stack
    assert "VLLM_QWEN4_EXP_TP_PAD" in registered(tree("v0.30.0", "3x4090-nvfp4"))[1]


PARSE = """
import json, sys
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
for line in json.load(open(sys.argv[1])):
    verb, model, *rest = line
    assert verb == "serve", line
    parsed = parser.parse_args(["--model", sys.argv[2], *rest])  # a folder that is there
    AsyncEngineArgs.from_cli_args(parsed)
    print(parsed.max_model_len)
"""


@pytest.mark.slow  # makes the environment of proofs, with torch, where there is none yet
@pytest.mark.parametrize(("stack", "pin"), CASES)
def test_the_engines_own_parser_takes_the_commands(stack: str, pin: str, tmp_path: Path) -> None:
    commands = page(ROOT / "docs" / "stacks" / f"{stack}.md").commands()
    assert commands
    project = find(ROOT)
    known_ = known(project.pins.upstream_of(project.pins.pin(pin)))
    with open_bases(project) as bases:
        made = environment.ready(bases.store.root)
    (tmp_path / "lines.json").write_text(json.dumps(commands))
    where = Where(made.python, tree(pin, stack), str(tmp_path / "pyc"))
    env = {
        **environment_of(where, str(tmp_path)),
        **proving(known_).environment,
        "PYTHONPATH": where.tree,
    }
    script = proving(known_).prelude + PARSE
    line = [made.python, "-c", script, str(tmp_path / "lines.json"), str(tmp_path)]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    expected = [a[a.index("--max-model-len") + 1] for a in commands]
    assert done.stdout.split()[-len(expected) :] == expected
