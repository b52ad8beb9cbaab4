# Every target needs only python3 (3.11 or newer; another one: make PYTHON=/path/to/python3.12 ...); the rest is installed into a cache outside the checkout.
PYTHON ?= python3
VENV := $(shell $(PYTHON) tests/tools/bootstrap.py path)
PY := $(VENV)/bin/python
export PYTHONPATH := operator/src:server/src:tests
export PYTHONDONTWRITEBYTECODE := 1
SOURCES := operator/src server/src tests
.DEFAULT_GOAL := help
.PHONY: help fmt lint types contracts verify test test-unit test-server test-browser test-apiserver test-faults test-images test-cluster bench-server bench-operator demo demo-down images

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

$(VENV)/.complete:
	@$(PYTHON) tests/tools/bootstrap.py ensure > /dev/null

fmt: $(VENV)/.complete ## Format the code and sort imports
	@$(VENV)/bin/ruff check --fix-only --quiet $(SOURCES)
	@$(VENV)/bin/ruff format $(SOURCES)

lint: $(VENV)/.complete ## Check style (ruff)
	@$(VENV)/bin/ruff check $(SOURCES)
	@$(VENV)/bin/ruff format --check $(SOURCES)

types: $(VENV)/.complete ## Check types (mypy, strict)
	@$(VENV)/bin/mypy $(SOURCES)

contracts: $(VENV)/.complete ## Check the walls between packages (import-linter)
	@$(VENV)/bin/lint-imports

verify: lint types contracts ## All static checks

test-unit: $(VENV)/.complete ## Pure cores and contracts between the parts
	@$(PY) -m pytest tests/unit tests/contract

test-server: $(VENV)/.complete ## The real server over a socket, with the tiny checkpoint
	@$(PY) -m pytest tests/server

test-browser: $(VENV)/.complete ## The web page in Chromium, against the real server (root, or chromium, curl and jq installed)
	@$(PY) -m pytest tests/browser

test-apiserver: $(VENV)/.complete ## Operator, resource and chart against a real API server
	@$(PY) -m pytest tests/apiserver

test-faults: $(VENV)/.complete ## The operator under faults: watches, API, kills, two leaders (minutes)
	@$(PY) -m pytest tests/faults

test-images: $(VENV)/.complete ## Both images, built and run (root, buildah, debootstrap)
	@$(PY) -m pytest tests/images

test-cluster: $(VENV)/.complete ## The whole system on a real one-node Kubernetes (root)
	@$(PY) -m pytest tests/cluster

test: $(VENV)/.complete ## Everything; what CI runs
	@$(PYTHON) tests/tools/lanes.py verify test-unit
	@$(PYTHON) tests/tools/lanes.py test-cluster,test-images test-server,test-browser,test-apiserver

bench-server: $(VENV)/.complete ## What the server makes of the card's time, beside other servers (a quarter of an hour)
	@$(PY) -m bench.server

bench-operator: $(VENV)/.complete ## What the operator costs with 1,000 resources, and how fast it is (root; a quarter of an hour)
	@$(PY) -m bench.operator

demo: $(VENV)/.complete ## Bring the whole system up, edit, scale and roll; leaves it running
	@env -u KUBECONFIG $(PY) -m demo

demo-down: $(VENV)/.complete ## Remove everything that the demo brought up
	@env -u KUBECONFIG $(PY) -m localcluster down
	@rm -rf build/demo/bin build/demo/env build/demo/kubeconfig

images: $(VENV)/.complete ## Build both images (BASE_IMAGE=... or a Debian base made here)
	@.ci/images
