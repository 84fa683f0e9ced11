"""Several threads: of XLA's pool inside a body, of Python's around calls."""

import concurrent.futures
import ctypes
import functools
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec


@pytest.mark.parametrize("grain", [1, 7, 1000, 10**6])
@pytest.mark.parametrize("length", [0, 1, 1000, 100_001])
def test_chunks_in_parallel(ops, length, grain):
    if length // grain > 10_000:
        grain = 10
    x = np.arange(length, dtype=np.float32)
    np.testing.assert_array_equal(ops.squares(grain, x), x * x)


@pytest.mark.parametrize(("length", "grain"), [(0, 1), (1, 1), (100, 1), (1000, 16), (5, 100)])
def test_each_index_is_visited_once(ops, length, grain):
    for _ in range(5):
        count, total = np.asarray(ops.visits(length, grain)).tolist()
        assert (count, total) == (length, length * (length - 1) // 2)


def test_a_grain_of_zero_is_an_error(ops):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"INTERNAL: fixture\.squares: panicked: "):
        jax.block_until_ready(ops.squares(0, jnp.ones(3)))


def test_a_pool_of_one_thread(library, python):
    # Every thread of the pool runs a body, and each body waits for parallel work.
    code = """if True:
        import os, sys
        os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
        import jax, jax_callable, numpy as np
        ops = jax_callable.load(sys.argv[1])
        threads, _, _ = ops.place(np.ones(1, np.float32))
        @jax.jit
        def many(x):
            return [ops.squares(1, x + i) for i in range(8)]
        for _ in range(20):
            results = many(np.arange(64, dtype=np.float32))
        print(int(threads), float(sum(r.sum() for r in results)))
    """
    expected = sum(float(((np.arange(64) + i) ** 2).sum()) for i in range(8))
    threads, total = python(code, library, XLA_FLAGS="").split()
    assert int(threads) == 1
    assert float(total) == expected


def test_sixteen_threads_at_once_for_the_first_time(library, python):
    code = """if True:
        import sys, threading
        import jax, jax_callable, numpy as np
        barrier, results = threading.Barrier(16), [None] * 16
        x = np.arange(8, dtype=np.float32)
        def work(i):
            barrier.wait()
            ops = jax_callable.load(sys.argv[1])
            first = np.asarray(ops.saxpy(3.0, x, x))
            own = np.asarray(jax.jit(lambda x: ops.saxpy(float(i), x, x))(x))
            results[i] = (id(ops), (first == 4 * x).all(), (own == (i + 1) * x).all())
        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(len({r[0] for r in results}), all(r[1] and r[2] for r in results))
    """
    assert python(code, library).split() == ["1", "True"]


def test_bodies_on_several_devices_run_at_the_same_time(ops):
    devices = jax.devices()
    meet = jax.jit(functools.partial(ops.meet, len(devices), 20.0))

    def call(device):
        return bool(meet(jax.device_put(jnp.ones(3), device))[0])

    for device in devices:
        ops.softmax(jax.device_put(jnp.ones(3), device))
    with concurrent.futures.ThreadPoolExecutor(len(devices)) as pool:
        assert list(pool.map(call, devices)) == [True] * len(devices)


def on_every_device(function):
    """The function of each quarter of an array, each on a device of its own."""
    spec = PartitionSpec("i")
    mesh = Mesh(np.array(jax.devices()), ("i",))
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec))


def test_bodies_of_one_program_run_at_the_same_time(ops):
    def program(x):
        met, out = ops.meet(4, 20.0, x)
        return met[None], out

    met, out = on_every_device(program)(jnp.ones(12))
    assert np.asarray(met).tolist() == [True] * 4
    np.testing.assert_array_equal(out, np.ones(12))


def test_two_bodies_take_the_time_of_one(ops):
    pause = jax.jit(functools.partial(ops.pause, 0.3))
    arguments = [jax.device_put(jnp.ones(3), device) for device in jax.devices()[:2]]

    def seconds():
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda x: jax.block_until_ready(pause(x)), arguments))
        return time.monotonic() - start

    seconds()  # Compiles.
    assert 0.3 <= min(seconds() for _ in range(3)) < 0.55


def test_bodies_run_while_another_thread_holds_the_interpreter(ops):
    program = on_every_device(lambda x: ops.softmax(ops.pause(0.3, ops.pause(0.3, x))))
    x = jnp.ones(12)
    jax.block_until_ready(program(x))
    result = program(x)
    assert not result.is_ready()
    # A call through PyDLL keeps the interpreter's lock. It is longer than the program, which
    # begins the second pause and the rest meanwhile.
    ctypes.PyDLL(None).usleep(1_500_000)
    assert result.is_ready()
    np.testing.assert_allclose(result, np.full(12, 1 / 3), rtol=1e-6)


def test_sixteen_threads_trace_and_call(ops):
    barrier = threading.Barrier(16)
    x = np.arange(6, dtype=np.float32)

    def work(i):
        barrier.wait()
        for step in range(6):
            a, n = float(i % 4 + 4 * step), 3 + step % 3
            part = x[:n]
            rows = np.stack([part, part + i])
            # Some are the same in several threads, some are one thread's.
            np.testing.assert_array_equal(ops.saxpy(a, part, part), (a + 1) * part)
            program = jax.jit(lambda x, a=a: ops.saxpy(a, ops.cumsum(x), x))
            np.testing.assert_array_equal(program(part), a * np.cumsum(part) + part)
            batched = jax.vmap(functools.partial(ops.saxpy, a + i))
            np.testing.assert_array_equal(batched(rows, rows), (a + i + 1) * rows)
            assert ops.iota(output_dims=n + i).shape == (n + i,)
        return True

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


def test_python_goes_on_while_a_body_runs(ops):
    # A party of two that nobody else comes to: the body waits for the whole second.
    lonely = jax.jit(functools.partial(ops.meet, 2, 1.0))
    compiled = lonely.lower(jnp.ones(3)).compile()
    x, ticks, done = jnp.ones(3), 0, threading.Event()

    def call():
        jax.block_until_ready(compiled(x))
        done.set()

    thread = threading.Thread(target=call)
    start = time.monotonic()
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.005)
    thread.join()
    # The second party, so that the next test begins a new round.
    assert bool(compiled(x)[0])
    assert time.monotonic() - start >= 0.9
    assert ticks >= 20


def test_a_body_needs_no_python(ops):
    x = jnp.ones(3)
    function = jax.jit(lambda x: ops.add_to(x, x))
    function(x)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            sum(range(1000))

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            np.testing.assert_array_equal(function(x), 2 * np.ones(3))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_errors_and_results_of_many_threads_do_not_mix(ops):
    def call(i):
        x = np.full(16, i, np.float32)
        if i % 3:
            return float(ops.saxpy(float(i % 5), x, x)[0]) == i * (i % 5 + 1)
        try:
            jax.block_until_ready(ops.fail(9, f"number {i % 7}", x))
        except jax.errors.JaxRuntimeError as error:
            return f"fixture.fail: number {i % 7}" in str(error)
        return False

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(200)))
