"""Copies between the host and the device: kept by `upload`, refused in a capture without it."""

import gc

import jax
import numpy as np
import pytest


@pytest.fixture
def table_holders(ops, cpu):
    def read():
        jax.effects_barrier()
        with jax.default_device(cpu):
            return int(ops.table_holders())

    return read


def test_uploads(ops):
    for a in (1.0, -2.0, 3.0):
        y, z = ops.uploads(a)
        np.testing.assert_array_equal(y, np.arange(1000, dtype=np.float32))
        np.testing.assert_array_equal(z, a * np.arange(7, dtype=np.float32))


def test_uploads_of_another_size(ops):
    with pytest.raises(
        jax.errors.JaxRuntimeError, match="`upload` of 1 elements into an array of 3"
    ):
        ops.uploads_too_few().block_until_ready()


def test_uploads_outside_captures_keep_nothing(ops, table_holders):
    for _ in range(3):
        jax.block_until_ready(ops.uploads(1.0))
    jax.clear_caches()
    gc.collect()
    assert table_holders() == 0


CAPTURED_UPLOADS = """
import gc

@jax.jit
def f(x):
    def step(carry, _):
        y, z = ops.uploads(3.0)
        return carry + y[:7] + z, None
    return jax.lax.scan(step, x, length=4)[0]

def holders():
    jax.effects_barrier()
    with jax.default_device(jax.devices("cpu")[0]):
        return int(ops.table_holders())

right = True
kept = 0
for i in range(6):
    x = jnp.full(7, i, jnp.float32)
    # Memory that was just freed is used again, so that a dangling copy is seen.
    trash = [np.full(7, np.nan, np.float32) for _ in range(1000)]
    right &= bool((np.asarray(f(x)) == i + 16 * np.arange(7)).all())
    kept = max(kept, holders())
print(right)
print("kept", kept)
jax.clear_caches()
del f
gc.collect()
print(holders())
"""


@pytest.mark.unchecked
def test_a_graph_keeps_its_uploads_as_long_as_it_lives(python):
    right, kept, left = python(CAPTURED_UPLOADS, capture=True).splitlines()
    assert right == "True"
    assert kept != "kept 0", "XLA has not captured the call"
    assert left == "0"


CAPTURED = """
x = jnp.arange(10, dtype=jnp.float32)
f = jax.jit(ops.{name})
errors = []
for _ in range(5):
    try:
        np.testing.assert_array_equal(f(x), x)
    except jax.errors.JaxRuntimeError as caught:
        errors.append(str(caught))
print(errors[0])
print(np.asarray(ops.sum(x)))
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("copies_from_the_body", "a captured copy from host memory would read that memory again"),
        ("copies_to_the_body", "a captured copy to host memory would write there"),
    ],
)
def test_copies_with_memory_of_the_body_in_a_capture(python, name, words):
    out = python(CAPTURED.format(name=name), capture=True)
    assert f"FAILED_PRECONDITION: fixture_cuda.{name}: {words}" in out
    assert "graph_mode = None" in out
    assert out.splitlines()[-1] == "45.0"


@pytest.mark.parametrize("name", ["copies_from_the_body", "copies_to_the_body"])
def test_copies_with_memory_of_the_body_outside_captures(python, name):
    out = python(
        f"""
x = jnp.arange(10, dtype=jnp.float32)
print(np.asarray(ops.{name}(x)).tolist() == list(range(10)))
""",
        XLA_FLAGS="--xla_gpu_enable_command_buffer=",
    )
    assert out == "True\n"
