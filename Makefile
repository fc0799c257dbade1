# Each target sets up what it needs, from a fresh clone, with Python 3.11 or later and nothing else.
#   make demo      see it work
#   make test      run the tests
#   make test-links   what passes between two sides, over every link: memory, stdio, WebSocket, HTTP/1.1 and HTTP/2
#   make check     formatting, lint and types
#   make test-adapters   agents of five frameworks, in an environment of their own (500 MB)
#   make docs      the documentation site, in the folder site; needs no network once its tools are installed
#   make interop   the same protocol with other people's implementations (Node, Go, Rust where they are installed)
#   make interop-rust     Rust's conductor and its examples of version 2 (ten minutes to build, once)
#   make interop-agents   real agents, with a model that is made of rules and no network
#   make bench     ours against the other SDKs
#   make load      a thousand connections to one server: what they weigh, how long answers take, whether all arrives
#   make attack    five minutes of attacks on a server, a client and a store (make test has twenty seconds of them)
#   make torture   ten minutes of faults on purpose (make test has twenty seconds of them)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 3

.DEFAULT_GOAL := help
.PHONY: help demo test test-links test-adapters check docs interop interop-rust interop-agents bench load attack torture clean

help:
	@sed -n 's/^#   //p' Makefile

$(VENV)/.test: pyproject.toml requirements/test.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Accord needs Python 3.11 or later; say make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt -e .
	@touch $@

$(VENV)/.check: requirements/check.txt $(VENV)/.test
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/check.txt
	@touch $@

demo: $(VENV)/.test
	@$(BIN)/python examples/tour.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(JOBS)

test-links: $(VENV)/.test
	$(BIN)/python -m pytest -n $(JOBS) -m links tests/interaction tests/hosts

test-adapters:
	@test -x .venv-adapters/bin/python || $(PYTHON) -m venv .venv-adapters
	@.venv-adapters/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/adapters.txt -e ".[http,mcp]"
	.venv-adapters/bin/python -m pytest -rs tests/adapters

check: $(VENV)/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/mypy
	$(BIN)/python tools/check_documents.py
	$(BIN)/python -m pytest -q tests/typing

.venv-docs/.done: requirements/docs.txt pyproject.toml
	@test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt -e ".[http]"
	@touch $@

docs: .venv-docs/.done
	.venv-docs/bin/python -m tools.website

interop: $(VENV)/.test
	-@$(BIN)/python -m interop build
	$(BIN)/python -m pytest -n $(JOBS) -m interop -rs

interop-rust: $(VENV)/.test
	-@$(BIN)/python -m interop build-rust
	$(BIN)/python -m pytest -m rust -rs

interop-agents: $(VENV)/.test
	$(BIN)/python -m pytest -m agents -rs

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.remote

load: $(VENV)/.test
	$(BIN)/python -m benchmarks.load

attack: $(VENV)/.test
	$(BIN)/python -m pytest -s -m attack --seconds 300

torture: $(VENV)/.test
	$(BIN)/python -m pytest -m torture --seconds 600

clean:
	rm -rf $(VENV) .hypothesis .pytest_cache .mypy_cache .ruff_cache
