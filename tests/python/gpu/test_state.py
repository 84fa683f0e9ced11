"""Scratch in kernels, state on each device."""

import functools
import gc
import time

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import jax_callable

JaxRuntimeError = jax.errors.JaxRuntimeError


@pytest.fixture(params=["quadruple", "quadruple_uncaptured"])
def quadruple(ops, request):
    return getattr(ops, request.param)


@pytest.fixture(params=["add_weights", "add_weights_uncaptured"])
def add_weights(ops, request):
    return getattr(ops, request.param)


@pytest.fixture
def counts(ops, cpu):
    """How many weights were built and dropped in a block of code: a function that tells."""

    def read():
        jax.effects_barrier()
        with jax.default_device(cpu):
            return np.asarray(ops.weight_counts())

    def start():
        # Programs of earlier tests must not go meanwhile.
        jax.clear_caches()
        gc.collect()
        live = None
        while live != (live := jax_callable.live_call_sites(ops)):
            time.sleep(0.05)
        before = read()
        return lambda: (read() - before).tolist()

    return start


def test_scratch_in_a_kernel(quadruple, numbers):
    f = jax.jit(quadruple)
    for n in (1, 1000, 0, 12345):
        x = numbers(n)
        np.testing.assert_array_equal(quadruple(x), 4 * x)
        for _ in range(3):
            np.testing.assert_array_equal(f(x), 4 * x)


def test_scratch_is_no_result(quadruple, numbers):
    (shape,) = jax.make_jaxpr(quadruple)(numbers(10)).out_avals
    assert shape.shape == (10,)


def test_scratch_for_cudarc_beside_an_in_out(ops, numbers):
    x, y = numbers(500), numbers(500, start=3)
    for room in (1, 7):
        f = jax.jit(functools.partial(ops.add_five_times, room))
        for _ in range(3):
            np.testing.assert_array_equal(f(x, y), 5 * x + y)
    with pytest.raises(JaxRuntimeError, match=r"fixture_cuda\.add_five_times: expected room"):
        jax.block_until_ready(ops.add_five_times(0, x, y))


def test_scratch_of_a_donated_call(ops, numbers):
    f = jax.jit(functools.partial(ops.add_five_times, 2), donate_argnums=1)
    x, y = numbers(500), jax.device_put(numbers(500, start=3))
    address = y.unsafe_buffer_pointer()
    result = f(x, y)
    np.testing.assert_array_equal(result, 5 * x + numbers(500, start=3))
    assert result.unsafe_buffer_pointer() == address


@pytest.mark.parametrize("method", ["broadcast_all", "sequential"])
def test_scratch_under_vmap(quadruple, method, numbers):
    x = numbers(6, 50)
    f = jax.jit(jax.vmap(functools.partial(quadruple, vmap_method=method)))
    for _ in range(3):
        np.testing.assert_array_equal(f(x), 4 * x)
    if method == "broadcast_all":
        assert "(tensor<6x50xf32>, tensor<50xf32>)" in f.lower(x).as_text()


def loops(quadruple, ops, numbers):
    """A while loop and a scan of bodies with scratch, among matrix products and constants."""
    matrix = np.eye(64, dtype=np.float32) * 0.25
    constants = [numbers(64), numbers(64, 64, start=5), np.float32(3.25), numbers(2000, start=2)]
    kept = float(sum(np.sum(constant, dtype=np.float64) for constant in constants))
    multiply = functools.partial(jnp.matmul, precision="highest")

    def step(y):
        y = multiply(quadruple(multiply(y, matrix)), 4 * matrix)
        y = ops.add_five_times(3, constants[0], y)
        return y, sum(jnp.sum(jnp.asarray(constant)) for constant in constants)

    start = numbers(64, start=3)
    expected = start + 7 * 5 * constants[0]

    @jax.jit
    def scanned(y):
        return jax.lax.scan(lambda y, _: step(y), y, None, 7)

    @jax.jit
    def looped(y):
        def body(state):
            i, y, _ = state
            return (i + 1, *step(y))

        return jax.lax.while_loop(lambda s: s[0] < 7, body, (0, y, jnp.float32(0)))

    for _ in range(5):
        y, each = scanned(start)
        np.testing.assert_allclose(y, expected, rtol=1e-5)
        np.testing.assert_allclose(each, [kept] * 7, rtol=1e-5)
        _, y, last = looped(start)
        np.testing.assert_allclose(y, expected, rtol=1e-5)
        np.testing.assert_allclose(last, kept, rtol=1e-5)


def test_constants_in_loops_stay(quadruple, ops, numbers):
    loops(quadruple, ops, numbers)


