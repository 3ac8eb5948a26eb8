# Everything runs in a virtual environment of its own; the first target sets it up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MODEL ?= meta-llama/Llama-3.1-70B

.PHONY: run test check bench clean

run: $(VENV)/installed
	$(BIN)/chipwise plan $(MODEL) --rate 10/s --in 2000 --out 300 --ttft 1s --tpot 40ms

test: $(VENV)/developing
	$(BIN)/python -m pytest

check: $(VENV)/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/developing
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit('chipwise needs Python 3.11 or newer' if sys.version_info < (3, 11) else 0)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/developing: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[parquet]' --group dev
	touch $@
