#!/usr/bin/env bash
# Fuzz the C++ feeder: tools/fuzz_feeder.sh [SECONDS] [CORPUS]
#
# Needs clang++ with libFuzzer. Starts from small generated traces; finds are kept in CORPUS
# (build/fuzz-corpus), a crash is written to the current folder and ends the run with an error.
set -euo pipefail
seconds="${1:-60}"
root="$(cd "$(dirname "$0")/.." && pwd)"
python="${PYTHON:-$root/.venv/bin/python}"
[ -x "$python" ] || python=python3
corpus="${2:-$root/build/fuzz-corpus}"
cpp="$root/chakra_et/feeder/cpp"
mkdir -p "$corpus" "$root/build"
"${CLANGXX:-clang++}" -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=all -DCHAKRA_ET_LIBFUZZER -I "$cpp/include" "$cpp/tests/fuzz.cpp" \
    -o "$root/build/fuzz_feeder"
"$python" "$root/tests/feeder/fuzz_seeds.py" "$corpus"
"$root/build/fuzz_feeder" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
    -malloc_limit_mb=512 -print_final_stats=1 "$corpus"
