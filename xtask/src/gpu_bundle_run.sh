#!/usr/bin/env bash
# Runs the tests on a GPU: twice, as XLA is by default, and with every call in a CUDA graph that may
# be. Needs Python with JAX for CUDA and pytest (PYTHON names another one than python3); nothing is
# built or fetched. Arguments go to pytest. Set JAX_CALLABLE_REQUIRE_GPU=0 to skip without a GPU.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
export PYTHONPATH=$here/python${PYTHONPATH:+:$PYTHONPATH}
export PYTHONDONTWRITEBYTECODE=1
export JAX_CALLABLE_FIXTURE_CUDA=$here/lib/libfixture_cuda.so
export JAX_CALLABLE_FIXTURE=$here/lib/libfixture.so
export JAX_CALLABLE_REQUIRE_GPU=${JAX_CALLABLE_REQUIRE_GPU:-1}
flags=${XLA_FLAGS:-}

failed=0
"$python" -m jax_callable doctor "$JAX_CALLABLE_FIXTURE_CUDA" || failed=1
for more in "" --xla_gpu_graph_min_graph_size=1; do
    # XLA takes a blank for the name of a file.
    set_flags=$flags${flags:+${more:+ }}$more
    echo "== XLA_FLAGS=\"$set_flags\""
    XLA_FLAGS=$set_flags "$python" -m pytest -p no:cacheprovider "$here/tests" "$@" || failed=1
done
exit $failed
