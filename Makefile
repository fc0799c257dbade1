# Each target sets up what it needs, from a fresh clone, with Python 3.11 or later and nothing else.
#   make demo      see it work
#   make install   install the four packages into .venv, with the command accord
#   make test      run the tests: a verdict in minutes
#   make test-all  run every test, also over WebSocket, HTTP/1.1 and HTTP/2; many of one thing over one link each
#   make test-links   run all of the interaction suite over every link
#   make test-oldest   the same tests with the oldest releases that the packages allow
#   make test-newest   the same with the newest
#   make check     formatting, lint and types
#   make test-adapters   agents of five frameworks, in an environment of their own (500 MB)
#   make docs      the documentation site, in the folder site; needs no network once its tools are installed
#                  (make docs-links: without the check of accessibility, which takes most of the time)
#   make interop   the same protocol with other people's implementations (Node, Go, Rust where they are installed)
#   make interop-rust     Rust's conductor and its examples of version 2 (ten minutes to build, once)
#   make interop-agents   real agents, with a model that is made of rules and no network
#   make bench     ours against the other SDKs
#   make count     instructions of nineteen paths, compared with a record (valgrind; two minutes)
#   make count-hot   the same for the ten that most messages take
#   make schema-drift   what the newest schemas have otherwise than our types, with the place to edit
#   make test-wine   what is special on Windows, with a Python for Windows under Wine
#   make load      a thousand connections to one server: what they weigh, how long answers take, whether all arrives;
#                  and what make load-hosts does
#   make load-hosts   a thousand connections over three hosts, one of which is killed: is anything lost?
#   make attack    five minutes of attacks on a server, its hosts, a client, a chain of proxies, the chat, the coding agent
#                  and a store (make test-all has some seconds)
#   make mutants   300 small faults in a copy: which of them the tests find (an hour)
#   make release-test   the wheel in clean environments: CPython 3.11 to 3.14 with each extra, uvx and pipx (ten minutes)
#   make dist      the sdist and the wheel of the last commit, their checksums, and their bill of materials
#   make torture   ten minutes of faults on purpose (make test-all has some seconds of them)

PYTHON ?= python3
# Programs that are started a thousand times must not be compiled each time.
unexport PYTHONDONTWRITEBYTECODE
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 3
SHARE ?= 1/1

.DEFAULT_GOAL := help
.PHONY: help demo install test test-all test-sample test-links test-oldest test-newest test-adapters test-wine check lint types types-mypy types-documents types-Linux types-Windows types-Darwin count count-hot schema-drift docs docs-links interop interop-rust interop-agents bench load load-hosts attack torture mutants release-test dist clean

help:
	@sed -n 's/^#   //p' Makefile

# Only what the core needs, so that a newcomer sees the demo within seconds; the sources are found by their path.
PACKAGES := packages/accord packages/accord-tools packages/accord-check packages/accord-adapters
SETTINGS := $(PACKAGES:%=%/pyproject.toml)
EDITABLE := $(PACKAGES:%=-e %)

