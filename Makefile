# A fresh machine needs Python 3.11 or later, make and git. `make` alone lists what there is.

UV_VERSION := 0.13.8
UV := .uv/bin/uv
UV_READY := .uv/.ready-$(UV_VERSION)
READY := .venv/.ready
BIN := .venv/bin
# What was compiled is kept: else each of a hundred processes compiles the packages for itself.
unexport PYTHONDONTWRITEBYTECODE
# Four workers on two processors: tests wait for much that is not a processor.
PYTEST := $(BIN)/pytest -n 4 --dist worksteal

# The first of these that was built to be fast makes the environment, else the first that can make
# one: without --enable-optimizations, which pyenv leaves out, all takes an eighth longer.
# PYTHON=... chooses another.
PYTHONS := python3 python3.13 python3.12 python3.11 python /usr/bin/python3
NEW := sys.version_info >= (3, 11)
WHOLE := $(NEW) and __import__('ensurepip')
FAST := $(WHOLE) and (sys.base_prefix == '/usr' or \
	'--enable-optimizations' in (__import__('sysconfig').get_config_var('CONFIG_ARGS') or ''))
PYTHON ?= $(shell for fit in "$(FAST)" "$(WHOLE)" "$(NEW)"; do for python in $(PYTHONS); do \
	$$python -c "import sys; sys.exit(not ($$fit))" >/dev/null 2>&1 \
	&& echo $$python && exit; done; done)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install up demo test suite check lint sizes bench bench-quality bench-speed newcomer image adapters agents protos fuzz chaos soak generate vendor pictures clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1	\2/p' $(firstword $(MAKEFILE_LIST)) \
		| while IFS='	' read -r target text; do printf 'make %-14s%s\n' "$$target" "$$text"; done

install: $(READY) ## make the environment in .venv, once

up: $(READY) ## start Postgres, NATS and the four services; Ctrl-C stops them (ARGS=... adds flags)
	@exec $(BIN)/reverie up $(ARGS)

demo: $(READY) ## the same in a home of its own, and play a sample day (ARGS=... adds flags)
	@exec $(BIN)/reverie demo $(ARGS)

test: $(READY) ## everything that must hold: the checks, beside the whole suite (ARGS=... goes to pytest)
	@$(MAKE) --no-print-directory -j 2 lint suite

suite: $(READY)
	@$(PYTEST) $(ARGS)

check: sizes lint ## ruff, mypy --strict, the import rule, the size gate

lint: $(READY)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/mypy

sizes: $(READY)
	@$(BIN)/pytest tests/architecture/test_source_layout.py --quiet --no-header -p no:cacheprovider

# Exit code 2 says that the data a measurement needs is not here.
bench: $(READY) ## measure, and print the figures (ARGS=speed.end_to_end for one of them)
	@for name in $(or $(ARGS),quality.redaction quality.mentions quality.extraction quality.duplicates speed.derive speed.dreams quality.staleness_on_history quality.staleness_against_blame quality.recall_on_sessions quality.decisions quality.relevance speed.hooks speed.prompts speed.end_to_end); do \
		printf '\n== %s\n' "$$name"; \
		$(BIN)/python -m benchmarks.$$name || test $$? -eq 2 || exit 1; done

bench-quality: $(READY) ## what recall finds, beside BM25 (ARGS="chinese --ablations", ...)
	@$(BIN)/python -m benchmarks.quality.recall $(ARGS)

bench-speed: $(READY) ## how fast it is, beside the floors of the same run (ARGS=... adds flags)
	@$(BIN)/python -m benchmarks.speed.end_to_end $(ARGS)

agents: $(READY) ## drive Claude Code, Codex and OpenCode against a scripted model (ARGS="--agent codex")
	@$(BIN)/python -m benchmarks.agents $(ARGS)

protos: ## compile the gRPC description for Java, Go and Rust, as far as their tools are here
	@clients/proto/check.sh

newcomer: $(READY) ## follow the README from a clean clone in bash and in zsh, and the pages for operators
	@$(BIN)/python -m tests.docs.shell_blocks
	@REVERIE_TEST_STEPS=all $(BIN)/pytest -q tests/e2e/test_operations_guide.py

image: $(READY) ## make the image's environment, and run its commands on servers of their own
	@$(BIN)/pytest -q tests/deploy/image_checks.py

# Each in an environment of its own: what they need cannot be installed together.
adapters: $(READY) ## install the clients and frameworks that are tested with, and run their tests
	@for pair in mem0=mem0ai==2.2.1 hindsight=hindsight-client==1.1.0 \
		"google-adk=google-adk==2.13.0 httpx2 pydantic tenacity" \
		"crewai=crewai==1.15.30 httpx2 pydantic tenacity"; do \
		name=$${pair%%=*}; test -x .adapters/$$name/bin/python || $(UV) venv --quiet --python '<3.14' .adapters/$$name; \
		$(UV) pip install --quiet --python .adapters/$$name/bin/python $${pair#*=} || exit 1; done
	@$(UV) sync --frozen --quiet --inexact --all-extras
	@REVERIE_TEST_STEPS=all $(BIN)/pytest -q tests/adapters tests/compat tests/e2e/mcp_inspector.py \
		tests/interfaces/test_every_interface.py

fuzz: $(READY) ## make up requests for every call and texts for every parser (ARGS=50 for how many)
	@REVERIE_TEST_EXAMPLES=$(or $(ARGS),50) $(BIN)/pytest tests/interfaces/test_openapi_conformance.py \
		-q -k every_call --timeout 14400
	@REVERIE_TEST_EXAMPLES=$(or $(ARGS),500) $(BIN)/pytest tests/security/test_parser_fuzzing.py \
		tests/security/test_pattern_time.py tests/security/test_text_functions.py \
		tests/security/test_request_fuzzing.py tests/interfaces/test_invalid_requests.py \
		tests/domain/redaction/test_redaction_properties.py -q --timeout 14400
	@REVERIE_TEST_EXAMPLES=$(or $(ARGS),500) $(BIN)/pytest tests/adapters tests/agent tests/bus \
		tests/cli tests/client tests/console tests/contracts tests/dream tests/domain tests/engine \
		tests/inference tests/ingest tests/staleness tests/store -q -m hypothesis --timeout 14400

chaos: $(READY) ## faults while clients work, then every step at which a process can be killed (ARGS="--seed 7")
	@$(BIN)/python -m chaos.run --page $(ARGS)
	@$(BIN)/python -m chaos.run --page --several --operations 2000 --faults 20 $(ARGS)
	@REVERIE_TEST_STEPS=all $(PYTEST) chaos tests/engine/test_killed_workers.py

soak: $(READY) ## let it fill its caches, then work for half an hour, and say what grows (ARGS="--minutes 5")
	@$(BIN)/python -m chaos.soak --page $(ARGS)

generate: $(READY) ## write what is generated: gRPC stubs, the OpenAPI document, docs/reference
	@$(BIN)/python -m tests.contracts.test_grpc_stubs
	@$(BIN)/python -m tests.interfaces.test_openapi_document
	@$(BIN)/python -m tests.docs.reference

vendor: $(READY) ## fetch the libraries of the console from the npm registry, by pinned hashes
	@$(BIN)/python -m tests.console.vendored

pictures: $(READY) ## draw docs/pictures from what runs now
	@$(BIN)/python docs/pictures/architecture.py
	@$(BIN)/python docs/pictures/demo.py
	@$(BIN)/python -m benchmarks.trace_picture

clean: ## remove the environment, caches and builds; memories in REVERIE_HOME stay
	@rm -rf .venv .uv .adapters dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find libs services tests benchmarks chaos -name __pycache__ -type d -prune -exec rm -rf {} +

# uv comes from the package registry, pinned, into a folder of its own.
$(UV_READY):
	@test -n "$(PYTHON)" || { echo "Reverie needs Python 3.11 or later, and none was found:" \
		"install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "PYTHON=$(PYTHON) is not Python 3.11 or later:" \
		"name one that is, as in make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments, as it lacks ensurepip:" \
		"install your system's package for it (on Debian and Ubuntu python3-venv)," \
		"or name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Preparing the environment, once ..."
	@rm -rf .uv
	@$(PYTHON) -m venv .uv
	@.uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(READY): uv.lock pyproject.toml $(UV_READY)
	@$(UV) sync --frozen --quiet --python .uv/bin/python --no-python-downloads
	@touch $@
