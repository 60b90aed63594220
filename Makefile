# Two commands do everything: `make cartpole` sets up and trains, `make test` sets up and tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROJECT := pyproject.toml constraints.txt

.PHONY: cartpole test test-here test-slurm test-dstack lint bench clean

cartpole: $(VENV)/.installed
	$(BIN)/python experiments/classic/cartpole.py

test: $(VENV)/.installed-dev lint .venv-playground/.installed .venv-dstack/.installed
	$(MAKE) --jobs 3 --output-sync=target test-here test-slurm test-dstack
	.venv-playground/bin/python -m pytest tests/envs/test_playground.py tests/experiments/test_smoke_playground.py

# The three run beside each other: the last two start services of their own, and wait for them most of the time.
test-here:
	$(BIN)/python -m pytest --numprocesses 2 --ignore tests/slurm --ignore tests/dstack

test-slurm:
	$(BIN)/python -m pytest tests/slurm

test-dstack:
	$(BIN)/python -m pytest tests/dstack

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.installed: $(PROJECT)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# JAX and MuJoCo Playground are large, and only their own tests need them.
.venv-playground/.installed: $(PROJECT) constraints-playground.txt
	test -d .venv-playground || $(PYTHON) -m venv .venv-playground
	.venv-playground/bin/python -m pip install --quiet --constraint constraints-playground.txt \
		--editable '.[playground]' pytest pytest-timeout
	touch $@

# dstack's server is for tests alone, and one of its packages calls itself `tests`, as ours do.
.venv-dstack/.installed: constraints-dstack.txt
	test -d .venv-dstack || $(PYTHON) -m venv .venv-dstack
	.venv-dstack/bin/python -m pip install --quiet --constraint constraints-dstack.txt 'dstack[server]' paramiko
	touch $@

bench: $(VENV)/.installed .venv-peers/.installed
	$(BIN)/python -m benchmarks.compare

.venv-peers/.installed: benchmarks/peers-requirements.txt
	test -d .venv-peers || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --requirement benchmarks/peers-requirements.txt
	touch $@

clean:
	rm -rf $(VENV) .venv-peers .venv-playground .venv-dstack .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
