#!/usr/bin/env bash
# On a machine with a GPU, Python with JAX for CUDA, and pytest (PYTHON names another one than
# python3); nothing is built or fetched:
#
#   run.sh [PYTEST ARGS...]           the tests, twice: as XLA is by default, and with every call in
#                                     a CUDA graph that may be. JAX_CALLABLE_REQUIRE_GPU=0 skips them
#                                     where there is none.
#   run.sh sanitize [FILE...]         the tests under compute-sanitizer's memcheck, in buffers of
#                                     their own, without those that fail on purpose and those that
#                                     the checker itself makes fail; JOBS processes at a time,
#                                     whose logs go to the folder LOGS.
#                                     SANITIZER names another program than compute-sanitizer;
#                                     SANITIZER_OPTIONS are instead of `--report-api-errors no`: XLA
#                                     asks the driver for much that it does not have.
#   run.sh bench [OUT]                the benchmarks, whose tables go to the file OUT as well. Needs
#                                     g++, nvcc for C++'s side, and Warp for its side.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
export PYTHONPATH=$here/python${PYTHONPATH:+:$PYTHONPATH}
export PYTHONDONTWRITEBYTECODE=1
export JAX_CALLABLE_FIXTURE_CUDA=$here/lib/libfixture_cuda.so
export JAX_CALLABLE_BENCH_OPS_CUDA=$here/lib/libbench_ops_cuda.so
export JAX_CALLABLE_FIXTURE=$here/lib/libfixture.so
export JAX_CALLABLE_REQUIRE_GPU=${JAX_CALLABLE_REQUIRE_GPU:-1}

run_tests() {
    local failed=0 flags=${XLA_FLAGS:-} more set_flags
    "$python" -m jax_callable doctor "$JAX_CALLABLE_FIXTURE_CUDA" || failed=1
    for more in "" --xla_gpu_graph_min_graph_size=1; do
        # XLA takes a blank for the name of a file.
        set_flags=$flags${flags:+${more:+ }}$more
        echo "== XLA_FLAGS=\"$set_flags\""
        XLA_FLAGS=$set_flags "$python" -m pytest -p no:cacheprovider "$here/tests" "$@" || failed=1
    done
    return $failed
}

sanitize() {
    sanitizer=${SANITIZER:-compute-sanitizer}
    command -v "$sanitizer" >/dev/null || sanitizer=/usr/local/cuda/bin/compute-sanitizer
    if ! command -v "$sanitizer" >/dev/null; then
        echo "sanitize: FAILED: compute-sanitizer is not installed; it is part of the CUDA toolkit"
        return 1
    fi
    # shellcheck disable=SC2206 # these are words
    local options=(${SANITIZER_OPTIONS:---report-api-errors no})
    check=("$sanitizer" --tool memcheck --error-exitcode 9 --target-processes all
        --padding 64 --check-exit-code no --require-cuda-init no "${options[@]}" "$python")
    # Each buffer is an allocation of the driver's, whose bounds the checker sees, with room behind it.
    export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async XLA_PYTHON_CLIENT_PREALLOCATE=false
    logs=${LOGS:-$(mktemp -d)}
    mkdir -p "$logs"

    "${check[@]}" -c "
import os, sys, jax, numpy as np, jax_callable
ops = jax_callable.load(sys.argv[1])
try:
    print(ops.writes_past_its_end(np.ones(1024, np.float32)).block_until_ready(), flush=True)
except jax.errors.JaxRuntimeError as error:
    print(error, flush=True)
os._exit(0)  # the CUDA of this process may be broken
" "$JAX_CALLABLE_FIXTURE_CUDA" >"$logs/blind.log" 2>&1
    local status=$?
    if [ $status != 9 ]; then
        cat "$logs/blind.log"
        echo "sanitize: FAILED: a write behind an output's end was not seen (exit code $status, not 9)"
        return 1
    fi
    echo "sanitize: a write behind an output's end is seen"

    # A few tests to a process: the checker itself crashes now and then, whatever JAX program it
    # watches, the more so when threads compile. Then they are tried again, and then fewer.
    local tests pids=() pid failed=0 first jobs=${JOBS:-$((($(nproc) + 1) / 2))} size=8
    cd "$here/tests" || return 1
    [ $# -gt 0 ] || set -- test_*.py
    mapfile -t tests < <("$python" -m pytest -p no:cacheprovider --collect-only -q \
        -m "not deliberate_error and not slow and not unchecked" "${@##*/}" | grep ::)
    if [ ${#tests[@]} = 0 ]; then
        echo "sanitize: FAILED: no tests in $*"
        return 1
    fi
    for ((first = 0; first < ${#tests[@]}; first += size)); do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do sleep 0.2; done
        sanitize_some "$first" "${tests[@]:first:size}" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    if [ $failed = 0 ]; then
        echo "sanitize: passed: ${#tests[@]} tests pass or are skipped, and memcheck saw no error in them"
    else
        echo "sanitize: FAILED; the logs are in $logs"
    fi
    return $failed
}

# The tests given, of which the first has this number.
sanitize_some() {
    local number=$1 status report log try tries=4 half found
    shift
    report=$logs/$number-$#.xml log=$logs/$number-$#.log half=$(($# / 2))
    [ $# -gt 1 ] || tries=20
    for ((try = 1; try <= tries; try++)); do
        "${check[@]}" -m pytest -p no:cacheprovider --junitxml="$report" "$@" >"$log" 2>&1
        status=$?
        # A signal is the end of the checker: a program's end is its exit code. The checker may also
        # fail to start the program, or end in the middle of it, with an exit code of its own, or
        # find nothing but errors of its own, after which it has not seen all.
        grep -qs "<testsuite " "$report" || [ $status = 9 ] || status=255
        [ $status = 9 ] && has_own_errors_only "$log" && status=255
        [ $status -gt 128 ] || break
        rm -f "$report"
    done
    if [ $status -gt 128 ] && [ $half -gt 0 ]; then
        sanitize_some "$number" "${@:1:half}"
        status=$?
        sanitize_some $((number + half)) "${@:half+1}" && [ $status = 0 ]
        return
    fi
    if [ $status = 0 ] && grep -qE "<(failure|error)[ >]" "$report"; then status=1; fi
    found=$(tail -n 20 "$log" | grep -oE "[0-9]+ (passed|skipped)[^=]*" | head -1)
    case $status in
        0) echo "sanitize: tests from $number on: $found (try $try)" ;;
        9) echo "sanitize: tests from $number on: FAILED: memcheck saw errors" ;;
        *) echo "sanitize: tests from $number on: FAILED: pytest did not pass (exit code $status)" ;;
    esac
    [ $status = 0 ] || { echo "$@"; tail -n 60 "$log"; }
    [ $status = 0 ]
}

# Whether all errors in a log of the checker are internal ones.
has_own_errors_only() {
    local own all
    own=$(grep -c "^.*========= Internal error encountered" "$1")
    all=$(grep -oE "ERROR SUMMARY: [0-9]+" "$1" | awk '{ sum += $3 } END { print sum + 0 }')
    [ "$own" -gt 0 ] && [ "$own" = "$all" ]
}

case ${1:-} in
    sanitize) "$@" ;;
    bench) shift && "$python" "$here/bench/bench.py" "$@" ;;
    *) run_tests "$@" ;;
esac
