"""One computation in every graph mode, in JAX's transformations."""

import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

MODES = ["saxpy", "saxpy_uncaptured", "saxpy_warp", "saxpy_staged", "saxpy_staged_ex"]


@pytest.fixture(params=MODES)
def saxpy(ops, request):
    return getattr(ops, request.param)


def test_eager_and_jit(saxpy, numbers):
    x, y = numbers(1000), numbers(1000, start=3)
    for f in (saxpy, jax.jit(saxpy, static_argnums=0)):
        result = f(2.5, x, y)
        assert result.devices().pop().platform == "gpu"
        np.testing.assert_array_equal(result, 2.5 * x + y)


def test_scalars_change_from_call_to_call(saxpy, numbers):
    x, y = numbers(10), numbers(10, start=3)
    f = jax.jit(saxpy, static_argnums=0)
    for a in (1.0, -2.0, 0.0, 1.0):
        np.testing.assert_array_equal(f(a, x, y), np.float32(a) * x + y)


def test_an_input_that_is_not_donated_is_kept(saxpy, numbers):
    x, y = jnp.asarray(numbers(100)), jnp.asarray(numbers(100, start=3))
    before = np.asarray(y).copy()
    saxpy(2.0, x, y).block_until_ready()
    np.testing.assert_array_equal(y, before)


def test_a_donated_in_out_is_written_in_place(saxpy, numbers):
    f = jax.jit(functools.partial(saxpy, 2.0), donate_argnums=1)
    x, y = numbers(1000), numbers(1000, start=3)
    device_y = jax.device_put(y)
    address = device_y.unsafe_buffer_pointer()
    result = f(x, device_y)
    np.testing.assert_array_equal(result, 2 * x + y)
    assert device_y.is_deleted()
    assert result.unsafe_buffer_pointer() == address


def test_one_array_as_input_and_in_out(saxpy, numbers):
    x = jnp.asarray(numbers(100))
    np.testing.assert_array_equal(saxpy(2.0, x, x), 3 * np.asarray(x))
    both = jax.jit(lambda x: saxpy(2.0, x, x))
    np.testing.assert_array_equal(both(x), 3 * np.asarray(x))


def test_addresses_that_move_and_repeat(saxpy, numbers):
    f = jax.jit(functools.partial(saxpy, 2.0))
    kept = []
    for i in range(20):
        x, y = numbers(500, start=i), numbers(500, start=2 * i)
        # Every other result stays, so that the next one lies elsewhere.
        result = f(x, y)
        np.testing.assert_array_equal(result, 2 * x + y)
        kept += [result] * (i % 2)
    x, y = jnp.asarray(numbers(500)), jnp.asarray(numbers(500, start=1))
    for _ in range(10):
        np.testing.assert_array_equal(f(x, y), 2 * np.asarray(x) + np.asarray(y))


def test_scan_while_and_cond_beside_matmuls(saxpy, numbers):
    matrix = np.eye(64, dtype=np.float32) * 0.5
    x, y = numbers(64), numbers(64, start=5)

    def step(y):
        # On some GPUs the default precision is less than that of float32.
        multiply = functools.partial(jnp.matmul, precision="highest")
        return multiply(saxpy(0.5, x, multiply(matrix, y)), matrix)

    expected = y
    for _ in range(7):
        expected = (0.5 * x + matrix @ expected) @ matrix

    @jax.jit
    def scanned(y):
        return jax.lax.scan(lambda y, _: (step(y), None), y, None, 7)[0]

    @jax.jit
    def looped(y):
        return jax.lax.fori_loop(0, 7, lambda _, y: step(y), y)

    @jax.jit
    def branched(y, n):
        return jax.lax.cond(n > 3, lambda y: scanned(y), lambda y: y, y)

    for _ in range(3):
        np.testing.assert_allclose(scanned(y), expected, rtol=1e-5)
        np.testing.assert_allclose(looped(y), expected, rtol=1e-5)
        np.testing.assert_allclose(branched(y, 7), expected, rtol=1e-5)
        np.testing.assert_array_equal(branched(y, 1), y)


