# Everything here sets itself up; only Python (3.10 or newer) and make are needed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO ?= demo-out
# What the compiled kernel is made of, which is built where there is a compiler and simdjson.
KERNEL := $(wildcard chakra_et/kernel/cpp/* chakra_et/feeder/cpp/include/chakra_et/*.hpp) \
    chakra_et/kernel/__init__.py hatch_build.py

.PHONY: help demo test test-torch test-compat test-browser test-cluster test-tables test-install check lint format types schema bench clean

help:
	@echo "make demo         set up, convert the bundled pair, and show what came out"
	@echo "make test         set up and run the tests"
	@echo "make check        lint, format check, type check"
	@echo "make test-torch   the tests that need PyTorch (in an environment of their own)"
	@echo "make test-compat  the tests against mlc-chakra (in an environment of its own)"
	@echo "make test-browser the tests of pages in Chromium, where it is installed"
	@echo "make test-cluster the tests with Ray, Dask and stores (in an environment of their own)"
	@echo "make test-tables  compare the tables in docs/ with what is measured now"
	@echo "make test-install install wheels, the sdist and a clone without links, and convert with them"
	@echo "make schema       generate what derives from schema/ (protobuf code, definitions, docs)"
	@echo "make bench        time a conversion beside the decoding floor, mlc-chakra and HTA"

$(VENV)/run.stamp: pyproject.toml $(KERNEL)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

demo: $(VENV)/run.stamp
	$(BIN)/chakra convert --host examples/simple_add/host.json.gz \
	    --device examples/simple_add/device.json.gz \
	    -o $(DEMO)/simple_add.0.et --report $(DEMO)/simple_add.report.json
	$(BIN)/chakra convert examples/ddp_2rank -o $(DEMO)/ddp_2rank
	$(BIN)/chakra info $(DEMO)/ddp_2rank/trace.0.et

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n auto

check: lint types

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(VENV)/dev.stamp
	$(BIN)/mypy
	$(BIN)/mypy tools

.venv-torch/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install --quiet --upgrade pip
	.venv-torch/bin/python -m pip install --quiet "torch$(TORCH)" numpy
	.venv-torch/bin/python -m pip install --quiet --editable ".[test]"
	@touch $@

# TORCH narrows the release, as in make test-torch TORCH===2.13.0
test-torch: .venv-torch/stamp
	.venv-torch/bin/python -m pytest tests/torch

test-compat: $(VENV)/dev.stamp
	$(BIN)/python -m pytest tests/compat

test-browser: $(VENV)/dev.stamp
	$(BIN)/python -m pytest tests/browser

.venv-cluster/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-cluster
	.venv-cluster/bin/python -m pip install --quiet --upgrade pip
	.venv-cluster/bin/python -m pip install --quiet --editable ".[cluster]"
	@touch $@

test-cluster: .venv-cluster/stamp
	.venv-cluster/bin/python -m pytest tests/cluster

# Needs the real traces, in CHAKRA_ET_DATA; tables of what needs none are part of the tests.
test-tables: $(VENV)/dev.stamp
	if [ -d "$$CHAKRA_ET_DATA" ]; then $(BIN)/python tools/fidelity.py --check && \
	    $(BIN)/python tools/inputs_table.py --check "$$CHAKRA_ET_DATA" && \
	    $(BIN)/python tools/predict.py --check; fi

test-install: $(VENV)/dev.stamp
	$(BIN)/python tools/check_install.py

schema: $(VENV)/dev.stamp
	$(BIN)/python tools/generate.py

bench: $(VENV)/dev.stamp
	$(BIN)/python tools/bench_convert.py

clean:
	rm -rf .venv .venv-cluster .venv-torch .venv-mlc .venv-protoc $(DEMO)
