# Every target creates the environment .venv if there is none, and installs the package into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_DIR ?= emvc-demo
PEERS := .venv-peers
BOARD_DATA ?= $(EMVC_DATA)
BOARD_DIR ?= emvc-board

FUZZ_FILES ?= 20000
FUZZ_SEED ?= 0
KILLS ?= 60
LOWEST := .venv-lowest

.PHONY: demo test test-lowest test-browser fuzz kills package lint examples docs bench peers board board-smoke robustness row-order invariants scaling reproduce clean
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

$(VENV)/installed-browser: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test,browser]'
	@touch $(VENV)/installed $(VENV)/installed-test $@

$(VENV)/installed-lint: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test,lint]'
	@touch $(VENV)/installed $(VENV)/installed-test $@

# Other packages, to be compared with: they need an older scikit-learn.
$(PEERS)/installed:
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet imml mvlearn snfpy 'scikit-learn<1.8'
	@touch $@

$(VENV)/installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $(VENV)/installed $@

demo: $(VENV)/installed
	$(BIN)/emvc demo --output $(DEMO_DIR)

test: $(VENV)/installed-test
	$(BIN)/python -m pytest --doctest-modules src tests

# The oldest libraries that pyproject.toml allows, in an environment of their own.
$(LOWEST)/installed: pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[test]'
	@touch $@

test-lowest: $(LOWEST)/installed
	$(LOWEST)/bin/python -m pytest --override-ini filterwarnings=default tests

# What is published: built in an environment of its own, and looked at.
package: $(VENV)/installed
	$(BIN)/python -m pip install --quiet build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

# Damaged files and models of all formats, read in a process that must neither crash nor hang nor grow.
fuzz: $(VENV)/installed-test
	$(BIN)/python tests/fuzzing.py --number $(FUZZ_FILES) --seed $(FUZZ_SEED)

# Runs that are ended at random moments, by three signals: what is left is whole, and the next run tidies up.
kills: $(VENV)/installed-test
	$(BIN)/python tests/killing.py --number $(KILLS)

test-browser: $(VENV)/installed-browser
	@$(BIN)/python tests/browser/find_browser.py || $(BIN)/python -m playwright install chromium
	$(BIN)/python -m pytest tests/browser

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

examples: $(VENV)/installed
	@for script in examples/*.py; do echo "$$script"; \
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 MPLBACKEND=agg \
	$(BIN)/python -W error -W 'ignore:FigureCanvasAgg is non-interactive' $$script || exit 1; done

docs: $(VENV)/installed-docs
	@rm -rf docs/api  # written anew, so that no page of a module that is gone stays behind
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/installed-test $(PEERS)/installed
	$(BIN)/python benchmarks/speed.py --peers $(PEERS)/bin/python --output docs/images
	$(BIN)/python benchmarks/foundation.py

peers: $(VENV)/installed-test $(PEERS)/installed
	@test -n "$(EMVC_DATA)" || { echo 'set EMVC_DATA to the folder with the data sets'; exit 1; }
	$(BIN)/python benchmarks/peer_equality.py --peers $(PEERS)/bin/python $(EMVC_DATA)

# All methods on all data sets, hours on two cores; interrupted or not, what is recorded stays.
board: $(VENV)/installed
	@test -n "$(BOARD_DATA)" || { echo "Name the folder of the data sets: make board BOARD_DATA=folder"; exit 1; }
	$(BIN)/emvc board $(BOARD_DATA) --output $(BOARD_DIR)

# The same in seconds, on generated data, where every run must end well.
board-smoke: $(VENV)/installed
	$(BIN)/python benchmarks/generated_sets.py $(BOARD_DIR)/generated
	$(BIN)/emvc board $(BOARD_DIR)/generated --output $(BOARD_DIR)/smoke --quick
	$(BIN)/emvc board $(BOARD_DIR)/generated --output $(BOARD_DIR)/smoke --methods ladder,NEMO,SNF --conditions all --seeds 1
	@! grep 'Runs that did not end well' $(BOARD_DIR)/smoke/board.md

robustness: $(VENV)/installed-test $(PEERS)/installed
	$(BIN)/python benchmarks/graphs.py
	EMVC_PEERS=$(PEERS)/bin/python $(BIN)/python benchmarks/robustness.py

row-order: $(VENV)/installed
	@test -n "$(EMVC_DATA)" || { echo 'set EMVC_DATA to the folder with the data sets'; exit 1; }
	$(BIN)/python benchmarks/row_order.py --output docs/images

# What must not change the clusters, on 2,000 small and 200 medium random problems.
invariants: $(VENV)/installed
	$(BIN)/python benchmarks/invariants.py

scaling: $(VENV)/installed-test
	$(BIN)/python benchmarks/scaling.py

reproduce: $(VENV)/installed
	$(BIN)/emvc reproduce --jobs 2 --output emvc-reproduction

clean:
	rm -rf $(VENV) $(LOWEST) $(DEMO_DIR) $(BOARD_DIR)/generated $(BOARD_DIR)/smoke build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/api docs/gallery docs/tutorials
