# Two commands do everything on a machine with Python 3.11+ (venv, pip) and make: `make run` and `make test`.

PYTHON ?= $(shell scripts/python.sh)

# Warm starts skip the install: the stamp's name carries the checksum of what was installed.
sum = $(shell cksum < $(1) | cut -d' ' -f1)
RUN_STAMP := .venv/.installed-$(call sum,requirements.txt)
DEV_STAMP := .venv-dev/.installed-$(call sum,requirements-dev.txt)
AUDIT_STAMP := .venv-audit/.installed-$(call sum,requirements-audit.txt)
UV_STAMP := .uv/.tried-$(call sum,requirements-uv.txt)
CLAUDE_CODE := @anthropic-ai/claude-code@2.1.325 @anthropic-ai/sdk@1.8.0
CLAUDE_CODE_ROUTER := @musistudio/claude-code-router@2.0.0

# Byte code on disk is half of a warm start's speed.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run dev demo screenshots test test-translation torture audit licences upstreams bench bench-docs bench-peers profile lint format types layers venv venv-dev lock browser claude servers clean help

# The production server: web, worker and beat.
run: $(RUN_STAMP)
	@exec .venv/bin/python manage.py up

# Django's own server on daphne, with reload.
dev: $(DEV_STAMP)
	.venv-dev/bin/python manage.py migrate --verbosity 0
	BRIDGE_DEBUG=1 exec .venv-dev/bin/python manage.py runserver --nostatic $(or $(HOST),127.0.0.1):$(or $(PORT),8000)

# A fresh var/demo, filled with a few hundred conversations by driving the real API against a scripted upstream.
demo: $(DEV_STAMP)
	.venv-dev/bin/python -m scripts.demo $(DEMO_ARGS)

# The README's pictures, of the demo.
screenshots: $(DEV_STAMP) browser
	@[ -e var/demo/demo ] || $(MAKE) demo
	.venv-dev/bin/python -m scripts.screenshots

# Everything: lint, types, layers, tests.
test: lint types layers browser claude servers test-translation
	.venv-dev/bin/pytest -n auto --dist worksteal --ignore tests/translation $(PYTEST_ARGS)

# The protocol library alone: without Django, and every branch.
test-translation: $(DEV_STAMP)
	.venv-dev/bin/pytest tests/translation -n auto -p no:django --cov translation --cov-branch --cov-fail-under 100 --cov-report term-missing:skip-covered

# Figures against the budgets, on a quiet machine; BENCH_ARGS="--scale 0.02" tries whether everything works. bench/README.md
bench: $(RUN_STAMP) $(DEV_STAMP)
	.venv-dev/bin/python -m bench.run $(BENCH_ARGS)

# An hour and a half on a quiet machine: everything, then half an hour of everything at once; the results go into docs/.
bench-docs: bench
	.venv-dev/bin/python -m bench.mixed $(MIXED_ARGS)
	.venv-dev/bin/python -m bench.report --write var/bench/results.jsonl

# What the bridge is compared with, beside nginx (`make servers`).
bench-peers: servers
	@[ -x .bench/ccr/node_modules/.bin/ccr ] || { command -v npm >/dev/null && \
		NODE_EXTRA_CA_CERTS=$(SYSTEM_CERTIFICATES) npm install --silent --no-fund --no-audit --prefix .bench/ccr $(CLAUDE_CODE_ROUTER) >/dev/null; } || \
		echo "no claude-code-router (npm): it will not be measured"
	@[ -x .bench/litellm/bin/litellm ] || { $(PYTHON) -m venv .bench/litellm && .bench/litellm/bin/pip install --quiet 'litellm[proxy]==1.106.2'; }

# Where the time of a request goes.
profile: $(DEV_STAMP)
	.venv-dev/bin/python -m bench.profile $(BENCH_ARGS)

# What the vulnerability databases know about what is pinned (asks the network).
audit: $(AUDIT_STAMP)
	.venv-audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements.txt -r requirements-dev.txt

# What each runtime dependency is licensed under; one that nobody has looked at is a failure.
licences: $(RUN_STAMP)
	.venv/bin/python -m scripts.licences

# The README's table of upstreams, from their profiles.
upstreams: $(DEV_STAMP)
	.venv-dev/bin/python -m scripts.upstreams

