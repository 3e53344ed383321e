BIN := .venv/bin
RUN_STAMP := .venv/.stamp-run
STAMP := .venv/.stamp
BENCH_STAMP := .venv-bench/.stamp
HELP := src/toolcrib/surfaces/help
CODE := src tests benchmarks scripts docs

.PHONY: help run venv test pythons nightly check docs bench lock parts clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

run: $(RUN_STAMP) $(HELP)/index.html ## the service on embedded defaults, with a sample catalogue
	@echo "toolcrib: to use the command line in another terminal: export PATH=\"$(CURDIR)/$(BIN):\$$PATH\"" >&2
	@echo "toolcrib: starting the service; Ctrl-C stops it" >&2
	@$(BIN)/toolcrib serve --sample $(ARGS)
$(RUN_STAMP): pyproject.toml constraints-run.txt
	@scripts/install .venv constraints-run.txt
	@touch $(RUN_STAMP)
$(HELP)/index.html: $(RUN_STAMP) $(shell find docs -name '*.md' -o -name '*.py')
	@echo "toolcrib: building the documentation that the service shows at /help" >&2
	@$(BIN)/sphinx-build -q -b html -d .cache/sphinx docs $(HELP)

venv: $(STAMP) ## everything that tests and checks need, in .venv
$(STAMP): pyproject.toml constraints.txt
	@scripts/install .venv constraints.txt
	@touch $(RUN_STAMP) $(STAMP)

test: venv parts ## every test, against real parts
	$(BIN)/pytest -n auto --dist loadgroup $(ARGS)

check: venv ## lint, format, types, architecture, dead code, dependencies
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python scripts/private-names
	$(BIN)/vulture
	$(BIN)/deptry src
	$(BIN)/pytest -q tests/test_public_api.py

docs: venv ## the reference pages and the site; a broken link fails it
	$(BIN)/python scripts/build_docs.py
	$(BIN)/sphinx-build -q -E -W --keep-going -b html -d .cache/sphinx docs $(HELP)
	@echo "toolcrib: $(HELP)/index.html"

bench: $(BENCH_STAMP) ## every benchmark, beside its peers
	@set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; .venv-bench/bin/python $$file; done
$(BENCH_STAMP): constraints-bench.txt pyproject.toml
	@scripts/install .venv-bench constraints-bench.txt
	@touch $(BENCH_STAMP)

lock: ## pin the newest versions that fit
	scripts/lock --upgrade

parts: venv ## Chromium, MongoDB's and Ceph's system packages
	scripts/ensure-parts

clean:
	rm -rf .venv .venv-* .cache .mypy_cache .pytest_cache .ruff_cache build dist $(HELP)
