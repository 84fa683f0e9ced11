"""Programs with calls in them, dispatched from several threads at once."""

import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def run_in_threads(works, times):
    """Runs each of `works` in a thread, `times` times; they begin together."""
    failures, begin = [], threading.Barrier(len(works))

    def repeat(work):
        try:
            work(0)  # compiles
            begin.wait(timeout=120)
            for i in range(times):
                work(i)
        except Exception as error:
            failures.append(error)
            begin.abort()

    # A thread that hangs ends the test, and not the whole run.
    threads = [threading.Thread(target=repeat, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if failures:
        raise failures[0]


@pytest.fixture
def programs(ops, numbers):
    """Different programs, each a function of a number that checks its own result."""
    table = numbers(7, 3)

    def check(f, expected, *shapes):
        f = jax.jit(f)

        def work(i):
            given = [numbers(*shape, start=i + 3 * j) for j, shape in enumerate(shapes)]
            np.testing.assert_allclose(f(*given), expected(*given), rtol=1e-5)

        return work

    def scanned(x, y):
        return jax.lax.scan(lambda y, _: (ops.saxpy(0.5, x, y), None), y, None, 8)[0]

    def without_ours(x):
        return jnp.matmul(x, x, precision="highest") + 1

    return [
        check(lambda x, y: ops.saxpy(2.0, x, y), lambda x, y: 2 * x + y, (500,), (500,)),
        check(lambda x, y: ops.saxpy(3.0, x, y) * 2, lambda x, y: 6 * x + 2 * y, (500,), (500,)),
        check(lambda x, y: ops.saxpy_uncaptured(-1.0, x, y), lambda x, y: y - x, (300,), (300,)),
        check(scanned, lambda x, y: 4 * x + y, (64,), (64,)),
        check(jax.vmap(ops.sum), lambda x: x.sum(-1), (9, 40)),
        check(lambda a: ops.matmul(a, table), lambda a: a @ table, (5, 7)),
        check(lambda x: ops.negate(x) + 1, lambda x: 1 - x, (2000,)),
        check(without_ours, lambda x: x @ x + 1, (32, 32)),
    ]


def test_eight_threads_with_different_programs(programs):
    run_in_threads(programs, 40)


def test_threads_that_share_programs(programs):
    # Each of two programs on one target in four threads.
    run_in_threads(programs[:2] * 4, 40)


def test_compiling_while_others_run(ops, programs, numbers):
    def compile_anew(i):
        # Another scalar is another program.
        x, y = numbers(100 + i), numbers(100 + i, start=3)
        f = jax.jit(functools.partial(ops.saxpy, float(i)))
        np.testing.assert_array_equal(f(x, y), i * x + y)

    run_in_threads([*programs, compile_anew], 20)


def test_bodies_run_at_the_same_time(ops, numbers):
    x = numbers(100)
    # Compiled before, for a body that runs alone waits for another one.
    double = jax.jit(lambda x: ops.meets(x) * 2).lower(x).compile()
    increment = jax.jit(lambda x: ops.meets(x) + 1).lower(x).compile()
    results = {}
    threads = [
        threading.Thread(target=lambda name, f: results.update({name: np.asarray(f(x))}), args=pair)
        for pair in (("double", double), ("increment", increment))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    np.testing.assert_array_equal(results["double"], x * 2)
    np.testing.assert_array_equal(results["increment"], x + 1)
