# The developers' commands. Each creates .venv first if it is missing; setup prints to stderr, so that
# the last line of `make demo` on stdout is the path of the predictions.
PYTHON := .venv/bin/python
STAMP := .venv/.installed

# Quick tests: everything that starts neither a training run nor a window.
QUICK := tests/architecture tests/contract tests/backend/data tests/backend/tokenizers tests/app/core
RUFF := .venv/bin/ruff
# Tests and the demo start hundreds of processes: compiling our modules anew in each would take a third of their time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all faults clusters check format docs texts screenshots results lock clean moved

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 22

demo: $(STAMP) ## run the demo: in the window, or in the terminal if there is no display
	@.venv/bin/burnish demo

test: $(STAMP) ## run every test that is not slow; ARGS="-k name" or ARGS="-m slow" for others
	@$(PYTHON) -m pytest -n auto --maxprocesses 4 --dist worksteal $(ARGS)

test-all: clusters ## also run the slow tests, such as every hostile input with every command (hours); takes ARGS too
	@$(PYTHON) -m pytest -n auto --maxprocesses 4 --dist worksteal -m "slow or not slow" $(ARGS)

faults: clusters ## kill every process of real runs, fill their disks, delete their folders (an hour); ARGS="--faults-seed N" repeats one
	@$(PYTHON) -m pytest tests/faults -q -n auto --maxprocesses 2 --dist worksteal -m "slow or not slow" $(ARGS)

clusters: $(STAMP) ## install an ssh server, Slurm and Ray for test-all and faults, where that is possible
	@sh packaging/clusters.sh

check: $(STAMP) ## check format, lint, import contracts and types, and run the quick tests
	@$(RUFF) format --check .
	@$(RUFF) check .
	@.venv/bin/lint-imports
	@.venv/bin/basedpyright
	@$(PYTHON) -m pytest -q -n auto --maxprocesses 4 $(wildcard $(QUICK))

format: $(STAMP) ## format the code
	@$(RUFF) check --fix-only --quiet .
	@$(RUFF) format .

docs: $(STAMP) ## generate docs/settings.md from the declarations of all settings
	@$(PYTHON) -m docs.settings_page

texts: $(STAMP) ## collect the window's texts for translation and compile the translations (resources/languages)
	@$(PYTHON) packaging/texts.py

screenshots: $(STAMP) ## draw every page in both themes into docs/screenshots, from a recorded run
	@QT_QPA_PLATFORM=offscreen $(PYTHON) -m docs.screenshots

results: $(STAMP) ## train real models and write docs/results.md (an hour); ARGS="--minilm FOLDER --only squad" for others
	@$(PYTHON) -m docs.results $(ARGS)

lock: $(STAMP) ## renew the lock files in packaging/ (needs the network)
	@$(PYTHON) packaging/lock.py

clean: ## delete .venv, caches and builds; runs and their models stay
	@rm -rf .venv .demo build dist .pytest_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml packaging/setup.sh $(if $(filter $(CURDIR),$(shell cat $(STAMP) 2>/dev/null)),,moved)
	@sh packaging/setup.sh >&2
	@echo "$(CURDIR)" > $(STAMP)

# A checkout that was moved or copied: the scripts in .venv/bin still name the old place.
moved:
