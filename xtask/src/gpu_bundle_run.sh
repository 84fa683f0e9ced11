#!/usr/bin/env bash
# On a machine with a GPU, Python with JAX for CUDA, and pytest (PYTHON names another one than
# python3); nothing is built or fetched:
#
#   run.sh [PYTEST ARGS...]           the tests, twice: as XLA is by default, and with every call in
#                                     a CUDA graph that may be. JAX_CALLABLE_REQUIRE_GPU=0 skips them
#                                     where there is none.
#   run.sh sanitize [PYTEST ARGS...]  the tests under compute-sanitizer's memcheck, in buffers of
#                                     their own, without those that fail on purpose. SANITIZER names
#                                     another program than compute-sanitizer; SANITIZER_OPTIONS are
#                                     instead of `--report-api-errors no`: XLA asks the driver for
#                                     much that it does not have.
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
    local sanitizer=${SANITIZER:-compute-sanitizer} status
    command -v "$sanitizer" >/dev/null || sanitizer=/usr/local/cuda/bin/compute-sanitizer
    if ! command -v "$sanitizer" >/dev/null; then
        echo "sanitize: FAILED: compute-sanitizer is not installed; it is part of the CUDA toolkit"
        return 1
    fi
    # shellcheck disable=SC2206 # these are words
    local options=(${SANITIZER_OPTIONS:---report-api-errors no})
    local check=("$sanitizer" --tool memcheck --error-exitcode 9 --target-processes all
        --padding 64 --check-exit-code no --require-cuda-init no "${options[@]}" "$python")
    # Each buffer is an allocation of the driver's, whose bounds the checker sees, with room behind it.
    export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async XLA_PYTHON_CLIENT_PREALLOCATE=false

    echo "== a write behind an output's end must be seen"
    "${check[@]}" -c "
import os, sys, jax, numpy as np, jax_callable
ops = jax_callable.load(sys.argv[1])
try:
    print(ops.writes_past_its_end(np.ones(1024, np.float32)).block_until_ready(), flush=True)
except jax.errors.JaxRuntimeError as error:
    print(error, flush=True)
os._exit(0)  # the CUDA of this process may be broken
" "$JAX_CALLABLE_FIXTURE_CUDA"
    status=$?
    if [ $status != 9 ]; then
        echo "sanitize: FAILED: the checker is blind (exit code $status, not 9)"
        return 1
    fi

    echo "== the tests"
    local report
    report=$(mktemp)
    "${check[@]}" -m pytest -p no:cacheprovider -x -m "not deliberate_error and not slow" \
        --junitxml="$report" "$here/tests" "$@"
    status=$?
    # The checker may fail to start the program, and end with 0.
    if [ $status = 0 ] && ! grep -q "<testcase" "$report"; then status=1; fi
    if [ $status = 0 ] && grep -qE "<(failure|error)[ >]" "$report"; then status=1; fi
    rm -f "$report"
    case $status in
        0) echo "sanitize: passed: the tests pass, and memcheck saw no error in them" ;;
        9) echo "sanitize: FAILED: memcheck saw errors, above" ;;
        *) echo "sanitize: FAILED: pytest did not pass (exit code $status)" ;;
    esac
    return $status
}

case ${1:-} in
    sanitize) "$@" ;;
    bench) shift && "$python" "$here/bench/bench.py" "$@" ;;
    *) run_tests "$@" ;;
esac
