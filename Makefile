# The two commands of the README, and what CI runs. GNU make, Python 3.11+, git.
PYTHON ?= python3
PIN ?= v0.30.0
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: apply check test coverage test-touched test-all bench bench-plot lint lock-env clean

apply: $(STAMP)
	$(BIN)/patchkit apply --pin $(PIN) $(if $(STACK),--stack $(STACK))

check: $(STAMP)
	$(BIN)/patchkit check

test: $(STAMP)
	$(BIN)/python -m pytest -m "not real and not slow" -n 2

# Of test-all, what the change touches: results are kept by the digest of their inputs.
test-touched: $(STAMP)
	$(BIN)/python ci/touched.py

test-all: $(STAMP)
	$(BIN)/python -m pytest -n 2

# Which lines and branches the fast suite reaches.
coverage: $(STAMP)
	$(BIN)/python -m pytest -m "not real and not slow" -n 2 --cov --cov-report=term:skip-covered

# What applying costs, side by side with git am, quilt and others: docs/speed.md.
bench: $(STAMP)
	$(BIN)/python -m bench

bench-plot: $(STAMP)
	$(BIN)/python -m bench plot

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Every package of the environment is fixed by sha256; the project itself is installed from here.
$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("$(PYTHON) is %d.%d: make PYTHON=... with 3.11 or newer" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.txt
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Run after a change of the dependencies in pyproject.toml.
lock-env: $(STAMP)
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-trusted-host \
	  --no-emit-find-links --strip-extras --no-annotate --no-header --upgrade --extra dev \
	  --output-file requirements.txt pyproject.toml

clean:
	rm -rf build dist .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* *.egg-info
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
