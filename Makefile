# Two commands do all their own set-up on Debian and Ubuntu:
#   make play   open the playground (without a terminal: run it headless, print the result)
#   make test   run every test
# make test-debian13 runs both on a minimal Debian 13, in a chroot made anew in build/debian13.
# make docs builds the documentation in docs/_build/html; make picture draws its pictures anew, from a
# run of the playground. make dist builds wheel and sdist and tries the wheel in a fresh environment.
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
VENVS = $(shell $(PYTHON) -c 'import ensurepip' 2>/dev/null || echo python3-venv)
VIRTUAL = $(call missing,qemu-system-x86_64:qemu-system-x86 depmod:kmod xz:xz-utils zstd:zstd)
COMPILERS = $(call missing,clang:clang bpftool:bpftool)
TESTED = $(call missing,xz:xz-utils zstd:zstd)
BOOTSTRAP = $(call missing,debootstrap:debootstrap debootstrap:debian-archive-keyring)
INSTALL = $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends
install = if [ -n "$(strip $(1))" ]; then \
	  echo "installing $(strip $(1))"; $(SUDO) apt-get update -qq && $(INSTALL) $(strip $(1)) >/dev/null; fi

.PHONY: play test test-debian13 lint check format bench wheel dist docs clean system algorithms guest picture

play: $(VENV)/ready
	@$(BIN)/ccplay

test: $(VENV)/dev algorithms
	@$(call install,$(TESTED))
	$(SUDO) $(BIN)/python -m tests

# Debian's mirror and apt's proxy, as this machine's own sources name them.
MIRROR = $(or $(shell apt-get indextargets --format '$$(REPO_URI)' 2>/dev/null | grep -m1 '/debian/$$'),http://deb.debian.org/debian/)
PROXY = $(shell apt-config dump --format '%v' Acquire::http::Proxy)
CHROOT := $(CURDIR)/build/debian13

# What is committed is tried. apt, pip, names and certificates are set as on this machine. All mounts are in a
# namespace of their own; the chroot is bound to itself, because labs need a root that is a mount point.
test-debian13:
	@$(call install,$(BOOTSTRAP))
	$(SUDO) rm -rf --one-file-system $(CHROOT)
	$(SUDO) mkdir -p $(CHROOT)
	$(SUDO) env $(if $(PROXY),http_proxy=$(PROXY)) PATH=$$PATH:/usr/sbin:/sbin \
	  debootstrap --variant=minbase --include=make trixie $(CHROOT) $(MIRROR) >/dev/null
	apt-config dump Acquire | $(SUDO) tee $(CHROOT)/etc/apt/apt.conf.d/90host >/dev/null
	for each in /etc/pip.conf /etc/resolv.conf /etc/hosts /etc/ssl/certs; do \
	  if [ -e $$each ]; then $(SUDO) mkdir -p $(CHROOT)/etc/ssl && $(SUDO) cp -rLT $$each $(CHROOT)$$each || exit; fi; done
	$(SUDO) mkdir $(CHROOT)/srv/ccplay
	git archive HEAD | $(SUDO) tar -x -C $(CHROOT)/srv/ccplay
	$(SUDO:sudo=sudo --preserve-env) unshare --mount --pid --fork --kill-child sh -ec ' \
	  mount --bind $$0 $$0; mount -t proc proc $$0/proc; mount --rbind /sys $$0/sys; mount --rbind /dev $$0/dev; \
	  unset MAKEFLAGS MAKELEVEL MFLAGS; exec chroot $$0 sh -ec "cd /srv/ccplay; make play </dev/null; make test"' $(CHROOT)

lint: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.house
	$(BIN)/sphinx-build -q -W --keep-going -n -b html docs docs/_build/html

check: lint test

format: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/dev algorithms
	$(SUDO) $(BIN)/python -m tests.bench

# A dead link or a missing page fails. Nothing is loaded from other servers, now or by a reader.
docs: $(VENV)/dev
	$(BIN)/sphinx-build -q -W --keep-going -n -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Under sudo, ccplay run records as root; what it writes belongs to the caller.
picture: $(VENV)/ready
	@mkdir -p build && rm -f build/playground.ccplay build/playground.png
	$(SUDO) $(BIN)/ccplay run playground --record build/playground.ccplay
	$(BIN)/ccplay replay build/playground.ccplay --picture 0:29 --out build/playground.png
	@mv build/playground.png scenarios/playground.png
	$(BIN)/python docs/pictures.py build/playground.ccplay docs/_static/playground.gif

wheel: $(VENV)/dev
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

# The wheel alone, without the checkout, must run all that it offers.
dist: $(VENV)/dev
	@rm -rf dist
	$(BIN)/python -m ccplay.cli.manual packaging
	$(BIN)/python -m build --outdir dist . >/dev/null
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(SUDO) $(BIN)/python -m tests.wheel dist/*.whl

system:
	@$(call install,$(PACKAGES) $(VENVS))

# Where they can't be installed, everything else still works and is tested.
algorithms: | system
	@$(call install,$(COMPILERS)) || echo "no BPF algorithms: $(strip $(COMPILERS)) can't be installed"

guest: $(VENV)/ready
	@$(call install,$(VIRTUAL))
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
	rm -rf $(VENV) dist build docs/_build .mypy_cache .ruff_cache .pytest_cache
