PYTHON ?= python3
BIN := .venv/bin
UV := build/bootstrap/bin/uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

# Without compiled modules every process would compile Spark's and pandas' Python anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test proofs services lint bench soak chaos stores patterns operators alerts dstreams mutants cluster lock clean machine

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(BIN)/.installed ## Install everything; the first time takes minutes, later ones a second
	@$(BIN)/python -m millstream.spark

demo: setup ## Run an example application for a minute
	@rm -rf build/demo
	@$(BIN)/millstream run examples/etl/app.py --for 60s --home build/demo
	@$(BIN)/millstream query examples/etl/app.py "SELECT device, average FROM hottest ORDER BY average DESC" --home build/demo

TOGETHER ?= 2

test: $(BIN)/.installed ## Check style, types, layers and behaviour: what CI runs
	@$(MAKE) --no-print-directory -j $(TOGETHER) setup services lint
	$(BIN)/pytest -n $(TOGETHER) --dist loadfile --no-loadscope-reorder

proofs: setup ## Kill drivers of an example twenty times, and prove every operator and example on random runs
	$(BIN)/pytest -m long -n $(TOGETHER) --dist load --no-loadscope-reorder

MISSING := $(strip $(if $(wildcard /usr/lib/postgresql/*/bin/postgres)$(shell command -v postgres),,postgresql) \
  $(if $(shell command -v redis-server),,redis-server) $(if $(shell command -v chromium chromium-browser),,chromium))

services: ## Install what tests start: Postgres, Redis and a browser
	@test -z "$(MISSING)" || test "$$(id -u)" = 0 || { echo \
	  "Tests start programs that are not on this machine: sudo apt-get install $(MISSING), or pytest --no-services"; exit 1; }
	@test -z "$(MISSING)" || { echo "  services  installing $(MISSING), which tests start for themselves"; \
	  apt-get update -qq && apt-get install -qq -y --no-install-recommends $(MISSING) >/dev/null; }

lint: $(BIN)/.installed ## Check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup ## Measure against peers
	$(BIN)/python -m bench

MINUTES ?= 25

soak: setup ## Run an app for MINUTES minutes of small batches, maintained and not, and measure what grows
	$(BIN)/python -m bench.soak --minutes $(MINUTES)

POINTS ?= 330
CASES ?= 250
SEED ?= $(shell date +%s)
CHAOS := --apps examples/etl/app.py tests/resources/shop.py=tests.shop:feeder tests/resources/meters.py=tests.meters:feeder

chaos: setup ## Kill drivers and damage checkpoints in every way, for an hour; POINTS=60 CASES=40 for ten minutes; GO_ON=1 after a stop
	@command -v strace >/dev/null || { echo "Killing at system calls needs strace: apt-get install strace"; exit 1; }
	$(if $(GO_ON),,$(BIN)/python -m tests.damage tests.damaged:finished --cases $(CASES) --seed $(SEED) \
	  --json bench/results/damage.json --document docs/guarantees.md)
	$(BIN)/python -m tests.chaos.upkeep --kills $(KILLS) --seed $(SEED) \
	  --json bench/results/upkeep-killed.json --document docs/guarantees.md
	$(BIN)/python -m tests.chaos.maintained --rounds $(ROUNDS) --seed $(SEED) \
	  --json bench/results/maintained-killed.json --document docs/guarantees.md
	$(BIN)/python -m tests.chaos $(CHAOS) --points $(POINTS) --seed $(SEED) $(if $(GO_ON),--go-on) \
	  --json bench/results/chaos.json --document docs/guarantees.md

KILLS ?= 60
ROUNDS ?= 1

stores: setup services ## Kill KILLS drivers of each of the six stores, and look for rows that are lost, double, torn or stale
	$(BIN)/python -m tests.systems.matrix --faults $(KILLS) --seed $(SEED) \
	  --json bench/results/stores-killed.json --document docs/guarantees.md
	$(BIN)/python -m tests.run.matrix --document docs/guarantees.md

STREAMS ?= 10000

patterns: setup ## Match random patterns in random streams, at least STREAMS of every kind, as trying all subsequences does; GO_ON=1 after a stop
	$(BIN)/python -m tests.operators.patterns.long --streams $(STREAMS) --seed $(SEED) $(if $(GO_ON),--go-on) \
	  --json bench/results/patterns-compared.json

RUNS ?= 200

operators: setup ## Prove operators on RUNS random runs, and hold them to DuckDB and to plain Python on STREAMS streams
	$(BIN)/python -m tests.operators.state.long --streams $(STREAMS) --runs $(RUNS) --seed $(SEED)
	$(BIN)/python -m tests.operators.long --runs $(RUNS) --seed $(SEED)
	$(BIN)/python -m tests.operators.sketches_long --runs $(RUNS) --seed $(SEED) --json bench/results/sketches.json
	$(BIN)/python -m tests.learn.long --runs $(RUNS) --seed $(SEED) --json bench/results/models.json

DELIVERIES ?= 300

alerts: setup ## Deliver alerts while destinations fail, drivers die at every point and zombies wake, DELIVERIES times
	$(BIN)/python -m tests.alert.long --runs $(DELIVERIES) --seed $(SEED)

PROGRAMS ?= 2000

dstreams: setup ## Compare PROGRAMS random functional programs with their rules, and a tenth of them while drivers die
	$(BIN)/python -m tests.dstream.long --programs $(PROGRAMS) --crashed $$(( $(PROGRAMS) / 10 )) --seed $(SEED) \
	  --json bench/results/dstreams-compared.json

mutants: setup services ## Plant one-line faults one by one, and see whether a test notices; ONLY="lake alert" for some rooms; GO_ON=1 after a stop
	$(BIN)/python -m tests.mutants $(if $(ONLY),--only $(ONLY)) $(if $(GO_ON),--go-on) \
	  --json bench/results/mutants.json --document docs/guarantees.md

cluster: setup ## Run an example on a Spark cluster of this machine, and kill parts of it
	$(BIN)/pytest -m cluster

lock: $(UV) ## Lock the newest dependencies that pyproject.toml allows
	$(COMPILE) --upgrade requirements/bootstrap.in -o requirements/bootstrap.txt
	$(COMPILE) --upgrade --extra dev pyproject.toml -o requirements/lock.txt

clean: ## Remove what was built and installed; jars stay in the cache
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

machine:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo \
	  "Millstream needs Python 3.11 or later: apt-get install python3, or make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo \
	  "Python lacks its venv module: apt-get install python3-venv"; exit 1; }
	@"$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version >/dev/null 2>&1 || ls -d /usr/lib/jvm/*/bin >/dev/null 2>&1 || { echo \
	  "Spark needs Java 17 or 21: apt-get install openjdk-17-jre-headless, brew install openjdk@17, or set JAVA_HOME"; exit 1; }

$(UV): requirements/bootstrap.txt | machine
	@echo "  tools     installing uv, which installs the rest quickly"
	@$(PYTHON) -m venv --clear build/bootstrap
	@build/bootstrap/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(BIN)/.installed: requirements/lock.txt pyproject.toml $(UV)
	@echo "  packages  installing what requirements/lock.txt names; Spark alone is 450 MB, so the first time takes minutes"
	@$(UV) venv --quiet --allow-existing --python build/bootstrap/bin/python .venv
	@$(UV) pip sync --python $(BIN)/python --require-hashes --build-constraints requirements/bootstrap.txt requirements/lock.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --build-constraints requirements/bootstrap.txt --editable .
	@touch $@
