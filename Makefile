# The thin front of the build: CMake and Ninja do the work (CMakePresets.json).
SHELL := /bin/bash
.PHONY: all run test bench check check-full format install-deps build

all: build
install-deps:
	@tools/install-deps.sh
build:
	@tools/build.sh release
test: install-deps
	@tools/test.sh
run: install-deps
	@tools/build.sh release quern
	@tools/run.sh
bench: build
	@bench/peer --help
check-full: install-deps
	@tools/check-full.sh
format:
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i
