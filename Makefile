# One entry for everything. `make replay` and `make test` need nothing but make, Python 3.10 or newer, a C compiler and
# cargo; all else goes into .venv. A part is built again only when its sources have changed.

.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# For tools that start other tools by name.
WITH_TOOLS = PATH="$(CURDIR)/$(BIN):$$PATH"
ARGS ?=

# rustup's usual place, for shells that have not read its profile yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

PACKAGES := src/triradix reference cython_impl rust_impl
# The other modules of the Cython tree have no Python names of their own.
STUBBED := triradix.cython_impl.cache triradix.cython_impl.results triradix.compare.floor _triradix_rust
TYPED := -p triradix -p profiles -p asv_benchmarks
CYTHON_SOURCES := setup.py pyproject.toml $(wildcard src/triradix/compare/*.pyx \
	cython_impl/*.pyx cython_impl/*.pxd cython_impl/*.pxi cython_impl/*.h)
RUST_SOURCES := $(wildcard rust_impl/Cargo.toml rust_impl/Cargo.lock rust_impl/pyproject.toml rust_impl/*.pyi) \
	$(shell find rust_impl/src rust_impl/build.rs -type f 2>/dev/null)

.PHONY: help setup build replay compare peers sglang serving simulate test test-sglang test-thorough test-peers cargo-test valgrind \
	miri mutants lint lint-python lint-cython lint-rust types format hooks bench bench-full bench-history bench-compare bench-keep \
	bench-publish profile profile-pictures profiling candidates sizes site site-pictures browser-test ablations clean FORCE
.PHONY: models model-mutants sanitizers docs wheels test-wheels image lint-ship cibuildwheel version release release-dry-run

help: ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='	' read -r name what; do \
		printf '  make %-15s %s\n' "$$name" "$$what"; done

setup: build ## Make .venv, install what development needs, build both compiled parts
build: $(STAMPS)/cython $(STAMPS)/rust ## The same: build again what has changed

$(STAMPS)/venv:
	@python=$$(.ci/preflight) && rm -rf $(VENV) && "$$python" -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/tools: .ci/constraints.txt pyproject.toml $(STAMPS)/venv
	@echo "Installing the development tools into $(VENV)"
	@$(PIP) install --quiet --constraint .ci/constraints.txt pip
	@$(PIP) install --quiet --constraint .ci/constraints.txt --group dev
	@touch $@

# What only some targets need: the group of that name.
$(STAMPS)/%-tools: .ci/constraints.txt pyproject.toml $(STAMPS)/venv
	@echo "Installing the tools of the group $* into $(VENV)"
	@$(PIP) install --quiet --constraint .ci/constraints.txt pip
	@$(PIP) install --quiet --constraint .ci/constraints.txt --group $*
	@touch $@

# The installed package is a tree of links to the files that were there at the install: a new file needs a new install.
$(STAMPS)/files: FORCE | $(STAMPS)/venv
	@find $(PACKAGES) \( -name target -o -name __pycache__ \) -prune -o \
		-type f ! -name '*.so' ! -name '*.c' ! -name '*.rs' -print | LC_ALL=C sort > $@.now
	@cmp -s $@.now $@ && rm $@.now || mv $@.now $@

# That tree stands in build/, which somebody may have deleted.
build/.keep:
	@mkdir -p build && touch $@

$(STAMPS)/cython: $(CYTHON_SOURCES) $(STAMPS)/files build/.keep $(STAMPS)/tools
	@echo "Building the Cython part"
	@PYTHONWARNINGS=ignore $(PIP) install --quiet --constraint .ci/constraints.txt --no-build-isolation --editable .
	@touch $@

# After the other part, since triradix-rust depends on triradix.
$(STAMPS)/rust: $(RUST_SOURCES) $(STAMPS)/tools | $(STAMPS)/cython
	@echo "Building the Rust part"
	@cd rust_impl && PIP_QUIET=1 VIRTUAL_ENV="$(CURDIR)/$(VENV)" ../$(BIN)/maturin develop --release --locked
	@touch $@

replay: build ## Run the main job; ARGS="--trace FILE --capacity 500000" and so on are passed on
	$(BIN)/triradix replay $(ARGS)

compare: build ## Measure beside SGLang and Dynamo (their 6 GB go into .peers); ARGS="--quick --peers none" and so on
	$(BIN)/triradix compare --peers .peers $(ARGS)

peers: build ## Only install SGLang and Dynamo into .peers (`make compare` does that too)
	$(BIN)/python -m triradix.compare.peers

sglang: build ## Only install SGLang's engine, for a CPU, into .sglang (6 GB); `make test-sglang` does that too
	$(BIN)/python -m triradix.serving.environment .sglang

test-sglang: sglang ## Pass the tests of the plugin, with the real engine; ARGS="-m 'not long'" takes some minutes
	PYTHONPATH=src/triradix/serving/stubs .sglang/bin/python -m pytest -c tests/sglang/pytest.ini tests/sglang $(ARGS)

serving: build ## Serve with SGLang's real engine and each cache: out/serving.html; ARGS="--quick", ARGS="--trace FILE"
	$(BIN)/python -m triradix.serving.experiment --sglang .sglang $(ARGS)

simulate: build ## Simulate SGLang on a GPU, with real calls of each cache: out/simulation.html; ARGS="--quick --repeats 1"
	$(BIN)/python -m triradix.serving.simulate --sglang .sglang $(ARGS)

test: build ## Pass the tests of all three implementations; ARGS are passed to pytest
	$(BIN)/python -m pytest -n auto $(ARGS)

test-thorough: build cargo-test ## The crate's own tests, then the suite with long fuzzing and soaks
	$(BIN)/python -m pytest -n auto --thorough $(ARGS)

test-peers: build ## Pass the tests of what drives SGLang and Dynamo, which `make peers` has installed
	$(BIN)/python -m pytest -m peers tests/test_compare_peers.py $(ARGS)

cargo-test: $(STAMPS)/venv ## The Rust crate's own tests, without Python, and those of its benchmarks
	cd rust_impl && cargo test --locked
	cd rust_impl && cargo test --locked --benches

# A processor that valgrind plays has no AVX-512, and one that Miri plays has no AVX2: each runs other loops.
CORE_TESTS := --locked --lib core::
MEMCHECK := valgrind --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite

valgrind: $(STAMPS)/venv ## Pass the tests of the Rust core under valgrind; CASES=N random ones of each kind
	@valgrind --version >/dev/null || { echo "triradix: valgrind is needed (Debian, Ubuntu: the package valgrind)." >&2; exit 1; }
	cd rust_impl && PROPTEST_CASES=$(or $(CASES),40) \
		cargo test --config "target.'cfg(unix)'.runner = '$(MEMCHECK)'" $(CORE_TESTS)

miri: $(STAMPS)/venv ## The same under Miri, which a nightly Rust has
	@cargo +nightly miri --version >/dev/null 2>&1 || { echo "triradix: Miri is needed, and the nightly toolchain here has \
	none; install it with 'rustup toolchain install nightly --component miri'." >&2; exit 1; }
	cd rust_impl && PROPTEST_CASES=$(or $(CASES),4) MIRIFLAGS="-Zmiri-disable-isolation" cargo +nightly miri test $(CORE_TESTS)

models: $(STAMPS)/venv ## Try the Rust tree's locks, notes, helpers and forks in every order (loom); PREEMPTIONS=N at most
	cd rust_impl && $(if $(PREEMPTIONS),PREEMPTIONS=$(PREEMPTIONS)) cargo test --locked --features models --target-dir target/models \
		--lib models:: -- --nocapture $(ARGS)

model-mutants: $(STAMPS)/venv ## Plant faults in the Rust tree's locks: the models must catch each (10 minutes)
	PREEMPTIONS=$(or $(PREEMPTIONS),2) $(BIN)/python tests/model_mutants.py $(ARGS)

sanitizers: $(STAMPS)/venv ## The crate's own tests and real threads under the address sanitizer of a nightly Rust (KINDS=thread: the other)
	.ci/sanitizers $(or $(KINDS),address)

# Only what this run has measured stands in the table.
ABLATIONS := $(CURDIR)/rust_impl/target/ablations

ablations: $(STAMPS)/venv ## Measure the Rust tree's design choices against others (10 minutes; ARGS=--quick takes 3)
	@rm -rf "$(ABLATIONS)"
	cd rust_impl && CRITERION_HOME="$(ABLATIONS)" cargo bench --locked --benches --no-fail-fast -- --noplot $(ARGS)
	$(BIN)/python rust_impl/benches/table.py "$(ABLATIONS)" --command "make ablations$(if $(ARGS), ARGS=\"$(ARGS)\")" \
		$(if $(ARGS),,--page docs/ABLATIONS.md)

mutants: build ## Plant faults in the reference: the suite must catch each
	$(BIN)/python tests/mutants.py $(ARGS)

lint: lint-python lint-cython lint-rust ## Formatters and linters of all three languages

# ruff finds by itself only what is called .py.
SCRIPTS = $(shell grep -lE '^.!/usr/bin/env python3' .ci/*)

lint-python: $(STAMPS)/tools
	$(BIN)/ruff check . $(SCRIPTS)
	$(BIN)/ruff format --check . $(SCRIPTS)

lint-cython: $(STAMPS)/tools
	$(WITH_TOOLS) cython-lint cython_impl src/triradix/compare

lint-rust: $(STAMPS)/venv
	cd rust_impl && cargo fmt --check
	cd rust_impl && cargo clippy --locked --all-targets -- --deny warnings

types: build ## mypy --strict, and the stubs of the compiled parts against what they describe
	$(BIN)/mypy $(TYPED)
	$(BIN)/stubtest $(STUBBED) --allowlist .ci/stubtest-allowlist.txt --ignore-unused-allowlist

format: $(STAMPS)/tools ## Format Python and Rust in place
	$(BIN)/ruff check --fix . $(SCRIPTS)
	$(BIN)/ruff format . $(SCRIPTS)
	cd rust_impl && cargo fmt

hooks: $(STAMPS)/tools ## Check each commit before it is made (git pre-commit hook)
	$(BIN)/pre-commit install

# MACHINE names the results, for the benches; without it they are filed under the host name.
BENCH = $(BIN)/python -m asv_benchmarks.bench
NAMED = $(if $(MACHINE),--machine $(MACHINE))

bench: $(STAMPS)/tools ## Measure HEAD, every kind of work once (5 minutes); ARGS="COMMIT RANGE" measures others
	@$(BENCH) short $(NAMED) $(ARGS)

bench-full: $(STAMPS)/tools ## The same with every benchmark at every size (half an hour)
	@$(BENCH) full $(NAMED) $(ARGS)

bench-history: $(STAMPS)/tools ## The headlines alone, for many commits: ARGS="COMMIT RANGE"
	@$(BENCH) history $(NAMED) $(ARGS)

bench-compare: $(STAMPS)/tools ## Is HEAD slower than BASE? ARGS="BASE" or "BASE COMMIT"; measured in turns
	@$(BENCH) compare $(NAMED) $(ARGS)

bench-keep: ## Put what bench-history measured under MACHINE=NAME among the results that the repository keeps
	@$(BIN)/python -m asv_benchmarks.history keep $(or $(MACHINE),$(error say which with MACHINE=NAME))

bench-publish: $(STAMPS)/tools ## asv's own pages of everything kept and measured: .asv/html
	@$(BIN)/python -m asv_benchmarks.history restore
	cd asv_benchmarks && $(WITH_TOOLS) asv publish --no-pull
	@echo "Look at it with: cd asv_benchmarks && ../$(BIN)/asv preview (its pages load scripts from the internet; those of make site do not)"

# The release builds with line numbers, in an environment of their own. py-spy reads the lines of Cython from the C files,
# which therefore stay where they were compiled.
PROFILING := .profiling

$(PROFILING)/built: $(CYTHON_SOURCES) $(RUST_SOURCES) $(shell find $(PACKAGES) -name '*.py') | $(STAMPS)/rust
	@echo "Building both compiled parts with line numbers, in $(PROFILING)"
	@rm -rf $(PROFILING) && mkdir -p $(PROFILING)/src/rust_impl
	@cp -r pyproject.toml setup.py README.md src reference cython_impl $(PROFILING)/src && cp rust_impl/__init__.py $(PROFILING)/src/rust_impl
	@rm -f $(PROFILING)/src/cython_impl/*.c $(PROFILING)/src/cython_impl/*.so
	@PYTHONWARNINGS=ignore $(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir $(PROFILING)/wheels $(PROFILING)/src
	@cd rust_impl && ../$(BIN)/maturin build --quiet --profile profiling --locked --interpreter ../$(BIN)/python --out ../$(PROFILING)/wheels
	@$(BIN)/python -m venv $(PROFILING)/venv
	@$(PROFILING)/venv/bin/python -m pip --disable-pip-version-check --no-input install --quiet \
		--constraint .ci/constraints.txt $(PROFILING)/wheels/*.whl
	@touch $@

profiling: $(PROFILING)/built ## Build both compiled parts with line numbers, for `make profile`: .profiling

profile: profiling ## Record who holds the GIL, who runs and who waits, and make the report: out/profiles
	$(BIN)/python -m profiles all --python $(PROFILING)/venv/bin/python $(ARGS)

profile-pictures: build ## The pictures of what make profile has recorded, for profiles/README.md
	chromium=$$(.ci/chromium) && CHROMIUM="$$chromium" $(BIN)/python -m profiles.picture out/profiles/report.html docs

candidates: build ## Which functions of a Python program would Rust pay for? ARGS="-- python program.py"
	$(BIN)/python -m profiles candidates $(ARGS)

sizes: build ## Lines, build time and wheel size of each tree; ARGS="--compare out/compare.json --page docs/COMPARISON.md"
	$(BIN)/python -m asv_benchmarks.sizes $(ARGS)

site: build ## Make the site of everything measured, to be opened from any folder: out/site/index.html
	$(BIN)/python -m asv_benchmarks.site $(ARGS)

site-pictures: site ## The same, and its pictures for the README: docs/site.png, docs/asv.png
	chromium=$$(.ci/chromium) && CHROMIUM="$$chromium" $(BIN)/python -m asv_benchmarks.site.pictures out/site docs

browser-test: build ## Pass the tests of the pages in a headless Chromium
	chromium=$$(.ci/chromium) && CHROMIUM="$$chromium" $(BIN)/python -m pytest -m browser tests/test_site_browser.py \
		tests/test_profiles_browser.py $(ARGS)

docs: build $(STAMPS)/docs-tools ## Make the documentation, with every link checked: out/docs/index.html
	$(WITH_TOOLS) NO_MKDOCS_2_WARNING=1 mkdocs build --strict --site-dir out/docs

wheels: $(STAMPS)/ship-tools ## Build and check sdists and wheels for every Python here (PYTHONS="python3.11 …"): dist
	$(BIN)/python .ci/wheels

test-wheels: ## Install dist/ without a compiler for every Python here (or PYTHONS), and pass the suite there
	.ci/test-wheels $(ARGS)

# For both distributions the Pythons that pyproject.toml names; the test of the second installs what the first has made.
CIBUILDWHEEL := python3 -m cibuildwheel --config-file pyproject.toml --output-dir dist

cibuildwheel: ## The wheels of this system with cibuildwheel, for CI's macOS and its like: dist
	python3 -m pip install --quiet --constraint .ci/constraints.txt --group cibuildwheel
	$(CIBUILDWHEEL) .
	CIBW_TEST_COMMAND="python -c \"import triradix; triradix.create('rust')\"" PIP_FIND_LINKS="$(CURDIR)/dist" $(CIBUILDWHEEL) rust_impl

image: $(STAMPS)/venv ## Build the image and try it, without a container engine its steps; ARGS="--engine podman --stand-in"
	$(BIN)/python .ci/image $(ARGS)

lint-ship: $(STAMPS)/ship-tools ## Check the workflows, the Dockerfile and the shell scripts
	@.ci/lint-ship

release-dry-run: $(STAMPS)/ship-tools ## A release of VERSION=0.2.0 from the commit to clean environments, in a copy
	.ci/release --dry-run $(or $(VERSION),$(error say which with VERSION=0.2.0))

release: ## Commit and tag VERSION=0.2.0; pushing the tag publishes it
	.ci/release $(or $(VERSION),$(error say which with VERSION=0.2.0))

version: ## Print the version; with VERSION=0.2.0 set it in all places
	@.ci/version $(VERSION)

clean: ## Remove everything that was made, .venv too (but not .peers and .sglang, which took long to download)
	rm -rf $(VENV) $(PROFILING) build dist out .asv .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	rm -f cython_impl/*.c cython_impl/*.so src/triradix/compare/*.c src/triradix/compare/*.so
	rm -rf rust_impl/target