def test_two_call_sites_in_one_program(saxpy, numbers):
    x, y = numbers(100), numbers(100, start=3)
    f = jax.jit(lambda x, y: saxpy(3.0, x, saxpy(2.0, x, y)))
    for _ in range(4):
        np.testing.assert_array_equal(f(x, y), 5 * x + y)


def test_the_uncaptured_body_runs_at_every_call(ops, body_runs, numbers):
    x, y = numbers(10), numbers(10)
    f = jax.jit(functools.partial(ops.saxpy_uncaptured, 2.0))
    f(x, y).block_until_ready()
    before = body_runs()[1]
    for _ in range(9):
        f(x, y).block_until_ready()
    assert body_runs()[1] - before == 9


def test_xla_captures_jax_mode_only(python):
    out = python(
        """
x = jnp.arange(100, dtype=jnp.float32)
for name in ("saxpy", "saxpy_uncaptured"):
    f = jax.jit(lambda x, y: getattr(ops, name)(2.0, x, y) + 1)
    y = jnp.ones(100, jnp.float32)
    before = body_runs()
    for _ in range(20):
        result = np.asarray(f(x, y))
        assert (result == 2 * np.arange(100) + 2).all(), result
    print(*(b - a for a, b in zip(before, body_runs())))
""",
        capture=True,
    )
    (in_jax, other), (none, uncaptured) = (map(int, line.split()) for line in out.splitlines())
    assert 1 <= in_jax < 20, "replays of a graph do not run the body"
    assert (other, none, uncaptured) == (0, 0, 20)


def test_captured_calls_with_moving_buffers(python):
    python(
        """
f = jax.jit(lambda x, y: ops.saxpy(2.0, x, y) * 3)
kept = []
for i in range(30):
    x = np.arange(i, i + 1000, dtype=np.float32)
    result = f(x, x + 1)
    assert (np.asarray(result) == (3 * x + 1) * 3).all(), i
    kept += [result] * (i % 3)
print(jax.vmap(ops.sum)(np.ones((4, 10), np.float32)))
""",
        capture=True,
    )


def test_cpu_and_gpu_by_turns(ops, gpus, cpu, numbers):
    x, y = numbers(100), numbers(100, start=3)
    f = jax.jit(functools.partial(ops.saxpy, 2.0))
    for i in range(6):
        device = [cpu, gpus[0]][i % 2]
        result = f(*jax.device_put((x, y), device))
        assert result.devices() == {device}
        np.testing.assert_array_equal(result, 2 * x + y)


def test_several_gpus_by_turns(saxpy, gpus, numbers):
    if len(gpus) < 2:
        pytest.skip("one GPU only")
    x, y = numbers(100), numbers(100, start=3)
    f = jax.jit(functools.partial(saxpy, 2.0))
    for i in range(3 * len(gpus)):
        device = gpus[i % len(gpus)]
        result = f(*jax.device_put((x, y), device))
        assert result.devices() == {device}
        np.testing.assert_array_equal(result, 2 * x + y)


@pytest.mark.parametrize("name", ["cpu", "gpu"])
def test_a_default_device_given_as_a_string(ops, name, numbers):
    x, y = numbers(100), numbers(100, start=3)
    with jax.default_device(name):
        result = ops.saxpy(2.0, x, y)
    assert result.devices().pop().platform == name
    np.testing.assert_array_equal(result, 2 * x + y)


def test_threads_with_programs_of_their_own(ops, numbers):
    wrong = []

    def work(number):
        f = jax.jit(lambda x, y: ops.saxpy(float(number), x, y) + number)
        g = jax.jit(lambda x: (x @ x.T).sum() + number)
        for i in range(30):
            x, y = numbers(200 + number, start=i), numbers(200 + number, start=number)
            if not (np.asarray(f(x, y)) == number * x + y + number).all():
                wrong.append((number, i))
            g(numbers(32, 32)).block_until_ready()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
