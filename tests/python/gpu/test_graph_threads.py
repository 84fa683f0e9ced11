"""Graphs of our own while other threads use the device."""

import ctypes
import functools
import threading

import jax
import numpy as np
import pytest
from graphs import check_mix, start

# A graph of XLA's on its stream may be overtaken, whoever calls what: see docs/reliability.md. So
# there is none in such a test, also none of single operations outside of a jitted function.
NO_GRAPHS_OF_XLA = {"xla_gpu_graph_min_graph_size": 1000}


def test_a_slow_capture_beside_eight_threads(op, ops, numbers):
    slow, copy = op("slow"), op("copy")
    stop = threading.Event()

    def work(number):
        def f(x):
            return (x @ x.T).sum() + number, x + 0

        def g(x):
            return (copy(x) if number % 2 else x) * number, x + 0

        f, g = (jax.jit(each, compiler_options=NO_GRAPHS_OF_XLA) for each in (f, g))
        matrix, x = numbers(32, 32), numbers(100 + number)
        while not stop.is_set():
            # Also what the program itself sees of its input.
            (total, own_matrix), (product, own) = f(matrix), g(x)
            parts = [(total, (matrix @ matrix.T).sum() + number), (product, number * x)]
            parts += [(own_matrix, matrix), (own, x)]
            # Compared on the host, for a comparison on the device is a program of its own.
            parts = [(np.asarray(got), want) for got, want in parts]
            wrong = [(got, want) for got, want in parts if (got != want).any()]
            assert not wrong, (number, wrong)
            # Moves what comes after.
            jax.device_put(np.zeros(number + 1, np.float32)).block_until_ready()

    finish = start(8, work)
    captures = slow.graphs.statistics()["captures"]
    for i in range(4):
        x = numbers(2000 + i)
        # Another size is another program: its first call captures.
        f = jax.jit(functools.partial(slow, 300, 0), compiler_options=NO_GRAPHS_OF_XLA)
        np.testing.assert_array_equal(f(x), x)
    assert slow.graphs.statistics()["captures"] == captures + 4
    stop.set()
    finish()


def race(ops, cpu, mode, direct):
    with jax.default_device(cpu):
        counts = ops.graph_race(seconds=np.float32(3), mode=mode, direct=direct)
        rounds, launches, wrong = np.asarray(counts).tolist()
    print(f"{rounds} copies, {launches} launches, {wrong} read too early")
    assert rounds > 100 and launches > 100
    return wrong


def test_graphs_hold_up_what_waits_for_a_copy(ops, op, cpu, mode):
    graphs = op("slow").graphs
    launches = graphs.statistics()["launches"]
    assert race(ops, cpu, mode, direct=False) == 0
    assert graphs.statistics()["launches"] > launches + 100


def test_a_bare_graph_lets_a_kernel_overtake_its_copy(ops, cpu):
    # What the test above is there to see; a driver without the fault may come.
    if race(ops, cpu, "warp", direct=True) == 0:
        pytest.skip("this driver keeps the order")


def test_allocations_in_another_thread_during_a_capture(op, gpus, numbers):
    slow = op("slow")
    cuda = ctypes.CDLL("libcuda.so.1")
    stop = threading.Event()
    counts = [0, 0]

    def allocate(number):
        # Of the driver itself, in the context that XLA has: this could not be in a capture.
        context, address = ctypes.c_void_p(), ctypes.c_uint64()
        statuses = [cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)]
        statuses.append(cuda.cuCtxSetCurrent(context))
        while not stop.is_set() and not any(statuses):
            statuses = [cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20))]
            statuses.append(cuda.cuMemFree_v2(address))
            counts[number] += 1
        statuses.append(cuda.cuDevicePrimaryCtxRelease_v2(0))
        assert not any(statuses), statuses

    finish = start(2, allocate)
    captures = slow.graphs.statistics()["captures"]
    for i in range(3):
        x = numbers(3000 + i)
        f = jax.jit(functools.partial(slow, 300, 0))
        before = list(counts)
        np.testing.assert_array_equal(f(x), x)
        # The body sleeps for 0.3 s in its capture, and they went on meanwhile.
        assert all(now - then > 10 for now, then in zip(counts, before, strict=True))
        np.testing.assert_array_equal(f(x), x)
    assert slow.graphs.statistics()["captures"] >= captures + 3
    stop.set()
    finish()


def test_eight_threads_on_one_program(op, numbers):
    f = jax.jit(functools.partial(op("mix"), 2.0))

    def work(number):
        for i in range(50):
            check_mix(f, *(numbers(400, start=number + i + j) for j in range(4)))

    start(8, work)()
