"""What the tests on the CPU share: four devices, the fixture's libraries, counters."""

import os

# Before JAX starts.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)

import functools
import pathlib
import subprocess
import sys

import jax
import jax.monitoring
import numpy as np
import pytest

import jax_callable

VARIABLE = "JAX_CALLABLE_FIXTURE"

_compiled = []


def pytest_configure():
    def listen(event, _seconds, **_details):
        if event == "/jax/core/compile/backend_compile_duration":
            _compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)


@pytest.fixture(scope="session")
def library():
    """The path of the fixture's cdylib."""
    path = os.environ.get(VARIABLE)
    # Not a skip: a run that tests nothing must not look like a pass.
    if not path:
        pytest.fail(
            f"{VARIABLE} must be the path of the fixture's cdylib: run `cargo xtask test pytest`, "
            "or `cargo build --release -p fixture` and set it",
            pytrace=False,
        )
    return pathlib.Path(path)


@pytest.fixture(scope="session")
def sibling(library):
    """The path of another fixture's cdylib, by crate name."""

    def find(name):
        path = library.with_name(library.name.replace("fixture", name))
        if not path.exists():
            pytest.fail(f"{path} is missing: cargo build --release -p {name}", pytrace=False)
        return path

    return find


@pytest.fixture(scope="session")
def ops(library):
    """The fixture, loaded."""
    return jax_callable.load(library)


@pytest.fixture
def rust_several(ops):
    """The twin of `derivatives.several`."""
    return functools.partial(ops.several, 2.5, "label")


@pytest.fixture
def x64():
    """64-bit types in JAX for one test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


class Counter:
    """What a block of code added to a number."""

    def __init__(self, read):
        self._read = read

    def __enter__(self):
        self._start = np.asarray(self._read())
        return self

    def __exit__(self, *_):
        self.added = (np.asarray(self._read()) - self._start).tolist()


@pytest.fixture
def compilations():
    """Counts XLA's compilations: `with compilations() as counter`, then `counter.added`."""
    return lambda: Counter(lambda: len(_compiled))


@pytest.fixture
def runs(ops):
    """Counts runs of `ops.count_pure` and `ops.count_effectful`, as a list of the two."""

    def read():
        jax.effects_barrier()
        return ops.counts()

    return lambda: Counter(read)


@pytest.fixture(scope="session")
def python():
    """Runs code in another process, and returns what that printed."""

    def run(code, *arguments, check=True, **environment):
        process = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        if check and process.returncode != 0:
            pytest.fail(f"exit code {process.returncode}\n{process.stderr}", pytrace=False)
        return process if not check else process.stdout

    return run


@pytest.fixture(scope="session")
def cuda_ops(sibling):
    """The fixture for GPUs, loaded where there is none."""
    return jax_callable.load(sibling("fixture_cuda"))
