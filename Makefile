# `make help` lists what there is. Everything is safe to run again and does nothing that is already done.
SHELL := /bin/bash
DATA_DIR ?= data
SEED ?= 1

.PHONY: help deps build run test test-all bench coverage-page fmt tidy sim clean
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 15

deps: ## install the Debian packages that are missing, for all of the below; build, test and so on install only their own
	@scripts/install-deps

build: ## the release binary at build/release/latchkey, and the embeddable library
	@scripts/install-deps build
	@scripts/build release latchkey_cli latchkey_embedded

run: build ## serve on LISTEN (127.0.0.1:7420) with SQLite in DATA_DIR (./data), with a small live demo (DEMO=0: without)
	@DATA_DIR=$(DATA_DIR) scripts/run

test: ## build and run every test in release
	@scripts/install-deps test
	@scripts/test

test-all: ## every test in its long form, also under ASan + UBSan and TSan: before a release
	@scripts/install-deps test
	@scripts/test-all

bench: ## measure; writes bench/results
	@scripts/install-deps bench
	@scripts/bench

sim: ## replay one simulation: make sim SEED=42
	@scripts/install-deps test
	@scripts/build release simulation_test
	@LATCHKEY_SIM_SEED=$(SEED) build/release/tests/simulation/simulation_test --gtest_filter='*OneSeed*'

coverage-page: ## write docs/coverage.md from docs/coverage.txt and the tests' `// covers:` tags
	@scripts/coverage_page.py

fmt: ## format all C++ files
	@scripts/install-deps tools
	@git ls-files '*.cpp' '*.hpp' | xargs clang-format-19 -i

tidy: ## clang-tidy over src
	@scripts/install-deps tools
	@scripts/build release all
	@git ls-files 'src/*.cpp' | grep -v _test.cpp | xargs clang-tidy-19 -p build/release --quiet

clean: ## remove what was built
	@rm -rf build
