# Every target creates the environment .venv if there is none, and installs the package into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_DIR ?= emvc-demo

.PHONY: demo test lint examples bench robustness scaling reproduce clean
.DEFAULT_GOAL := test

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $(VENV)/installed $@

$(VENV)/installed-lint: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test,lint]'
	@touch $(VENV)/installed $(VENV)/installed-test $@

demo: $(VENV)/installed
	$(BIN)/emvc demo --output $(DEMO_DIR)

test: $(VENV)/installed-test
	$(BIN)/python -m pytest --doctest-modules src tests

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

examples: $(VENV)/installed
	@for script in examples/*.py; do echo "$$script"; MPLBACKEND=agg $(BIN)/python -W error $$script || exit 1; done

bench: $(VENV)/installed-test
	$(BIN)/python benchmarks/foundation.py

robustness: $(VENV)/installed-test
	$(BIN)/python benchmarks/robustness.py

scaling: $(VENV)/installed-test
	$(BIN)/python benchmarks/scaling.py

reproduce: $(VENV)/installed
	$(BIN)/emvc reproduce --jobs 2 --output emvc-reproduction

clean:
	rm -rf $(VENV) $(DEMO_DIR) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
