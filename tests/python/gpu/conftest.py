"""What the tests on a GPU share: the devices, the fixture's library, counters, other processes."""

import os

# Before JAX starts: other processes of the tests use the GPU as well.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest
from graphs import OWN

import jax_callable

LIBRARY = "JAX_CALLABLE_FIXTURE_CUDA"
PLAIN_LIBRARY = "JAX_CALLABLE_FIXTURE"
REQUIRED = "JAX_CALLABLE_REQUIRE_GPU"


def pytest_configure(config):
    config.addinivalue_line("markers", "deliberate_error: makes the driver or a kernel fail")
    # compute-sanitizer drops empty environment variables, and under it JAX keeps programs with
    # custom calls, C++ ones too, for ever.
    config.addinivalue_line("markers", "unchecked: cannot pass under compute-sanitizer")
    config.addinivalue_line("markers", "slow: more calls than a checked run has time for")


def _find_gpus():
    try:
        return jax.devices("cuda")
    except RuntimeError as error:
        return str(error)


@pytest.fixture(scope="session", autouse=True)
def gpus():
    """The GPUs. Without one the tests are skipped, or fail if they were asked for."""
    found = _find_gpus()
    if isinstance(found, list):
        return found
    why = f"JAX finds no CUDA device: {found}"
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="session")
def cpu():
    """A CPU device beside the GPUs."""
    return jax.devices("cpu")[0]


@pytest.fixture(scope="session")
def library():
    """The path of the fixture's cdylib."""
    path = os.environ.get(LIBRARY)
    if not path:
        pytest.fail(
            f"{LIBRARY} must be the path of the fixture's cdylib: run `cargo xtask gpu-bundle` and "
            "then target/gpu-bundle/run.sh, or build the crate fixture_cuda and set it",
            pytrace=False,
        )
    return pathlib.Path(path)


@pytest.fixture(scope="session")
def ops(gpus, library):
    """The fixture, loaded."""
    return jax_callable.load(library)


@pytest.fixture(scope="session")
def plain_ops(gpus):
    """A library that was built without CUDA."""
    path = os.environ.get(PLAIN_LIBRARY)
    if not path:
        pytest.fail(
            f"{PLAIN_LIBRARY} must be the path of the crate fixture's cdylib", pytrace=False
        )
    return jax_callable.load(path)


@pytest.fixture
def x64():
    """64-bit types in JAX for one test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def body_runs(ops, cpu):
    """How often the bodies of `saxpy` and `saxpy_uncaptured` have run on GPUs."""

    def read():
        jax.effects_barrier()
        with jax.default_device(cpu):
            return np.asarray(ops.body_runs()).tolist()

    return read


@pytest.fixture(scope="session")
def python(gpus, library):
    """Runs code in another process, after a prologue that loads `ops`, `jax` and `np`."""
    prologue = (
        "import jax, numpy as np, jax.numpy as jnp, jax_callable\n"
        f"ops = jax_callable.load({str(library)!r})\n"
        "def body_runs():\n"
        "    jax.effects_barrier()\n"
        "    with jax.default_device(jax.devices('cpu')[0]):\n"
        "        return np.asarray(ops.body_runs()).tolist()\n"
    )

    def run(code, *, capture=False, **environment):
        flags = os.environ.get("XLA_FLAGS", "")
        if capture:
            flags += " --xla_gpu_graph_min_graph_size=1"
        process = subprocess.run(
            [sys.executable, "-c", prologue + code],
            env={**os.environ, "XLA_FLAGS": flags.strip(), **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        if process.returncode != 0:
            pytest.fail(f"exit code {process.returncode}\n{process.stderr}", pytrace=False)
        return process.stdout

    return run


@pytest.fixture(params=OWN)
def mode(request):
    """A graph mode of our own."""
    return request.param


@pytest.fixture
def op(ops, mode):
    """A body of the fixture in the mode, its graphs given up before and its limit as at first."""

    def get(name):
        found = getattr(ops, f"{name}_{mode}")
        found.graphs.clear()
        found.graphs.max = "default"
        return found

    return get


def numbers(*shape, dtype=np.float32, start=0):
    """Different numbers, the same in every run."""
    size = int(np.prod(shape))
    return (np.arange(start, start + size) % 17 - 8).reshape(shape).astype(dtype)


@pytest.fixture(scope="session", name="numbers")
def _numbers():
    return numbers
