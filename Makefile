# A machine with Python >= 3.10 and make needs nothing else: every target sets up what it runs with.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/installed
PADDLE_VENV ?= .venv-paddle
# Where the GPU targets run: a Python that has torch with CUDA, triton and pytest already.
GPU_PYTHON ?= $(PYTHON)
# Two workers suit two cores; `make test JOBS=8` suits eight.
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo demo-paddle test lint types pytest format gpu-test bench bench-host clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 19

demo: $(STAMP)  ## run the ten kernels of the paper here and compare each with PyTorch
	@$(BIN)/python -u -m examples.demo

demo-paddle: $(PADDLE_VENV)/installed  ## the same on PaddlePaddle's tensors, in an environment without PyTorch
	@$(PADDLE_VENV)/bin/python -u -m examples.demo paddle

test: lint types pytest  ## all checks: ruff, import-linter, mypy, pytest (GPU tests skip without a GPU)

lint: $(STAMP)  ## ruff: rules and formatting; import-linter: which room knows which
	@echo "== ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "== import-linter"
	@$(BIN)/lint-imports --no-logo --no-cache

types: $(STAMP)  ## mypy over the package
	@echo "== mypy"
	@$(BIN)/mypy

pytest: $(STAMP)  ## the tests alone; ARGS="tests/tensors -k shape" narrows them
	@echo "== pytest ($(JOBS) workers)"
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --durations=15 $(ARGS)

format: $(STAMP)  ## let ruff format the tree and mend what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

gpu-test:  ## the contract on a CUDA device, and the tests that need one, with GPU_PYTHON's own packages
	@NINETOOTHED_TEST_DEVICE=cuda $(GPU_PYTHON) -m pytest -q tests/gpu tests/contract --ignore=tests/contract/test_on_interpreter.py --durations=15 $(ARGS)

bench:  ## the ten tasks beside hand-written Triton and PyTorch on a CUDA device, with GPU_PYTHON's own packages
	@$(GPU_PYTHON) -m benchmarks.tasks $(ARGS)

bench-host: $(STAMP)  ## import, make, compile time as programs grow, and the size of the code, here
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/bench.txt
	@$(BIN)/python -m benchmarks.host.import_time $(ARGS)
	@$(BIN)/python -m benchmarks.host.make_time $(ARGS)
	@$(BIN)/python -m benchmarks.host.compile_growth $(ARGS)
	@$(BIN)/python -m benchmarks.host.code_size $(ARGS)

clean:  ## remove the environment and whatever the tools wrote
	@rm -rf $(VENV) $(PADDLE_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml requirements/test.txt requirements/paddle.txt Makefile
	@$(call set-up,$(VENV),requirements/test.txt,.[test])

$(PADDLE_VENV)/installed: pyproject.toml requirements/paddle.txt Makefile
	@$(call set-up,$(PADDLE_VENV),requirements/paddle.txt,.)

# Makes an environment: its folder, the exact versions, what of this package is installed.
define set-up
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("Python 3.10 or newer is needed; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 ...")'
	echo "== setting up $(1) (once; one to five minutes, most of it the frameworks)"
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --disable-pip-version-check -r $(2) -e '$(3)'
	touch $(1)/installed
	echo "== $(1) is ready"
endef
