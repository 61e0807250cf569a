# Two commands for a newcomer: `make train` and `make test`. Both do all the set-up.
PYTHON ?= python3
BIN := .venv/bin
EXTRAS := .[dev,play,hpo,slurm,contrib]
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile --durations 30
# Modules are compiled when they are first imported: all 12,830 of them took 38 s of one core.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# Images of Python often switch this on: each process of the tests would compile anew all modules
# that it imports.
unexport PYTHONDONTWRITEBYTECODE

# venv and pip work for many seconds without a word: $(call told,WORDS,COMMAND) says that it goes on.
define told
	@echo "$(1)"; (s=0; while sleep 2; do s=$$((s + 2)); echo "$(1), $$s s"; done) & \
	trap "kill $$!" EXIT; $(2)
endef
install = $(call told,installing $(1),$(PIP) $(1))

.PHONY: train test pytest test-all test-bounds test-strangers lint bench docs clean

train: .venv/.core
	$(BIN)/python scripts/train.py env=nclone memory=parallel

# The linters take a minute of one core: beside the tests, not before them.
test: .venv/.dev
	@$(MAKE) --no-print-directory --jobs 2 lint pytest

# pytest loads torch before its first word: 27 s where its modules are not compiled yet.
LOAD = $(call told,loading libraries,$(BIN)/python -c "import torch")

pytest: .venv/.dev
	$(LOAD)
	$(PYTEST)

test-all: .venv/.dev lint
	$(LOAD)
	$(PYTEST) -m "slow or not slow"

# Every kernel with its indices checked: compiled anew, apart from the others.
test-bounds: .venv/.dev
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/bounds $(PYTEST) \
		$(addprefix tests/frugal_rl/,store observation learn sb3 vec_env run) \
		tests/nclone tests/npp_rl tests/mine_rl_npv tests/fighting

# Five hundred changed files of every kind that is read from strangers, and learners' states.
test-strangers: .venv/.dev
	$(PYTEST) -m slow -k "five_hundred or hundreds_of_accepted" -rA tests

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.dev
	for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

docs: .venv/.docs
	$(BIN)/sphinx-build -q -W --keep-going -b doctest -c docs . build/doctest
	$(BIN)/sphinx-build -q -W --keep-going -b html -c docs . build/site
	@echo "build/site/docs/index.html"

clean:
	rm -rf .venv build dist *.egg-info
	find . -name "*.nb[ic]" -delete # compiled kernels

.venv/.core: pyproject.toml constraints.txt
	$(call told,making a virtual environment in .venv,test -x $(BIN)/python || $(PYTHON) -m venv .venv)
	$(call install,torch==2.13.0)
	$(call install,-e .)
	touch $@

.venv/.docs: .venv/.core
	$(call install,-e .[docs])
	touch $@

.venv/.dev: .venv/.core
	$(call install,-e $(EXTRAS))
	touch $@
