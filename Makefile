# The verbs of the project. Each does its own set-up: a fresh clone needs Python 3.11+, make and a package index.
#   make demo                      the whole product on this machine; ARGS="--port 9000" passes on
#   make demo CLUSTER=controlplane the same before a real Kubernetes control plane, in real time
#   make test                      every test; ARGS="-k quota" passes on to pytest
#   make test-cluster              the cluster's tests on a real Kubernetes control plane, built once from Go modules
PYTHON ?= python3
ARGS ?=
CLUSTER ?= simulated
BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test controlplane test-cluster judge lint format docs lock clean

help:
	@echo "make setup | demo | test | controlplane | test-cluster | judge | lint | format | docs | lock | clean"

setup:
	@$(PYTHON) tools/setup.py dev

demo:
	@$(PYTHON) tools/setup.py run
	@exec $(BIN)/python manage.py demo --cluster $(CLUSTER) $(ARGS)

test:
	@$(PYTHON) tools/setup.py test
	@$(BIN)/python -m tools.test $(ARGS)

controlplane:
	@$(PYTHON) tools/controlplane.py

test-cluster: controlplane
	@$(PYTHON) tools/setup.py test
	@$(BIN)/python -m tools.test_cluster $(ARGS)

judge:
	@$(PYTHON) tools/setup.py test
	@$(BIN)/python -m tools.judge $(ARGS)

lint:
	@$(PYTHON) tools/setup.py dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.docs

format:
	@$(PYTHON) tools/setup.py dev
	$(BIN)/ruff check --fix --exit-zero --quiet .
	$(BIN)/ruff format .

docs:
	@$(PYTHON) tools/setup.py run
	@$(BIN)/python -m tools.docs

lock:
	@$(PYTHON) tools/setup.py run
	@$(BIN)/python -m tools.lock

clean:
	rm -rf .venv .judges .cache artifacts staticfiles var .hypothesis
