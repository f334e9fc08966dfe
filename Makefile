# `make` lists the commands. Each sets up .venv when it is not there yet.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help train test test-slow test-bounds test-tools coverage mutants fuzz faults soak judge alarms test-cpus versions bench docs lint types format notebooks clean

help:
	@echo "make train      train GraphSAGE on the bundled data set, into runs/debian"
	@echo "make test       run the tests, also those that run the documentation"
	@echo "make test-slow  run what takes long: statistics, soak tests, scripts that make figures"
	@echo "make test-tools  run the examples with other libraries, which it installs"
	@echo "make test-bounds  run the tests with every index of compiled loops checked (20 minutes)"
	@echo "make  run the tests of loops that are compiled without compiling them (an hour)"
	@echo "make coverage   run the tests and list the lines and branches that none of them runs"
	@echo "make mutants    plant small faults in the code, and count those that tests find (after make coverage)"
	@echo "make fuzz       fuzz all readers of files for MINUTES each (10), with atheris, which it installs"
	@echo "make faults     interrupt every writer: kills, full disks, no memory"
	@echo "make soak       train on 20,000 batches and see that memory stays flat"
	@echo "make judge      check the samplers of other libraries: make judge PYG=PYTHON GRAPHBOLT=PYTHON"
	@echo "make alarms     count the false alarms of check_sampler over all samplers, for SEEDS=1000 seeds"
	@echo "make test-cpus  run them as compiled for older processors"
	@echo "make versions   try the oldest and newest libraries on each Python that is installed"
	@echo "make bench      print this machine's table of speed; beside peers: make bench PYG=PYTHON GRAPHBOLT=PYTHON"
	@echo "make docs       build the documentation site, build/docs/index.html"
	@echo "make lint       check style and format; make format fixes what it can"
	@echo "make types      run mypy, strict"
	@echo "make notebooks  run all notebooks and store their results"
	@echo "make clean      remove .venv, build and caches"

train: $(VENV)/.run
	$(BIN)/nodeflow train --output runs/debian --overwrite

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 $(SHUFFLE:%=--shuffle %) $(CASES:%=--cases %)

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 -m slow $(SHUFFLE:%=--shuffle %)

test-tools: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,tools]'
	$(BIN)/python -m pytest -m slow tests/docs/test_readme.py -k other_tools

# compiled again in a folder of their own, because the checks are part of the code
test-bounds: $(VENV)/.dev
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/bounds $(BIN)/python -m pytest -n auto --maxprocesses 4 \
		--cases all --ignore tests/docs tests

# but for one test: an interrupt within the tracer leaves its lock taken
coverage: $(VENV)/.dev
	rm -rf build/coverage
	-$(BIN)/coverage run -m pytest -n auto --maxprocesses 4 --cases all -p no:randomly -p trials.contexts \
		--deselect tests/core/runtime/test_interrupts.py::test_every_interrupt_ends_in_keyboard_interrupt
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --format markdown --skip-covered --show-missing

mutants: $(VENV)/.dev
	$(BIN)/python trials/mutants.py

# atheris has no wheel for every Python: hypothesis draws the same edits then
fuzz: $(VENV)/.dev
	-$(BIN)/python -m pip install --quiet --only-binary :all: 'atheris>=3'
	$(BIN)/python trials/fuzz.py --minutes $(or $(MINUTES),10)

# forked processes write, so each has one thread; the moments of kills lie in the program, not in a slow disk
faults: $(VENV)/.dev
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 TMPDIR=$(or $(wildcard /dev/shm),/tmp) $(BIN)/python -W ignore trials/faults.py $(FAULTS)

soak: $(VENV)/.dev
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python trials/soak.py

judge: $(VENV)/.dev
	$(BIN)/python trials/judge.py $(PYG:%=--pyg %) $(GRAPHBOLT:%=--graphbolt %)

SEEDS ?= 1000
alarms: $(VENV)/.dev
	$(BIN)/python trials/alarms.py --seeds $(SEEDS)
# what each processor computes must be the same draws; without features named, numba takes those of this machine
test-cpus: $(VENV)/.dev
	for cpu in haswell generic; do \
		ONEDNN_MAX_CPU_ISA=AVX2 NUMBA_CPU_NAME=$$cpu NUMBA_CPU_FEATURES= NUMBA_CACHE_DIR=$(CURDIR)/build/cpu-$$cpu $(BIN)/python -m pytest \
			-n auto --maxprocesses 4 --cases all tests/kernels tests/ops tests/sampling || exit 1; \
	done

versions: $(BIN)/python
	$(BIN)/python trials/versions.py $(ROWS)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/summary.py $(GRAPHBOLT:%=--graphbolt %) $(PYG:%=--pyg %) $(STORE:%=--store benchmarks/%)

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
