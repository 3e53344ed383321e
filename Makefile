BIN := .venv/bin
RUN_STAMP := .venv/.stamp-run
STAMP := .venv/.stamp
BENCH_STAMP := .venv-bench/.stamp
HELP := src/toolcrib/surfaces/help
TEST := $(BIN)/pytest -n auto --dist loadgroup
CODE := src tests benchmarks scripts docs
# The site, moved into the package when it is complete; two builds at once do not meet.
SITE := mkdir -p .cache && folder=$$(mktemp -d .cache/site-XXXXXX) && { \
	$(BIN)/sphinx-build -q -E -b html -d $$folder/doctrees docs $$folder/html && \
	rm -rf $(HELP) && mv $$folder/html $(HELP); done=$$?; rm -rf $$folder; exit $$done; }

.PHONY: help run venv test fuzz coverage nightly ordinary pythons check measures docs bench lock parts clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

run: $(RUN_STAMP) ## the service on embedded defaults, with a sample catalogue
	@echo "toolcrib: for the command line, in another terminal: export PATH=\"$(CURDIR)/$(BIN):\$$PATH\"" >&2
	@echo "toolcrib: starting the service; Ctrl-C stops it. The guides at /help follow in a moment" >&2
	@nice $(MAKE) -s $(HELP)/index.html & exec $(BIN)/toolcrib serve --sample $(ARGS)
$(RUN_STAMP): pyproject.toml constraints-run.txt
	@scripts/install .venv constraints-run.txt
	@touch $(RUN_STAMP)
$(HELP)/index.html: $(shell find docs -name '*.md' -o -name '*.py')
	@$(SITE)

venv: $(STAMP) ## everything that tests and checks need, in .venv
$(STAMP): pyproject.toml constraints.txt
	@scripts/install .venv constraints.txt
	@touch $(RUN_STAMP) $(STAMP)

test: venv parts ## every test, against real parts
	$(TEST) $(ARGS)

ordinary: venv parts ## what depends on who runs it, as an ordinary user
	scripts/ordinary $(ARGS)

pythons: venv ## the fast part of the suite on the other supported Pythons that are installed
	scripts/pythons

fuzz: venv ## damaged input for all that reads a stranger's, FUZZ_SECONDS each (120); what fails stays in .cache/fuzz
	$(BIN)/python -m tests.attacks.fuzz $(ARGS)

coverage: venv parts ## every test, measured: the programs that run in processes of their own count too
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	$(BIN)/coverage run $(TEST:$(BIN)/%=-m %) $(ARGS)
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report --sort=cover >.cache/coverage/report; done=$$?; \
	awk 'NR <= 12 || /^TOTAL/' .cache/coverage/report; exit $$done

nightly: venv parts ## every test, in an order drawn anew, with new examples for every law, ten times as many
	TEST_ORDER=$${TEST_ORDER:-$$(date +%s)} HYPOTHESIS_PROFILE=explore $(TEST) --timeout 1200 $(ARGS)

check: venv ## lint, format, types, architecture, dead code, dependencies
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/deptry src
	$(BIN)/pytest -q tests/test_public_api.py

docs: venv ## the reference pages and the site; a broken link fails it
	$(BIN)/python scripts/build_docs.py
	$(SITE:-q=-q -W --keep-going)
	@echo "toolcrib: the site is $(HELP)/index.html"

measures: venv ## how large the code is, and the modules that a request passes through
	$(BIN)/python scripts/measures
	$(BIN)/python scripts/walks

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
