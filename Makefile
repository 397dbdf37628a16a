PYTHON ?= python3
ARGS ?=
# A test that takes five minutes is ended and reported as failed; long variants (WAKEFUL_TEST_LONG=1) may take longer.
PATIENCE = $(if $(WAKEFUL_TEST_LONG),-o faulthandler_timeout=0 -o timeout=0)
PYTEST = PYTHONDONTWRITEBYTECODE= .venv/bin/pytest --dist=loadfile --no-loadscope-reorder $(PATIENCE)
BENCHES = $(filter-out bench/_%,$(wildcard bench/*.py))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help serve test test-all test-failed browsers page check format bench docs site lock setup clean venv

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: page ## Start the server (ARGS="--port 9000" for options)
	@.venv/bin/wakeful serve $(ARGS)

test: setup page ## Run the tests of every rule (ARGS="-k name" for some)
	@.venv/bin/python scripts/page.py test
	@scripts/test_packages.sh
	@$(PYTEST) -n 4 --suite quick $(ARGS)

test-all: setup page browsers ## Run what `make test` leaves out: browsers, kills, upgrades, the second store
	@$(PYTEST) -n 4 --suite rest $(ARGS)

test-failed: setup page browsers ## Run the tests that failed last once more, one at a time
	@$(PYTEST) -n 0 --last-failed --last-failed-no-failures none $(ARGS)

browsers: setup
	@scripts/chromium.sh >/dev/null || true  # without a browser, only the tests that need one fail
	@scripts/firefox.sh >/dev/null || true
	@scripts/test_packages.sh

page: .venv/.installed ## Build the web page, if its sources have changed
	@.venv/bin/python scripts/page.py

check: setup ## Lock freshness, lint, format, imports between packages, types; the page's lint, format, types
	@.venv/bin/python scripts/lock.py check
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/lint-imports
	@.venv/bin/basedpyright
	@.venv/bin/python scripts/page.py check

format: setup ## Format the code and apply the linter's fixes
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format
	@.venv/bin/python scripts/page.py format

bench: setup ## Run every script in bench/ (files that start with _ are their helpers)
	@set -e; for script in $(BENCHES); do echo "== $$script"; .venv/bin/python $$script; done

docs: setup ## Rewrite what is generated: docs/reference, the types in web/src/api, options of agents
	@.venv/bin/python scripts/agent_options.py  # first: the help of commands has the options
	@.venv/bin/python scripts/settings_docs.py
	@.venv/bin/python scripts/reference_docs.py
	@.venv/bin/python scripts/cli_docs.py
	@.venv/bin/python scripts/page_types.py

site: setup ## Build the documentation site, with search, into build/site
	@.venv/bin/sphinx-build -q -W --keep-going -c site . build/site
	@echo "Open build/site/index.html"

lock: .venv/.uv ## Update the lock files from pyproject.toml (UPGRADE=name or UPGRADE=--all for newer versions)
	@.venv/bin/python scripts/lock.py write $(UPGRADE)

setup: .venv/.tools ## Make .venv as locked, with the tools for tests and checks; each target makes what it needs

clean: ## Remove .venv and every cache
	rm -rf .venv build .pytest_cache .ruff_cache .import_linter_cache .hypothesis web/node_modules src/wakeful/http/static
	find src tests bench scripts -name __pycache__ -prune -exec rm -rf {} +

# `make serve` installs the server alone; the other targets add the tools. Tools that are installed stay installed.
LOCKS = requirements.lock $(if $(wildcard .venv/.tools),requirements-dev.lock)
UV = .venv/bin/uv pip
SYNC = $(UV) sync --quiet --python .venv --require-hashes
EDITABLE = $(UV) install --quiet --python .venv --no-deps --no-build-isolation --editable .

.venv/.tools: requirements-dev.lock .venv/.installed
	@echo "Installing the tools for tests and checks into .venv"
	@$(SYNC) --compile-bytecode requirements.lock requirements-dev.lock  # once, for all processes of the tests
	@$(EDITABLE)
	@touch $@

.venv/.installed: .venv/.locked pyproject.toml
	@.venv/bin/python scripts/page.py
	@$(EDITABLE)
	@touch $@

.venv/.locked: requirements.lock .venv/.uv
	@echo "Installing the locked packages into .venv"
	@$(SYNC) $(LOCKS)  # without --compile-bytecode: most modules are never imported, and Python compiles the others
	@touch $@

# .venv/bin/python is a link to the machine's Python. If that was upgraded, it is newer than these stamps; if it was
# removed, the link is broken. Either way everything that depends on it is rebuilt.
.venv/.uv: $(shell test -x .venv/bin/python && echo .venv/bin/python || echo venv)
	@PYTHON="$(PYTHON)" scripts/uv.sh
	@touch $@

venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Wakeful needs Python 3.11 or newer; $(PYTHON) is: $$($(PYTHON) --version 2>&1)" >&2; \
	  echo "If another one is installed: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear --without-pip .venv