CAPTURED = """
import importlib.util, inspect
spec = importlib.util.spec_from_file_location("state_tests", {path!r})
tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tests)
def numbers(*shape, dtype=np.float32, start=0):
    size = int(np.prod(shape))
    return (np.arange(start, start + size) % 17 - 8).reshape(shape).astype(dtype)
"""


def test_in_graphs_of_xla(python):
    python(
        CAPTURED.format(path=__file__)
        + """
x = numbers(1000)
for name in ("quadruple", "quadruple_uncaptured"):
    quadruple = getattr(ops, name)
    tests.loops(quadruple, ops, numbers)
    f = jax.jit(lambda x: quadruple(x + 1) - 1)
    kept = []
    for i in range(20):
        result = f(x + i)
        assert (np.asarray(result) == 4 * (x + i + 1) - 1).all(), i
        kept += [result] * (i % 3)
for name in ("add_weights", "add_weights_uncaptured"):
    f = jax.jit(lambda y: getattr(ops, name)(1000, 2.0, y * 2) + 1)
    for i in range(20):
        result = np.asarray(f(x + i))
        assert (result == 2 * (x + i) + 2 * np.arange(1000) + 1).all(), (name, i)
jax.effects_barrier()
with jax.default_device(jax.devices("cpu")[0]):
    assert np.asarray(ops.weight_counts())[0] == 2
""",
        capture=True,
    )


def test_state_is_built_once_for_a_device(add_weights, counts, numbers):
    added = counts()
    y = numbers(100)
    f = jax.jit(lambda y: add_weights(200, 3.0, add_weights(100, 2.0, y)))
    for _ in range(5):
        np.testing.assert_array_equal(f(y), y + 5 * np.arange(100))
    assert added() == [2, 0]


def test_state_is_built_for_each_device(add_weights, counts, gpus, numbers):
    if len(gpus) < 2:
        pytest.skip("one GPU only")
    added = counts()
    y = numbers(100)
    f = jax.jit(functools.partial(add_weights, 111, 2.0))
    for i in range(3 * len(gpus)):
        device = gpus[i % len(gpus)]
        result = f(jax.device_put(y, device))
        assert result.devices() == {device}
        np.testing.assert_array_equal(result, y + 2 * np.arange(100))
    mesh, spec = jax.sharding.Mesh(gpus, "d"), jax.sharding.PartitionSpec("d")
    built = added()[0]
    sharded = jax.shard_map(
        functools.partial(add_weights, 112, 2.0), mesh=mesh, in_specs=spec, out_specs=spec
    )
    for _ in range(3):
        result = jax.jit(sharded)(np.tile(y, len(gpus)))
        np.testing.assert_array_equal(result, np.tile(y + 2 * np.arange(100), len(gpus)))
    # One program for all of them, in which each has its own.
    assert added()[0] - built == len(gpus)


@pytest.mark.unchecked
def test_state_is_dropped_with_the_program(add_weights, counts, numbers):
    added = counts()
    f = jax.jit(lambda y: add_weights(200, 3.0, add_weights(100, 2.0, y)))
    jax.block_until_ready(f(numbers(100)))
    assert added() == [2, 0]
    del f
    jax.clear_caches()
    gc.collect()
    deadline = time.monotonic() + 10
    while added()[1] < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert added() == [2, 2]
    # Memory of the device is still right for others.
    np.testing.assert_array_equal(add_weights(3, 1.0, np.zeros(3, np.float32)), [0, 1, 2])


def test_constructors_that_fail_on_a_device(add_weights, counts, numbers):
    added = counts()
    name = add_weights.target.path
    for _ in range(2):
        with pytest.raises(JaxRuntimeError) as error:
            jax.block_until_ready(add_weights(0, 2.0, numbers(10)))
        wanted = f"OUT_OF_RANGE: {name}: cannot build its state: no weights were asked for"
        assert wanted in str(error.value)
    assert added() == [0, 0]
    np.testing.assert_array_equal(add_weights(3, 1.0, np.zeros(3, np.float32)), [0, 1, 2])


def test_state_of_the_host(ops, numbers):
    y = numbers(4)
    f = jax.jit(lambda y: ops.add_offset(8.0, ops.add_offset(0.5, y)))
    for _ in range(5):
        np.testing.assert_array_equal(f(y), y + 8.5)


def test_one_program_for_both_platforms(ops, cpu, gpus, numbers):
    x = numbers(100)
    checks = jax_callable.disabled_checks(ops)
    exported = jax.export.export(
        jax.jit(lambda x: ops.quadruple(x) + 1), disabled_checks=checks, platforms=("cpu", "cuda")
    )(x)
    for device in (cpu, gpus[0], cpu):
        result = exported.call(jax.device_put(x, device))
        assert result.devices() == {device}
        np.testing.assert_array_equal(result, 4 * x + 1)
