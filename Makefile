# Entry points for people; CMakePresets.json has the builds. Every target sets up what it needs.
BUILD := build/release

.PHONY: build quickstart check check-long fuzz coverage bench asan format clean

build: | setup
	cmake --preset release >/dev/null
	cmake --build --preset release

# Builds Plimsoll, plans a run, trains it for a few minutes, and lets the model write.
quickstart: | setup
	cmake --preset release -DPLIMSOLL_TESTS=OFF -DPLIMSOLL_BENCH=OFF >/dev/null
	cmake --build --preset release
	scripts/quickstart $(BUILD)/plimsoll

# All tests that take minutes, not hours.
check: | setup
	cmake --preset release -DPLIMSOLL_TESTS=ON -DPLIMSOLL_BENCH=ON >/dev/null
	cmake --build --preset release
	scripts/check $(BUILD)

# The tests that take minutes, all tests once more under the sanitizers, the parsers under a fuzzer,
# and the presets that nothing else builds.
check-long: check fuzz
	ctest --test-dir $(BUILD) -C Long -R '\.long$$' --output-on-failure
	cmake --preset asan >/dev/null
	cmake --build --preset asan
	scripts/check build/asan
	cmake --preset minimal >/dev/null
	cmake --build --preset minimal
	build/minimal/plimsoll plan configs/quickstart.toml

# Two minutes of libFuzzer for each parser of files from outside. What it finds goes into
# tests/fuzz/seeds, where `make check` replays it.
fuzz:
	scripts/setup clang libclang-rt-dev
	cmake --preset fuzz >/dev/null
	cmake --build --preset fuzz
	ctest --test-dir build/fuzz -C Long -R '^fuzz\.' --output-on-failure

# The share of lines that the tests reach, by room. TESTS=REGEX runs some of them.
TESTS := .
coverage: | setup
	cmake --preset coverage >/dev/null
	cmake --build --preset coverage
	ctest --test-dir build/coverage -R '$(TESTS)'
	scripts/coverage build/coverage

bench: build
	scripts/bench $(BUILD)

asan: | setup
	cmake --preset asan >/dev/null
	cmake --build --preset asan

format:
	git ls-files '*.h' '*.cc' | xargs clang-format -i

clean:
	rm -rf build

.PHONY: setup
setup:
	@scripts/setup
