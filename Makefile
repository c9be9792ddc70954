# The project's commands; each installs what it needs into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --only-binary=:all:
SEEDS ?= 100:16
N ?= 100000
JOBS ?= 2
SIZES ?= S5,S20,S50,S100
JSON ?= results/bench.json
PLOT ?= results/scaling.png

.PHONY: paper quick test slow check bars bench fuzz recorded clean

paper: $(VENV)/.base
	$(BIN)/omdpd paper --report

quick: $(VENV)/.base
	$(BIN)/omdpd paper --quick --report --out results/quick

# Mathematics, every rule, every learner, storage, commands and the pages' snippets: minutes.
test: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) -m "not slow and not whole"

# The same, then clusters, crashes, browsers, notebooks and reruns of the pages' tables.
.PHONY: test-all
test-all: test
	$(BIN)/pytest -n $(JOBS) -m "whole and not slow"

# The tests of the page need a Chromium: this installs Debian's, as root.  Without one they are skipped.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } \
	  || echo "no chromium could be installed: the tests of the page in a browser will be skipped"

# The tests with the oldest versions that pyproject.toml allows, in an environment of their own.
.PHONY: lower
lower:
	$(PYTHON) -m venv .venv-lower
	$(PYTHON) tools/lower_bounds.py > .venv-lower/constraints.txt
	PIP_CONSTRAINT= .venv-lower/bin/pip install --quiet --disable-pip-version-check --only-binary=:all: --constraint .venv-lower/constraints.txt --editable '.[test]'
	.venv-lower/bin/pytest -n 2 -m "not slow and not whole"

slow: $(VENV)/.dev
	$(BIN)/pytest -m slow

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bars: $(VENV)/.dev
	$(BIN)/python -m benchmarks.bars $(SEEDS)
	$(BIN)/python -m benchmarks.standard $(SEEDS)

# The solvers against general ones; with PLOT= the growth with S, A and H is neither measured nor drawn.  Then steps on graphs
# (LARGE=1: larger ones too), and whole episodes; with AGAINST=PATH beside an older checkout.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.solvers --first-use --sizes $(SIZES) $(if $(JSON),--json $(JSON)) $(if $(PLOT),--plot $(PLOT))
	$(BIN)/python -m benchmarks.solvers.sparse_timing $(if $(LARGE),--large)
	$(BIN)/python -m benchmarks.episodes $(if $(AGAINST),--against $(AGAINST))

# Random mirror steps, most of them degenerate: REGION is box, kernel, graph or both (box and kernel).
fuzz: REGION = both
fuzz: $(VENV)/.dev
	$(BIN)/python -m benchmarks.fuzz $(N) --region $(REGION)

# Planning where much is equal: N problems of 0 and 1 against HiGHS.
.PHONY: ties
ties: N = 2000
ties: $(VENV)/.dev
	$(BIN)/python -m benchmarks.planning_ties $(N)

# The site, with every example and tutorial run anew; a warning is an error.
.PHONY: docs docs-serve
docs: $(VENV)/.dev
	$(PIP) --editable '.[docs]'
	$(BIN)/sphinx-build -W --keep-going -q -b html docs results/site
	$(BIN)/python -m tools.site_check results/site
	@echo "open results/site/index.html, or make docs-serve"

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory results/site 8000

# The tables of README and docs that are cheap to make, made again; WHICH=NAME: this one and what its command makes
# beside it, however long it takes (WHICH=docs/PAGE.md: all of a page; docs/numbers.toml has the names).
# `make stale` says which tables, figures and studies were made by other code than this.
.PHONY: numbers stale
numbers: $(VENV)/.dev $(if $(WHICH),$(VENV)/.bench)
	$(BIN)/python -m tools.page_numbers renew $(if $(WHICH),"$(WHICH)")

stale: $(VENV)/.dev
	@$(BIN)/python -m tools.page_numbers

# Sdist and wheel into dist, the wheel with machine code for WITH (WITH="python3.11 python3.13": for both), so that its users
# do not compile at first use.
.PHONY: wheel wheel-check
wheel: $(VENV)/.dev
	$(BIN)/python -m tools.build_wheel $(addprefix --with ,$(WITH))

# Sdist and wheel, built, looked into, installed into a clean environment outside the tree (WITH=python3.13: of
# that Python), used and uninstalled.  The machine code is that of the default learner (ALL=1: of all).
wheel-check: $(VENV)/.dev
	$(BIN)/python -m tools.wheel_check $(WITH) $(if $(ALL),--learners '')

# The comparison of all learners (less than two hours of two cores), and its tables and figures into docs/comparison.md; the prose is ours.
.PHONY: comparison
comparison: $(VENV)/.base
	$(BIN)/python -m tools.page_numbers renew docs/comparison.md

# Every conclusion of docs/comparison.md on fresh instances (QUICK=1: four of them, two minutes of one core); 1 if one falls.
.PHONY: comparison-check
comparison-check: $(VENV)/.base
	$(BIN)/python -m benchmarks.comparison_check $(if $(QUICK),--quick)

# The studies (`python -m benchmarks.studies` lists them), and their tables and figures into docs/studies; the readings are ours.
# Resumable: runs that are finished are in results/studies, unless other code made them.  `make study NAME=growth` renews one, `make studies` all.
.PHONY: study studies
study: $(VENV)/.base
	$(BIN)/python -m tools.page_numbers renew "study-$(NAME)"

studies:
	@for name in $(basename $(notdir $(wildcard docs/studies/data/*.json))); do $(MAKE) study NAME=$$name || exit 1; done

recorded: $(VENV)/.dev
	$(BIN)/python -m tests.recorded.record

# The page's own libraries, renewed from the npm registry at the pinned versions; a test checks their hashes.
.PHONY: vendor
vendor:
	$(PYTHON) tools/vendor.py

clean:
	rm -rf $(VENV) results

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The editable build needs its backend; it comes from a wheel like everything else.  The solvers are compiled here, with two
# cores, so that the first run need not; after an edit of theirs they are compiled when they are called.
$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[plot]'
	$(BIN)/omdpd warm-up
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[dev]'
	$(BIN)/omdpd warm-up
	touch $@ $(VENV)/.base

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) --editable '.[dev,bench]'
	touch $@

# Spoil files of every kind at random for SECONDS seconds; what goes wrong is kept in tests/corpus.
.PHONY: fuzz-files
fuzz-files: SECONDS = 300
fuzz-files: $(VENV)/.dev
	$(BIN)/python -m benchmarks.fuzz_files $(SECONDS)

# Let a process die at each of its calls to the file system.
.PHONY: crash-points
crash-points: $(VENV)/.dev
	$(BIN)/python -m benchmarks.crash_points

# A study of about a thousand runs, killed N times within MINUTES, with two commands at a time on one folder.
.PHONY: soak
soak: N = 200
soak: MINUTES = 120
soak: $(VENV)/.dev
	$(BIN)/python -m benchmarks.chaos $(N) --runs 1000 --writers 2 --jobs 1 --episodes 200 --pause 4 --minutes $(MINUTES)

# Kill a running sweep N times at random moments; every run must end as if nothing had happened.
.PHONY: chaos
chaos: N = 200
chaos: $(VENV)/.dev
	$(BIN)/python -m benchmarks.chaos $(N)
