# Everything runs in a virtual environment of its own; the first target sets it up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MODEL ?= meta-llama/Llama-3.1-70B

.PHONY: run test check bench docs clean

run: $(VENV)/installed
	$(BIN)/chipwise plan $(MODEL) --rate 10/s --in 2000 --out 300 --ttft 1s --tpot 40ms

test: check $(VENV)/browser
	$(BIN)/python -m pytest -n auto --dist loadfile

check: $(VENV)/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/developing
	$(BIN)/python -m bench

# Transcripts, tables and verdicts of the pages made again, then the site, in build/site.
docs: $(VENV)/developing
	$(BIN)/python -m docs.generate
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit('chipwise needs Python 3.11 or newer' if sys.version_info < (3, 11) else 0)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/developing: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[notebook,parquet,serve]' --group dev
	touch $@

# Tests of the page need Chromium and are skipped without it; as root on Debian it is installed here.
$(VENV)/browser: | $(VENV)/developing
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq chromium >/dev/null 2>&1; } || \
	echo "no Chromium: tests in the browser are skipped (Debian: apt-get install chromium)" >&2
	@touch $@
