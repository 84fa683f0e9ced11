"""Modules that are loaded when a program is traced, seen by what the cache of modules gets."""

import pytest

PROLOGUE = """
import os, pathlib
from jax_callable._open import OpenLibrary

def compiled():
    return len(list(pathlib.Path(os.environ["JAX_CALLABLE_CACHE_DIR"]).glob("cuda/*.cubin")))

asked = []
preload = OpenLibrary.preload
def note(self, index, ordinal):
    problem = preload(self, index, ordinal)
    asked.append((ordinal, problem))
    return problem
OpenLibrary.preload = note
count = jax.local_device_count("cuda")
x = jnp.arange(10, dtype=jnp.float32)
"""


@pytest.fixture
def check(python, tmp_path):
    """Runs code in a process whose cache of modules is empty."""
    return lambda code: python(PROLOGUE + code, JAX_CALLABLE_CACHE_DIR=str(tmp_path))


@pytest.mark.parametrize(
    ("name", "ordinals", "expected"),
    [
        ("here", "[0]", 1),
        ("everywhere", "list(range(count))", 1),
        ("nowhere", "[]", 0),
    ],
)
def test_traced_programs(check, name, ordinals, expected):
    check(f"""
f = ops.preload_{name}
traced = jax.jit(lambda x: f(f(x))).trace(x)
assert asked == [(ordinal, None) for ordinal in {ordinals}], asked
assert compiled() >= {expected} and bool(compiled()) == bool({expected}), compiled()
before = compiled()
jax.jit(lambda x: f(x) + 1).trace(x)
assert compiled() == before
assert (np.asarray(traced.lower().compile()(x)) == 4 * np.arange(10)).all()
assert compiled() == max(before, 1)
assert len(asked) == len({ordinals})
""")


def test_programs_for_other_devices_load_nothing(check):
    check("""
for device in ("cpu", jax.devices("cpu")[0]):
    with jax.default_device(device):
        jax.jit(ops.preload_here).trace(x)
        jax.jit(ops.preload_everywhere).trace(x)
assert asked == [] and compiled() == 0
""")


@pytest.mark.parametrize("device", ["'gpu'", "jax.devices('cuda')[-1]"])
def test_the_default_device_is_loaded_on(check, device):
    check(f"""
with jax.default_device({device}):
    jax.jit(ops.preload_here).trace(x)
assert asked == [(0 if {device} == "gpu" else count - 1, None)], asked
assert compiled() == 1
""")


def test_before_jax_has_started_nothing_is_loaded(python, tmp_path):
    python(
        """
from jax._src import xla_bridge
assert not xla_bridge._backends
jax.eval_shape(ops.preload_here, jax.ShapeDtypeStruct((10,), np.float32))
assert ops.preload_here._preload._done == set()
assert (np.asarray(ops.preload_here(np.ones(10, np.float32))) == 2).all()
""",
        JAX_CALLABLE_CACHE_DIR=str(tmp_path),
    )


def test_what_cannot_be_loaded_fails_the_run_and_not_the_trace(check):
    out = check("""
for name in ("use_bad_source", "use_bad_ptx"):
    f = ops[f"fixture_cuda_broken.{name}"]
    lowered = jax.jit(f).trace(x).lower()
    assert "cannot load the CUDA module" in asked[-1][1], asked
    try:
        jax.block_until_ready(lowered.compile()(x))
    except jax.errors.JaxRuntimeError as error:
        print(str(error).splitlines()[0])
assert (np.asarray(ops.preload_here(x)) == 2 * np.arange(10)).all()
""")
    first, second = out.splitlines()
    assert "fixture_cuda_broken.use_bad_source: cannot load the CUDA module" in first
    assert "fixture_cuda_broken.use_bad_ptx: cannot load the CUDA module" in second


def test_the_context_of_the_calling_thread_is_kept(check):
    check("""
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def current():
    context = ctypes.c_void_p(1)
    assert cuda.cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value
x.block_until_ready()
before = current()
for ordinal in range(count):
    with jax.default_device(jax.devices("cuda")[ordinal]):
        jax.jit(ops.preload_here).trace(x)
    assert current() == before
assert len(asked) == count
""")
