BIN := .venv/bin
STAMP := .venv/.stamp
BENCH_STAMP := .venv-bench/.stamp

.PHONY: help venv run test check bench docs lock parts clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

venv: $(STAMP) ## create .venv from the pinned versions
$(STAMP): pyproject.toml constraints.txt
	test -f $(STAMP) || python3 -m venv --clear .venv
	$(BIN)/pip install -qq --require-hashes -r constraints.txt
	$(BIN)/pip install -qq --no-deps --no-build-isolation -e .
	touch $(STAMP)

run: venv ## the service on embedded defaults, with a sample catalogue
	$(BIN)/toolcrib serve --sample $(ARGS)

test: venv parts ## every test, against real parts
	$(BIN)/pytest -n auto --dist loadgroup $(ARGS)

check: venv ## lint, format, types, architecture
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/test_public_api.py

bench: $(BENCH_STAMP) ## every benchmark, beside its peers
	@set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; .venv-bench/bin/python $$file; done
$(BENCH_STAMP): constraints-bench.txt pyproject.toml
	test -f $(BENCH_STAMP) || python3 -m venv --clear .venv-bench
	.venv-bench/bin/pip install -qq --require-hashes -r constraints-bench.txt
	.venv-bench/bin/pip install -qq --no-deps --no-build-isolation -e .
	touch $(BENCH_STAMP)

docs: venv ## the reference pages
	$(BIN)/python scripts/build_docs.py

lock: ## pin the newest versions that fit
	scripts/lock --upgrade

parts: venv ## Chromium, MongoDB's and Ceph's system packages
	scripts/ensure-parts

clean:
	rm -rf .venv .venv-bench .mypy_cache .pytest_cache .ruff_cache build dist
