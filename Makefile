# Everything runs in a virtual environment of its own; the first target sets it up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MODEL ?= meta-llama/Llama-3.1-70B

.PHONY: run test whole check bench mutants docs wheel sbom audit lock clean

run: $(VENV)/installed
	$(BIN)/chipwise plan $(MODEL) --rate 10/s --in 2000 --out 300 --ttft 1s --tpot 40ms

test: check $(VENV)/browser
	$(BIN)/python -m pytest -n auto --dist worksteal
	$(MAKE) wheel

# Every question of the long lists, of which `make test` asks some.
whole: $(VENV)/browser
	CHIPWISE_WHOLE=1 $(BIN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/developing
	$(BIN)/python -m bench

# Whether tests notice when a line that matters is changed, one at a time: minutes.
mutants: $(VENV)/developing
	$(BIN)/python -m bench.mutants

# Transcripts, tables and verdicts of the pages made again, then the site, in build/site.
docs: $(VENV)/developing
	$(BIN)/python -m docs.generate
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The wheel and the source archive, each installed alone and tried; PYTHON=python3.13 tries another version.
wheel: $(VENV)/developing
	rm -rf build/dist build/tried
	$(BIN)/python -m build --outdir build/dist .
	for file in build/dist/*.whl build/dist/*.tar.gz; do \
	$(PYTHON) -m venv --clear build/tried && \
	build/tried/bin/python -m pip install --quiet --disable-pip-version-check "$$file[serve]" && \
	(cd build/tried && bin/python -I ../../tests/installed.py bin/chipwise) || exit 1; done

# All parts of a server with versions, licences and hashes (CycloneDX), by a tool in an environment of its own.
sbom:
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/python -m pip install --quiet --disable-pip-version-check 'cyclonedx-bom>=7,<8'
	build/sbom/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file build/sbom.json requirements.lock

# Known vulnerabilities of what is locked; it asks PyPI about these packages, and fails where it cannot.
audit:
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.9,<3'
	for lock in requirements.lock requirements-dev.lock; do \
	build/audit/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off --requirement $$lock || exit 1; done

# What a server is made of with hashes, and what tests are run with: builds of torch differ by index, and so do hashes.
lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --no-header --upgrade --extra serve --generate-hashes --output-file requirements.lock pyproject.toml
	build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --upgrade --extra serve --extra parquet --extra notebook --group dev --output-file requirements-dev.lock pyproject.toml

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit('chipwise needs Python 3.11 or newer' if sys.version_info < (3, 11) else 0)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/developing: $(VENV)/installed requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements-dev.lock --editable '.[notebook,parquet,serve]' --group dev
	touch $@

# Tests of the page need Chromium and are skipped without it; as root on Debian it is installed here.
$(VENV)/browser: | $(VENV)/developing
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq chromium >/dev/null 2>&1; } || \
	echo "no Chromium: tests in the browser are skipped (Debian: apt-get install chromium)" >&2
	@touch $@
