"""The pytest plugin that runs inside the proof's interpreter and writes what it saw as JSON.

Standard library and pytest only: patchkit itself is not installed there. PK_REPORT names the
file to write, PK_PROOFS the folder of the proofs, PK_TREE the tree whose files are
watched (pk_watch.py). With PK_FIRST the run ends at the first test that fails by assertion, or at
the third that the product's own code ends with an error.

PK_DONE names a list of tests that are left out. PK_SECONDS: no test begins after as many;
PK_TEST_SECONDS: a test that takes more is ended. The outcome of what was not judged says so.
"""

import contextlib
import json
import os
import signal
import sys
import time

import pk_watch
import pytest

BEFORE = dict(os.environ)
REPORT = os.environ.get("PK_REPORT", "")
PROOFS = os.path.realpath(os.environ.get("PK_PROOFS", "."))
TREE = os.environ.get("PK_TREE", "")


def used():
    """Paths of the tree that this process, and those it started, loaded or opened."""
    loaded = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    inside = {p for p in loaded if isinstance(p, str) and p.startswith(TREE + os.sep)}
    paths = {os.path.relpath(p, TREE) for p in inside}
    if os.path.exists(pk_watch.WATCH):
        with open(pk_watch.WATCH, encoding="utf-8", errors="surrogateescape") as file:
            paths.update(line[5:-1] for line in file if line.startswith("used "))
    return sorted(p for p in paths if os.path.isfile(os.path.join(TREE, p)))


PRELUDE = {}
if "PK_PRELUDE" in os.environ:
    exec(
        os.environ["PK_PRELUDE"], PRELUDE
    )  # it stays; what the tests' package needs before it is imported


class OutOfTime(BaseException):
    """A test took too long. No product catches it as its own."""


def ring(number, frame):
    raise OutOfTime("the test took too long")


@contextlib.contextmanager
def limited():
    """Ends what takes more than PK_TEST_SECONDS, where that is set."""
    seconds = float(os.environ.get("PK_TEST_SECONDS", 0))
    if not seconds:
        yield
        return
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def pytest_configure(config):
    config.addinivalue_line("markers", "witness: must fail by assertion before the patch")
    config.addinivalue_line("markers", "gpu: needs a GPU")
    config.addinivalue_line("markers", "needs(reason): may be skipped, for that reason")
    config.pluginmanager.register(Recorder(), "pk-recorder")


class Recorder:
    def __init__(self):
        self.began = time.monotonic()
        self.tests = {}
        self.errors = []
        self.raised_in = ""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector):
        outcome = yield
        report = outcome.get_result()
        if report.failed:
            self.errors.append(str(report.longrepr)[-4000:])
            error = report.call.excinfo.value  # pytest takes it away before it logs the report
            self.raised_in = raised_in(error.__cause__ or error)

    def pytest_collection_modifyitems(self, config, items):
        if "PK_DONE" in os.environ:
            with open(os.environ["PK_DONE"], encoding="utf-8") as file:
                done = set(json.load(file))
            config.hook.pytest_deselected(items=[i for i in items if i.nodeid in done])
            items[:] = [i for i in items if i.nodeid not in done]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item):
        with limited():
            yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        with limited():
            yield

    def pytest_runtest_logfinish(self, nodeid):
        limit = float(os.environ.get("PK_SECONDS", 0))
        if limit and time.monotonic() - self.began > limit:
            self.session.shouldstop = "out of time"

    def pytest_sessionstart(self, session):
        self.session = session

    def pytest_collection_finish(self, session):
        for item in session.items:  # after -m has taken its choice
            self.tests[item.nodeid] = {
                "witness": item.get_closest_marker("witness") is not None,
                "gpu": item.get_closest_marker("gpu") is not None,
                "needs": [str(a) for m in item.iter_markers("needs") for a in m.args],
                "outcome": "not run",
            }

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        row = self.tests[item.nodeid]
        if report.skipped:
            row["outcome"] = "skipped"
            row["reason"] = str(report.longrepr[-1] if report.longrepr else "")[:400]
        elif report.failed:
            row["outcome"] = "failed" if row["outcome"] in ("not run", "passed") else row["outcome"]
            row["phase"] = report.when
            row["by_assertion"] = report.when == "call" and by_assertion(call.excinfo)
            row["error"] = str(report.longrepr)[-3000:]
            row["line"] = call.excinfo.exconly()[:400] if call.excinfo else ""
            if call.excinfo is not None and call.excinfo.errisinstance(OutOfTime):
                row["outcome"] = "out of time"
            row["raised_in"] = raised_in(call.excinfo.value) if call.excinfo else ""
            if "PK_FIRST" in os.environ:
                raised = sum(bool(r.get("raised_in")) for r in self.tests.values())
                if row["by_assertion"] or raised >= 3:
                    item.session.shouldstop = "enough is known"
        elif report.when == "call" and report.passed:
            row["outcome"] = "passed"

    def pytest_sessionfinish(self):
        body = {"format": 1, "tests": self.tests, "errors": self.errors}
        body["raised_in"] = self.raised_in
        body["seconds"] = time.monotonic() - self.began
        if TREE:
            body["used"] = used()
        if "PK_LOADED" in os.environ:
            with open(os.environ["PK_LOADED"], "w", encoding="utf-8") as file:
                json.dump(loaded(), file)
        temporary = REPORT + ".part"
        with open(temporary, "w", encoding="ascii") as file:
            json.dump(body, file)
        os.replace(temporary, REPORT)


def raised_in(error):
    """Path of the tree's file whose code the error came out of; "" where that is the proof's."""
    found = ""
    trace = error.__traceback__
    while TREE and trace is not None:
        path = os.path.realpath(trace.tb_frame.f_code.co_filename)
        if path.startswith(os.path.realpath(TREE) + os.sep):
            found = os.path.relpath(path, os.path.realpath(TREE))
        elif path.startswith(PROOFS + os.sep):
            found = ""
        trace = trace.tb_next
    return found


def loaded():
    """Variables that this run set, and modules that it loaded from neither tree nor proofs."""
    lead = (TREE + os.sep, PROOFS + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)
    names = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        path = getattr(spec, "origin", None)
        if path is not None and os.path.isabs(path) and not path.startswith(lead):
            names.append(name if spec.name == name else "")
    new = {k: v for k, v in os.environ.items() if BEFORE.get(k) != v and not k.startswith("P")}
    return {"set": new, "modules": [name for name in names if name and name != "__main__"]}


def by_assertion(excinfo):
    """Whether the failure is an assertion of the proof itself, or pytest's own Failed."""
    if excinfo is None or not issubclass(excinfo.type, (AssertionError, pytest.fail.Exception)):
        return False
    pytests_own = os.path.dirname(os.path.realpath(pytest.__file__))
    internal = os.path.join(os.path.dirname(pytests_own), "_pytest") + os.sep
    frames = [os.path.realpath(str(entry.path)) for entry in excinfo.traceback]
    frames = [f for f in frames if not f.startswith(internal)]
    return bool(frames) and frames[-1].startswith(PROOFS + os.sep)
