# `make cartpole` installs rldsl and trains; `make test` installs what the tests need and runs them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROJECT := pyproject.toml constraints.txt
CLASSIC := $(filter-out %_settings.py,$(wildcard experiments/classic/*.py))

.PHONY: cartpole classic test test-here test-slurm test-dstack faults lint lock pip-audit bench tables images docs docs-serve clean

cartpole: $(VENV)/.installed
	$(BIN)/python experiments/classic/cartpole.py --only ppo

classic: $(VENV)/.installed
	$(foreach file,$(CLASSIC),$(BIN)/python $(file) &&) true

test: $(VENV)/.installed-dev lint .venv-playground/.installed .venv-dstack/.installed
	$(MAKE) --jobs 3 --output-sync=target test-here test-slurm test-dstack
	.venv-playground/bin/python -m pytest tests/envs/test_playground.py tests/experiments/test_smoke_playground.py

# These three run in parallel: the last two start services of their own and mostly wait for them.
test-here:
	$(BIN)/python -m pytest --numprocesses 2 --ignore tests/slurm --ignore tests/dstack

test-slurm:
	$(BIN)/python -m pytest tests/slurm

test-dstack:
	$(BIN)/python -m pytest tests/dstack

# The long version of all fault tests: kills, full disks, bit flips, clock jumps, fuzz cases, submissions to SLURM and dstack,
# random events in the monitor. Takes less than 20 minutes on two idle cores, and writes results/faults.json if all passed.
faults: $(VENV)/.installed-dev .venv-dstack/.installed
	$(BIN)/python -m tests.faults

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Hashes of the files of every version in constraints.txt, for `pip install --require-hashes -r requirements-lock.txt`.
lock: $(VENV)/.installed
	$(BIN)/python .ci/lock

# Known vulnerabilities of the locked versions; asks the database of PyPI.
pip-audit: .venv-audit/.installed
	.venv-audit/bin/pip-audit --disable-pip --require-hashes --requirement requirements-lock.txt

bench: $(VENV)/.installed .venv-peers/.installed
	$(BIN)/python -m benchmarks.compare

# Tables of the documentation, from the specs' field descriptions, the command line and results/*.json.
tables: $(VENV)/.installed
	$(BIN)/python docs/make_tables.py

# Screenshots of the documentation, from real runs (a few minutes).
images: $(VENV)/.installed-dev
	$(BIN)/python docs/make_images.py

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

# $(call install,WHAT,ENVIRONMENT,ARGUMENTS OF PIP): creates the environment if needed and prints a line for each
# large package, so that an installation of minutes is not silent.
define install
@echo "Installing $(1) into $(2) ..."
@test -d $(2) || $(PYTHON) -m venv $(2)
@$(2)/bin/python -m pip install --disable-pip-version-check $(3) | sed -u -n -E \
	-e 's/^ *(Downloading|Using cached) ([^ ]* \([0-9.]+ [MG]B\)).*/  \2/p' -e 's/^Installing collected.*/  unpacking/p'
@touch $@
endef

$(VENV)/.installed: $(PROJECT)
	$(call install,rldsl and PyTorch (a few minutes),$(VENV),--constraint constraints.txt --editable .)

# rliable 1.2 asks for arch < 8, which does not work with pandas 3. tests/maths runs it with arch 8.
RLIABLE := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps rliable

$(VENV)/.installed-dev: $(VENV)/.installed
	$(call install,the test tools,$(VENV),--constraint constraints.txt --editable '.[dev]')
	@$(RLIABLE) || { rm $@; false; }
	.ci/chromium

$(VENV)/.installed-docs: $(VENV)/.installed constraints-docs.txt
	$(call install,the documentation tools,$(VENV),--constraint constraints.txt --constraint constraints-docs.txt --editable '.[docs]')

# JAX and MuJoCo Playground are large, and only their own tests need them.
.venv-playground/.installed: $(PROJECT) constraints-playground.txt
	$(call install,JAX and MuJoCo Playground,.venv-playground,--constraint constraints-playground.txt \
		--editable '.[playground]' pytest pytest-timeout)

# dstack's server is only for tests; one of its packages is called `tests`, as ours is.
.venv-dstack/.installed: constraints-dstack.txt
	$(call install,the dstack server,.venv-dstack,--constraint constraints-dstack.txt 'dstack[server]' paramiko)

.venv-audit/.installed: Makefile
	$(call install,pip-audit,.venv-audit,'pip-audit==2.10.1')

.venv-peers/.installed: benchmarks/peers-requirements.txt
	$(call install,Stable-Baselines3 and SBX,.venv-peers,--requirement benchmarks/peers-requirements.txt)

clean:
	rm -rf $(VENV) .venv-peers .venv-playground .venv-dstack .venv-audit site
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
