#!/bin/bash
# build.sh - the fuzzers and their seeds into $OUT, by the compilers and the engine that OSS-Fuzz names: build.sh [NOUN...], all
# of fuzz/*_fuzz.c unless some are named.  oss_fuzz_test runs it with clang's own engine.
set -eu
source=$SRC/perfring
build=${WORK:-$SRC}/build

nouns=("$@")
if [ ${#nouns[@]} = 0 ]; then
	for file in "$source"/fuzz/*_fuzz.c; do
		file=${file##*/}
		nouns+=("${file%_fuzz.c}")
	done
fi

# Where the fuzzers run there are no libraries but the C library's: static ones are found alone.
mkdir -p "$build"
echo 'set(CMAKE_FIND_LIBRARY_SUFFIXES .a)' >"$build/static.cmake"
# The memory sanitizer has to see all code: without libraries.
with=AUTO
[ "${SANITIZER:-}" != memory ] || with=OFF
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" \
	-DCMAKE_C_FLAGS="$CFLAGS" -DCMAKE_CXX_FLAGS="$CXXFLAGS" -DCMAKE_PROJECT_perfring_INCLUDE="$build/static.cmake" \
	-DPERFRING_TESTS=OFF -DPERFRING_TOOL=OFF -DPERFRING_INSTALL=OFF -DPERFRING_FUZZ=ON -DPERFRING_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
	-DPERFRING_WITH_SOFT=OFF -DPERFRING_WITH_PFM=OFF -DPERFRING_WITH_IBERTY=$with -DPERFRING_WITH_LZMA=$with \
	-DPERFRING_WITH_ZLIB=$with -DPERFRING_WITH_ZSTD=$with
cmake --build "$build" --target "${nouns[@]/%/_fuzz}"

for noun in "${nouns[@]}"; do
	cp "$build/fuzz/${noun}_fuzz" "$OUT/"
	# text reads what sample and record do.
	case $noun in text) seeds=(sample record) ;; *) seeds=("$noun") ;; esac
	for seed in "${seeds[@]}"; do
		[ ! -d "$source/fuzz/corpus/$seed" ] || (cd "$source/fuzz/corpus/$seed" && zip -q "$OUT/${noun}_fuzz_seed_corpus.zip" ./*)
	done
done
