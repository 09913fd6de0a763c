# Two commands do all their own set-up on Debian and Ubuntu:
#   make play   open the playground (without a terminal: run it headless, print the result)
#   make test   run every test
# make picture draws README's picture anew, from a run of the playground.
# make guest installs QEMU and a full kernel of the distribution for `ccplay --guest` (some 100 MB).
# make algorithms installs clang and bpftool (400 MB), for congestion controls as BPF programs.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

# Programs that the lab starts, and the Debian package of each.
TOOLS := mnexec:mininet iperf3:iperf3 ping:iputils-ping wget:wget ip:iproute2 unshare:util-linux \
         iptables-legacy:iptables tcpdump:tcpdump
missing = $(foreach t,$(1),$(if $(shell PATH=$$PATH:/usr/sbin:/sbin command -v $(word 1,$(subst :, ,$t))),,$(word 2,$(subst :, ,$t))))
PACKAGES = $(call missing,$(TOOLS))
VIRTUAL = $(call missing,qemu-system-x86_64:qemu-system-x86 depmod:kmod xz:xz-utils zstd:zstd)
COMPILERS = $(call missing,clang:clang bpftool:bpftool)
INSTALL = $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends

.PHONY: play test lint check format bench wheel clean system algorithms guest picture

play: $(VENV)/ready
	@$(BIN)/ccplay

test: $(VENV)/dev algorithms
	$(SUDO) $(BIN)/python -m tests

lint: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

format: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/dev algorithms
	$(SUDO) $(BIN)/python -m tests.bench

# Under sudo, ccplay run records as root; what it writes belongs to the caller.
picture: $(VENV)/ready
	@mkdir -p build && rm -f build/playground.ccplay build/playground.png
	$(SUDO) $(BIN)/ccplay run playground --record build/playground.ccplay
	$(BIN)/ccplay replay build/playground.ccplay --picture 0:29 --out build/playground.png
	@mv build/playground.png scenarios/playground.png

wheel: $(VENV)/dev
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

system:
	@missing="$(strip $(PACKAGES))"; \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing="$$missing python3-venv"; \
	if [ -n "$$missing" ]; then \
	  echo "installing $$missing"; \
	  $(SUDO) apt-get update -qq && \
	  $(INSTALL) $$missing >/dev/null; \
	fi

# Where they can't be installed, everything else still works and is tested.
algorithms: | system
	@missing="$(strip $(COMPILERS))"; \
	if [ -n "$$missing" ]; then \
	  echo "installing $$missing"; \
	  $(SUDO) apt-get update -qq && $(INSTALL) $$missing >/dev/null || \
	    echo "no BPF algorithms: $$missing can't be installed"; \
	fi

guest: $(VENV)/ready
	@missing="$(strip $(VIRTUAL))"; \
	if [ -n "$$missing" ]; then \
	  echo "installing $$missing"; \
	  $(SUDO) apt-get update -qq && $(INSTALL) $$missing >/dev/null; \
	fi
	@$(BIN)/ccplay guest

$(VENV)/ready: pyproject.toml | system
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ccplay needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing ccplay into $(VENV)"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[report,web]'
	@$(BIN)/python -m compileall -q ccplay # as pip does where it copies; a first start would take twice as long
	@touch $@

$(VENV)/dev: $(VENV)/ready pyproject.toml
	@$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/pip install --quiet --disable-pip-version-check --group dev
	@touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache
