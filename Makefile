# Every target sets up what it needs: `make demo` and `make test` work in a fresh clone with python3 and make alone.

PYTHON3 ?= python3
VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
JOBS ?= 2

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := help
.PHONY: help venv demo check lint types architecture docs-fresh filecheck test test-all bench fmt clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(READY) ## Set up the environment in .venv (the others do it on demand)

$(READY): pyproject.toml
	@$(PYTHON3) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "Stepwell needs Python 3.11 to 3.13; name one: make PYTHON3=python3.11 ..." >&2; exit 1; }
	@$(PYTHON3) -m venv $(VENV)
	@printf 'Setting up %s (once, about 300 MB to download) ' $(VENV)
	@$(PYTHON) -m pip install --disable-pip-version-check --editable '.[dev]' \
	  | awk '/^ *(Collecting|Downloading|Using cached|Installing)/ { printf "."; fflush() } END { print "" }'
	@mkdir -p $(VENV)/view && ln -sfn ../.. $(VENV)/view/stepwell
	@touch $@

demo: $(READY) ## Read a picture on the emulated NPU
	@$(PYTHON) examples/ocr/demo.py

check: lint types architecture docs-fresh filecheck ## Everything that must hold before a commit, but the tests

lint: $(READY) ## Format and lint (ruff)
	@$(PYTHON) -m ruff format --check --quiet . || { echo "not formatted: run make fmt" >&2; exit 1; }
	@$(PYTHON) -m ruff check --quiet .

types: $(READY) ## Types (pyright, strict)
	@$(PYTHON) -m pyright --project pyproject.toml

architecture: $(READY) ## Who may import whom, and how long a file may be
	@$(PYTHON) -m pytest -q --no-header tests/architecture_test.py

docs-fresh: $(READY) ## The generated pages of docs/ agree with the code
	@$(PYTHON) -m stepwell.driver.docs --check

filecheck: $(READY) ## The IR tests (lit)
	@$(VENV)/bin/lit -q -j $(JOBS) tests/filecheck

test: $(READY) ## All tests but the slow ones, the IR tests among them
	@$(PYTHON) -m pytest -n $(JOBS) -m 'not slow'

test-all: $(READY) ## All tests
	@$(PYTHON) -m pytest -n $(JOBS)

bench: $(READY) ## Measure, and compare with the last measurement; BENCH="--targets edge,server --batch 1,8"
	@$(PYTHON) bench/run.py $(BENCH)

fmt: $(READY) ## Format, and mend what can be mended
	@$(PYTHON) -m ruff check --fix --quiet . || true
	@$(PYTHON) -m ruff format --quiet .

clean: ## Remove what builds and tests left behind (rm -rf .venv to set up anew)
	@rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
