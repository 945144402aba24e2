# Three commands: `make demo`, `make test` and `make quick`. Each sets up what it needs, and is quick the second time.
# PYTHON=python3.12 chooses the interpreter, TORCH="torch==2.13.0" the build of torch, PORT=8888 the port.

PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
MAKEFLAGS += --no-print-directory

.PHONY: demo test quick setup-demo setup-test bundle format clean

demo: setup-demo
	$(BIN)/graphwidget demo $(if $(PORT),--port $(PORT)) $(DEMO_FLAGS)

test: setup-test
	@$(BIN)/python setup/suites.py $(SUITES)

# What needs no browser, no scenarios and no fuzz: under two minutes on two cores.
quick: .make/test .make/node
	@$(BIN)/python setup/suites.py quick

setup-demo: .make/demo
setup-test: .make/test .make/node .make/chromium

.make/python:
	@mkdir -p .make
	@$(PYTHON) setup/check_python.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

# torch first and pinned: left to the resolver, it brings several gigabytes of CUDA packages on Linux.
.make/torch: .make/python
	$(BIN)/python -m pip install --quiet "$(TORCH)" numpy
	@touch $@

.make/demo: .make/torch pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[lab]"
	@touch $@

.make/test: .make/torch pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@

.make/node: .make/test js/package.json js/package-lock.json
	$(BIN)/python setup/node.py
	@touch $@

.make/chromium: .make/python
	sh setup/chromium.sh
	@touch $@

bundle: .make/node
	PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix js run --silent build

format: .make/test .make/node
	$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .
	PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix js run --silent format

clean:
	rm -rf $(VENV) .make js/node_modules
