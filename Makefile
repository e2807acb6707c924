# Two commands: `make demo` and `make test`. Both set up .venv first, with uv where it is present.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.13 python3.12 python3.14 python3.11 python3; do $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
UV := $(shell command -v uv 2>/dev/null)

.PHONY: demo test check unit browser contract bench clean
.DEFAULT_GOAL := demo

$(VENV)/.installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "threefold needs Python 3.11 or newer; none was found"; exit 1; }
ifdef UV
	@uv venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	@uv pip install --quiet --python $(BIN)/python --editable .
else
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
endif
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
ifdef UV
	@uv pip install --quiet --python $(BIN)/python --editable '.[test]'
else
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
endif
	@touch $@

demo: $(VENV)/.installed  ## record, search, remember, compute a context
	@$(BIN)/threefold demo

test: check unit  ## everything that CI runs

check: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

browser:  # the tests of the pages drive the system's Chromium; where it cannot be had they are skipped, and say so
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-noto-core; } >/dev/null 2>&1 || \
	echo "Chromium cannot be installed here (apt-get install chromium): the tests of the pages are skipped"

# Tests wait for processes and servers a third of their time: one more at once than there are processors.
PROCESSES = $$(( $$(getconf _NPROCESSORS_ONLN) + 1 ))

unit: $(VENV)/.tested browser
	$(BIN)/python -m pytest -n $(PROCESSES) $(TESTS)

contract: $(VENV)/.tested  ## the table of capabilities × back ends that ran
	@$(BIN)/python -m pytest tests/contract -n $(PROCESSES) --capabilities

bench: $(VENV)/.installed  ## quality and speed on the data beside the project (DATA=folder)
	$(BIN)/python benchmarks/recall.py --set locomo --data $(or $(DATA),../shared/data)/locomo
	$(BIN)/python benchmarks/latency.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist
