# Every target makes its own virtual environment when there is none.
# Python keeps what it has compiled: tests start many programs, which would compile it all again.
export PYTHONDONTWRITEBYTECODE :=
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: check demo device-demo test coverage soak mutants lint docs package release wheels fresh picture reproductions bench lock clean

demo: $(VENV)/ready
	mkdir -p demo
	$(BIN)/bandanna plan --arms 4 --rounds 1e5 --epsilon 0.1
	$(BIN)/bandanna study run examples/trial.toml -o demo/results
	$(BIN)/bandanna audit --epsilon 0.1,0.3,1 --draws 2e5 --json > demo/audit.json
	$(BIN)/bandanna study report demo/results --audit demo/audit.json -o demo/report.html
	$(BIN)/bandanna answer examples/trial.csv --arm treatment --control zidovudine --outcome cd4 \
	  --outcome progressed --range cd4=0,1000 --clip --reward --set outcomes.progressed.limit=0.05 \
	  --epsilon 1 --html demo/scorecard.html
	@echo "Open demo/scorecard.html: what a team decides from; and demo/report.html: what privacy costs."

# For working: lint and the tests that find most mistakes, in less than a minute.
check: $(VENV)/ready
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports > /dev/null
	$(BIN)/python -m pytest -n 2 -q tests/policy tests/privacy \
	  tests/contracts/test_learners.py tests/contracts/test_releases.py tests/test_house.py

# In the order of the files, so that the long ones of the service do not come last. SLOW=1 adds what draws a lot or starts
# many programs, as is done before anything lands.
TWO_CORES := -n 2 --dist loadfile --no-loadscope-reorder
test: $(VENV)/ready
	$(BIN)/python -m pytest $(TWO_CORES) $(if $(SLOW),-m "not soak")

# Which branches of the source the tests reach, in subprocesses too; below 90% is an error.
coverage: $(VENV)/ready
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(TWO_CORES) -m "not soak"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90

# A page with three buttons, a hundred visitors in Chromium, a service that learns from their bits.
device-demo: $(VENV)/ready
	$(BIN)/python examples/device/demo.py 100 demo
	@echo "Open demo/device-demo.png."

# The decision service killed 200 times on SQLite and 100 on PostgreSQL, under load; the same again, of two services that share
# a database, mixed at random with restores, full disks and clock steps; 200 such stories of two stores; regret over many runs.
soak: $(VENV)/ready
	$(BIN)/python -m benchmarks.regret
	$(BIN)/python -m pytest -x -q -m soak --hypothesis-profile=new
	$(BIN)/python -m pytest -x -q -m "hypothesis and not soak" --hypothesis-profile=new tests
	BANDANNA_KILLS=200 BANDANNA_SOAK=200 $(BIN)/python -m pytest -x -q -s -m "" \
	  tests/service/test_faults.py tests/store/test_soak.py tests/service/test_soak.py

# Faults planted in the privacy code, one at a time, and which of them no test finds. MUTANTS="bandanna.privacy.composition*"
# chooses some; all take hours. tests/mutants.md has the last report, and why the rest is left.
MUTANTS ?=
mutants: requirements.lock
	test -d .venv-mutants || $(PYTHON) -m venv .venv-mutants
	.venv-mutants/bin/pip install --quiet --require-hashes -r requirements.lock
	.venv-mutants/bin/pip install --quiet --no-deps --no-build-isolation -e .
	.venv-mutants/bin/pip install --quiet mutmut==3.8.0
	OPENBLAS_NUM_THREADS=1 .venv-mutants/bin/mutmut run --max-children 2 $(MUTANTS)
	.venv-mutants/bin/python -m tests.mutants

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The guide as a site in build/docs; a warning or a link that leads nowhere is an error.
docs: $(VENV)/ready
	$(BIN)/python -m sphinx -W --keep-going -q -a -E docs build/docs
	$(BIN)/python docs/check_site.py build/docs

# Both packages in dist, built twice to the same bytes, and tried in environments of their own.
package: $(VENV)/ready
	rm -rf dist build/again
	for out in dist build/again; do \
	  $(BIN)/python -m build --no-isolation --outdir $$out . && \
	  $(BIN)/python -m build --no-isolation --outdir $$out clients/python || exit 1; \
	done
	cd dist && sha256sum * | (cd ../build/again && sha256sum --check --quiet)
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/check_package.py dist

# Whether this may be released: version, changelog, tag, packages. Publishes nothing.
release: package
	$(BIN)/python release/ready.py dist

# Whether every locked dependency has a wheel for each Python version we name; downloads some.
wheels:
	$(PYTHON) release/check_wheels.py

# What a newcomer sees: a clone in an empty folder, with an empty home; after the tests, too.
fresh:
	rm -rf build/fresh && mkdir -p build/fresh/home
	git clone --quiet . build/fresh/bandanna
	cd build/fresh/bandanna && export HOME=$(CURDIR)/build/fresh/home && \
	  $(MAKE) demo && $(MAKE) test && rm -r demo && $(MAKE) demo

# The pictures in the README and in the guide: a scorecard (needs Chromium), what privacy costs in three worlds, and what probing costs.
picture: $(VENV)/ready
	$(BIN)/python -m docs.card docs/images
	$(BIN)/python -m docs.worlds docs/images/worlds.svg
	$(BIN)/python -m docs.frontier docs/images/frontier.svg

# Every reproduction with its full settings, one after the other: an hour or so.
reproductions: $(VENV)/ready
	mkdir -p build
	for name in $$($(BIN)/bandanna reproduce --list | cut -d ' ' -f 1); do \
	  $(BIN)/bandanna reproduce $$name --json > build/$$name.json; \
	  mv build/$$name.json research/results/$$name.json; \
	done
	$(BIN)/python -m research.write_results

bench: $(VENV)/ready
	$(BIN)/python -m benchmarks

$(VENV)/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Bandanna needs Python 3.11 or newer; set PYTHON=")'
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Resolve the newest versions; the file names packages and hashes, no download addresses.
lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet pip-tools
	.venv-lock/bin/python release/requirements.py > .venv-lock/bandanna.in
	.venv-lock/bin/pip-compile --quiet --upgrade --strip-extras --generate-hashes \
	  --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header \
	  --output-file requirements.lock .venv-lock/bandanna.in
	rm -r .venv-lock

clean:
	rm -rf $(VENV) .venv-lock build dist demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
