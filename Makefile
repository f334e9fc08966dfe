# Two commands: `make train` runs the main job, `make test` the tests. Each sets up .venv when it is not there yet.
# `make test-slow` runs what takes long: statistics, soak tests, and the scripts that make figures.
# `make docs` builds the documentation site, build/docs/index.html.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: train test test-slow docs lint types format notebooks clean

train: $(VENV)/.run
	$(BIN)/nodeflow train --output runs/debian

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 -m slow

docs: $(VENV)/.docs
	$(BIN)/python scripts/make_docs.py
	$(BIN)/python scripts/check_docs.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

notebooks: $(VENV)/.dev
	$(BIN)/python scripts/run_notebooks.py

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

# an edit of the package needs no new install, a change of its dependencies does
$(VENV)/.run: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[plot]'
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.run

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
