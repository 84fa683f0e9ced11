#!/usr/bin/env bash
# On a machine with a GPU, Python with JAX for CUDA, and pytest (PYTHON names another one than
# python3); nothing is built or fetched:
#
#   run.sh [PYTEST ARGS...]           the tests, twice: as XLA is by default, and with every call in
#                                     a CUDA graph that may be. JAX_CALLABLE_REQUIRE_GPU=0 skips them
#                                     where there is none.
#   run.sh sanitize [FILE...]         the tests under compute-sanitizer's memcheck, in buffers of
#                                     their own, without those that fail on purpose; a process for
#                                     each file of tests, JOBS at a time, whose logs go to the folder
#                                     LOGS. SANITIZER names another program than compute-sanitizer;
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

    local files=("$@") file pids=() pid failed=0 jobs=${JOBS:-$((($(nproc) + 1) / 2))}
    [ $# -gt 0 ] || files=("$here"/tests/test_*.py)
    for file in "${files[@]}"; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do sleep 0.2; done
        sanitize_file "$file" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    if [ $failed = 0 ]; then
        echo "sanitize: passed: the tests pass, and memcheck saw no error in them"
    else
        echo "sanitize: FAILED; the logs are in $logs"
    fi
    return $failed
}

sanitize_file() {
    local name status report seconds=$SECONDS
    name=$(basename "$1" .py)
    report=$logs/$name.xml
    "${check[@]}" -m pytest -p no:cacheprovider -m "not deliberate_error and not slow" \
        --durations=5 --junitxml="$report" "$1" >"$logs/$name.log" 2>&1
    status=$?
    # 5: all of its tests are left out. The checker may fail to start the program, and end with 0.
    if [ $status = 5 ]; then status=0; fi
    if ! grep -q "<testsuite " "$report"; then status=1; fi
    if [ $status = 0 ] && grep -qE "<(failure|error)[ >]" "$report"; then status=1; fi
    case $status in
        0) echo "sanitize: $name: passed in $((SECONDS - seconds)) s: $(tail -n 20 "$logs/$name.log" | grep -oE "[0-9]+ passed[^=]*" | head -1)" ;;
        9) echo "sanitize: $name: FAILED: memcheck saw errors" ;;
        *) echo "sanitize: $name: FAILED: pytest did not pass (exit code $status)" ;;
    esac
    [ $status = 0 ] || tail -n 60 "$logs/$name.log"
    [ $status = 0 ]
}

case ${1:-} in
    sanitize) "$@" ;;
    bench) shift && "$python" "$here/bench/bench.py" "$@" ;;
    *) run_tests "$@" ;;
esac