# The promises under faults, load and malice, in full size (SCALE=0.01 is a hundredth); writes docs/reliability.md. ONLY="kill purge", JOBS=4
torture: $(DEV_STAMP)
	SCALE="$(SCALE)" ONLY="$(ONLY)" JOBS="$(JOBS)" .venv-dev/bin/python -m tests.torture $(PYTEST_ARGS)

# ruff's rules and its formatter, which changes nothing here.
lint: $(DEV_STAMP)
	.venv-dev/bin/ruff format --check .
	.venv-dev/bin/ruff check .

# ruff's formatter and its mends.
format: $(DEV_STAMP)
	.venv-dev/bin/ruff check --fix .
	.venv-dev/bin/ruff format .

# mypy.
types: $(DEV_STAMP)
	.venv-dev/bin/mypy

# import-linter: who may import whom.
layers: $(DEV_STAMP)
	.venv-dev/bin/lint-imports

# The environment of `make run`, which makes it by itself.
venv: $(RUN_STAMP)

# The same with what the tests need.
venv-dev: $(DEV_STAMP)

# The environment has no pip of its own: making one costs three seconds, and uv (or the bootstrap's pip) installs from outside.
define install
@echo "installing $(2) into $(1) (once)"
@$(PYTHON) -m venv --without-pip $(1)
@rm -f $(1)/.installed-*
@# pip reads configuration that uv does not (pip.conf), so it gets its chance when uv is missing or fails.
@[ -x .uv/bin/uv ] && UV_LINK_MODE=copy .uv/bin/uv pip install --quiet --system-certs --compile-bytecode \
	--require-hashes --python $(1)/bin/python -r $(2) \
	|| .uv/bin/python -m pip --python $(1)/bin/python install --quiet --require-hashes -r $(2)
@touch $@
endef

$(RUN_STAMP): | $(UV_STAMP)
	$(call install,.venv,requirements.txt)

$(DEV_STAMP): | $(UV_STAMP)
	$(call install,.venv-dev,requirements-dev.txt)

$(AUDIT_STAMP): | $(UV_STAMP)
	$(call install,.venv-audit,requirements-audit.txt)

$(UV_STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Toolbridge needs Python 3.11 or newer")'
	@$(PYTHON) -m venv .uv
	@.uv/bin/python -m pip install --quiet --require-hashes -r requirements-uv.txt || echo "uv is not to be had; installing with pip instead (slower)"
	@touch $@

# Pins the requirements anew.
lock: $(UV_STAMP)
	for name in requirements requirements-dev requirements-audit requirements-uv; do \
		.uv/bin/uv pip compile --quiet --system-certs --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
			--no-header --python-version 3.11 $(LOCK_ARGS) $$name.in -o $$name.txt || exit 1; \
	done

# npm, like uv above, trusts the machine's certificates: a company's proxy may have its own.
SYSTEM_CERTIFICATES := $(firstword $(NODE_EXTRA_CA_CERTS) $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/ssl/cert.pem))

# Chromium, for the tests; where it or what follows cannot be had they skip loudly (and fail under .ci/run).
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
		echo "no Chromium: the browser tests will be skipped"

# Claude Code and Anthropic's SDK for Node, for the tests.
claude:
	@[ -x .claude-code/node_modules/.bin/claude -a -d .claude-code/node_modules/@anthropic-ai/sdk ] || { \
		command -v npm >/dev/null && NODE_EXTRA_CA_CERTS=$(SYSTEM_CERTIFICATES) npm install --silent --no-fund --no-audit --prefix .claude-code $(CLAUDE_CODE) >/dev/null; } || \
		echo "no Claude Code (npm): its tests will be skipped"

# The tests of deploy/ run the real nginx and PgBouncer.
servers:
	@PATH=$$PATH:/usr/sbin; { command -v nginx && command -v pgbouncer; } >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx-light pgbouncer >/dev/null; } || \
		echo "no nginx or PgBouncer: their tests will be skipped"

# Removes every environment and cache; var/ stays.
clean:
	rm -rf .venv .venv-dev .venv-audit .uv .claude-code .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage

# What each target does: the comment before it.
help:
	@awk '/^# /{said = said substr($$0, 2); next} /^[a-z-]+:/{split($$0, name, ":"); printf "make %-18s%s\n", name[1], said} {said = ""}' Makefile
