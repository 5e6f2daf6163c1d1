"""Stands in front of sed while `import --run` runs a script: runs the real one, and writes down
every call with -i that changed none of its files, and every `s` command of a call that matched
nothing in any of them. Runs without patchkit."""

import hashlib
import json
import os
import re
import subprocess
import sys

_PLAIN = re.compile(r"-[zuErs]+|--(?:regexp-extended|posix|null-data|separate)")
_FLAGS = re.compile(r"[0-9gIiMm]*")


def digests(paths: list[str]) -> list[bytes]:
    found = []
    for path in paths:
        with open(path, "rb") as stream:
            found.append(hashlib.sha256(stream.read()).digest())
    return found


def parts(script: str) -> list[str]:
    """The `s` commands of a script that holds nothing else; none where it does."""
    out = []
    rest = script.strip().strip(";").strip()
    while rest:
        if rest[0] != "s" or len(rest) < 4 or rest[1].isalnum() or rest[1] in " \\\n":
            return []
        at, ends = 2, 0
        while at < len(rest) and ends < 2:
            if rest[at] == "\\":
                at += 1
            elif rest[at] == rest[1]:
                ends += 1
            at += 1
        flags = _FLAGS.match(rest, at)
        if ends < 2 or flags is None:
            return []
        out.append(rest[: flags.end()])
        rest = rest[flags.end() :].lstrip(" \t")
        if rest and rest[0] not in ";\n":
            return []
        rest = rest.lstrip("; \t\n")
    return out


def asked(args: list[str], files: list[str]) -> tuple[list[str], list[str]]:
    """The plain options and the `s` commands of a call; no commands where it has others."""
    options, commands = [], []
    left = [arg for arg in args if arg not in files]
    while left:
        word = left.pop(0)
        if word in ("-e", "--expression") and left:
            script = left.pop(0)
        elif word.startswith("--expression="):
            script = word.partition("=")[2]
        elif re.match(r"--in-place|-[Ers]*i", word):
            options += ["-E"] if re.match(r"-[s]*[Er]", word) else []
            continue
        elif _PLAIN.fullmatch(word):
            options.append(word)
            continue
        elif word.startswith("-"):
            return [], []
        else:
            script = word
        found = parts(script)
        if not found:
            return [], []
        commands += found
    return options, commands


def idle(options: list[str], commands: list[str], texts: list[bytes]) -> list[str]:
    """The commands that match nothing in any of the texts, each after the ones before it."""
    out = []
    for command in commands:
        line = [os.environ["PATCHKIT_SED"], *options, "-e", command]
        done = [subprocess.run(line, input=text, capture_output=True) for text in texts]
        if any(each.returncode for each in done):
            return []
        after = [each.stdout for each in done]
        if after == texts:
            out.append(command)
        texts = after
    return out


def main() -> int:
    args = sys.argv[1:]
    files = [arg for arg in args if os.path.isfile(arg)]
    places = any(re.match(r"-[A-Za-z]*i|--in-place", arg) for arg in args)
    before = digests(files) if places else []
    options, commands = asked(args, files) if places else ([], [])
    texts = []
    for path in files if len(commands) > 1 else []:
        with open(path, "rb") as stream:
            texts.append(stream.read())
    status = subprocess.call([os.environ["PATCHKIT_SED"], *args])
    if not places or status != 0:
        return status
    rows = []
    if digests([f for f in files if os.path.isfile(f)]) == before:
        rows = [args]
    elif texts:
        rows = [["-i", command, *files] for command in idle(options, commands, texts)]
    with open(os.environ["PATCHKIT_SED_LOG"], "a") as log:
        log.writelines(json.dumps({"args": row, "files": files}) + "\n" for row in rows)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