$(VENV)/.core: packages/accord/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Accord needs Python 3.11 or later; say make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("packages/accord/pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > $@.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $@.txt
	@mv $@.txt $@

# uv installs the hundred packages of the tests in seconds, and shows how far it is.
INSTALL = $(BIN)/python -m uv pip install --python $(BIN)/python
$(VENV)/.uv: | $(VENV)/.core
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^uv==' requirements/test.txt)"
	@touch $@

$(VENV)/.test: $(SETTINGS) requirements/test.txt | $(VENV)/.uv
	@echo "Setting up $(VENV) ..."
	@$(INSTALL) -r requirements/test.txt $(EDITABLE)
	@touch $@

$(VENV)/.check: requirements/check.txt $(VENV)/.test
	@$(INSTALL) -r requirements/check.txt
	@touch $@

$(VENV)/.release: requirements/release.txt $(VENV)/.test
	@$(INSTALL) -r requirements/release.txt
	@touch $@

install: $(VENV)/.uv
	@$(INSTALL) $(EDITABLE:%-tools=%-tools[agent,cli])

demo: $(VENV)/.core
	@PYTHONPATH=packages/accord/src:packages/accord-tools/src $(BIN)/python examples/tour.py

test: $(VENV)/.test
	@$(BIN)/python -m tests -n $(JOBS)

test-all: $(VENV)/.test
	@$(BIN)/python -m tests -n $(JOBS) --part all

test-links: $(VENV)/.test
	@$(BIN)/python -m tests -n $(JOBS) --marker all_links

# What make test leaves out, a part of it that another commit changes: continuous integration runs it.
test-sample: $(VENV)/.test
	@$(BIN)/python -m tests -n $(JOBS) --part rest --share commit/5
	@$(BIN)/python -m tests -n $(JOBS) --marker links --share commit/2

# requirements/test.txt first, then the oldest or the newest releases of each extra that pyproject.toml allows; what that
# changes is printed. openai-agents would hold back websockets among the newest: its tests have an environment of their
# own, which nothing keeps.
test-oldest: RELEASES := lowest-direct
test-newest: RELEASES := highest
test-oldest test-newest: test-%: | $(VENV)/.uv
	@test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	@$(FOR) --quiet -r requirements/test.txt $(EDITABLE)
	@$(FOR) --upgrade --resolution $(RELEASES) -e packages/accord[all] -e packages/accord-tools[agent,cli] -e packages/accord-adapters[$(FRAMEWORKS)] "opentelemetry-sdk>=1.30"
	@$(BIN)/python -m uv run --quiet --isolated --no-project --python .venv-$*/bin/python --resolution $(RELEASES) \
		$$(sed -n '/^pytest\|^hypothesis/s/^/--with /p' requirements/test.txt) \
		$(EDITABLE:-e=--with-editable) --with accord-adapters[openai-agents] \
		python -m pytest -q packages/accord-adapters/tests/adapters -k openai_agents
	@.venv-$*/bin/python -m tests -n $(JOBS) --share $(SHARE)
FOR = $(BIN)/python -m uv pip install --python .venv-$*/bin/python
FRAMEWORKS := claude-agent-sdk,langgraph,llama-index,official-sdk,pydantic-ai

test-adapters:
	@test -x .venv-adapters/bin/python || $(PYTHON) -m venv .venv-adapters
	@.venv-adapters/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/adapters.txt $(EDITABLE:packages/accord=packages/accord[http,mcp])
	.venv-adapters/bin/python -m pytest -rs packages/accord-adapters/tests/adapters

check: lint
	@$(MAKE) --no-print-directory -j2 types

lint: $(VENV)/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/rooms.py

# Two at a time: each takes a minute of one core.
types: $(addprefix types-,Linux mypy Windows Darwin documents)
types-mypy: $(VENV)/.check
	$(BIN)/mypy
types-documents: $(VENV)/.check
	$(BIN)/python tools/check_documents.py
	$(BIN)/python -m pytest tests/typing
types-Linux: $(VENV)/.check
	$(BIN)/pyright
types-Windows types-Darwin: types-%: $(VENV)/.check
	$(BIN)/pyright --pythonplatform $* $(PACKAGES:%=%/src)

.venv-docs/.done: requirements/docs.txt $(SETTINGS) | $(VENV)/.uv
	@test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	@$(BIN)/python -m uv pip install --quiet --python .venv-docs/bin/python -r requirements/docs.txt \
		$(patsubst %accord-tools,%accord-tools[cli],$(EDITABLE:packages/accord=packages/accord[http]))
	@touch $@

docs: .venv-docs/.done
	.venv-docs/bin/python -m tools.website
docs-links: .venv-docs/.done
	.venv-docs/bin/python -m tools.website links

test-wine: $(VENV)/.test
	$(BIN)/python tools/wine_tests.py

count: $(VENV)/.test
	$(BIN)/python -m benchmarks.counts

count-hot: $(VENV)/.test
	$(BIN)/python -m benchmarks.counts --hot

schema-drift: $(VENV)/.test
	$(BIN)/python tools/schema_drift.py

interop: $(VENV)/.test
	-@$(BIN)/python -m interop build
	@$(BIN)/python -m tests -n $(JOBS) --marker interop --share $(SHARE)

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

load-hosts: $(VENV)/.test
	$(BIN)/python -m benchmarks.load --sockets 0 --http2 0

attack: $(VENV)/.test
	$(BIN)/python -m pytest -s -m attack --seconds 300

torture: $(VENV)/.test
	$(BIN)/python -m pytest -m torture --seconds 600

mutants: $(VENV)/.test
	$(BIN)/python tools/mutants.py

release-test: $(VENV)/.release
	@$(BIN)/python -m tests -n $(JOBS) --marker release

dist: $(VENV)/.release
	$(BIN)/python tools/distributions.py dist
	$(BIN)/python tools/bill_of_materials.py dist
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz

clean:
	rm -rf $(VENV) .hypothesis .pytest_cache .mypy_cache .ruff_cache
