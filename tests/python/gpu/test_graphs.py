"""Graphs of our own: the same numbers as without, and what is captured, updated and given up."""

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import OWN, changes, check_mix, mixed

# Each patched call is captured as well.
VERIFIES = os.environ.get("JAX_CALLABLE_VERIFY_PATCH") == "1"
JaxRuntimeError = jax.errors.JaxRuntimeError


@pytest.fixture
def mix_runs(ops, cpu, mode):
    """How often the body of `mix` ran in the mode."""

    def read():
        jax.effects_barrier()
        with jax.default_device(cpu):
            return int(ops.mix_runs()[2 + OWN.index(mode)])

    return read


def test_moving_and_repeated_addresses(op, numbers):
    mix = op("mix")
    f = jax.jit(functools.partial(mix, 2.0))
    kept = []
    for i in range(30):
        arrays = [jnp.asarray(numbers(500, start=i + j)) for j in range(4)]
        check_mix(f, *arrays)
        # Some stay, so that the next ones lie elsewhere.
        kept += arrays * (i % 3 == 0)
    for _ in range(10):
        check_mix(f, *arrays)


def test_arrays_of_a_program_are_not_touched(op, numbers):
    f = jax.jit(functools.partial(op("mix"), 2.0))
    arrays = [jnp.asarray(numbers(100, start=j)) for j in range(4)]
    before = [np.asarray(array).copy() for array in arrays]
    for _ in range(3):
        jax.block_until_ready(f(*arrays))
    for array, content in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, content)


def test_donated_in_outs(op, numbers):
    f = jax.jit(functools.partial(op("mix"), 2.0), donate_argnums=(2, 3))
    a, b, c, d = (numbers(1000, start=j) for j in range(4))
    for _ in range(5):
        check_mix(lambda a, b, c, d: f(a, b, jax.device_put(c), jax.device_put(d)), a, b, c, d)


def test_one_array_in_every_place(op, numbers):
    mix = op("mix")
    x = jnp.asarray(numbers(100))
    check_mix(lambda *arrays: mix(2.0, *arrays), x, x, x, x)
    check_mix(jax.jit(lambda *_: mix(2.0, x, x, x, x)), x, x, x, x)
    distance = op("distance")
    np.testing.assert_array_equal(distance(x, x), 2 * np.asarray(x))


def test_scalars_change_on_the_same_buffers(op, numbers):
    f = jax.jit(op("mix"), static_argnums=0)
    arrays = [jnp.asarray(numbers(100, start=j)) for j in range(4)]
    for s in (1.0, -2.0, 0.0, 1.0, 3.0):
        check_mix(functools.partial(f, s), *arrays, s=s)


def test_constants_as_in_outs(op, numbers):
    mix = op("mix")
    a, b, c, d = (numbers(64, start=j) for j in range(4))
    f = jax.jit(lambda a, b: mix(2.0, a, b, jnp.asarray(c), jnp.asarray(d)))
    for i in range(4):
        check_mix(lambda a, b, c, d: f(a, b), a + i, b - i, c, d)


def test_two_call_sites(op, numbers):
    mix = op("mix")

    @jax.jit
    def f(a, b, c, d):
        c, d, e = mix(2.0, a, b, c, d)
        return mix(3.0, e, a, c, d)

    a, b, c, d = (numbers(100, start=j) for j in range(4))
    for i in range(4):
        once = mixed(2.0, a + i, b, c, d)
        twice = mixed(3.0, once[2], a + i, once[0], once[1])
        for got, expected in zip(f(a + i, b, c, d), twice, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_scan_while_and_cond_beside_matmuls(op, numbers):
    mix = op("mix")
    matrix = jnp.eye(64, dtype=jnp.float32) * 0.5
    a, b, c, d = (numbers(64, start=j) for j in range(4))

    def step(carry, call):
        c, d = carry
        c, d, e = call(0.5, a, b, jnp.matmul(c, matrix, precision="highest"), d)
        return jnp.matmul(c + e, matrix, precision="highest"), d

    def reference(s, a, b, c, d):
        return mixed(s, a, b, c, d)

    def scanned(c, d, call):
        return jax.lax.scan(lambda carry, _: (step(carry, call), None), (c, d), None, 7)[0]

    def looped(c, d, call):
        return jax.lax.fori_loop(0, jnp.int32(7), lambda _, carry: step(carry, call), (c, d))

    def branched(c, d, call):
        return jax.lax.cond(c.sum() > 1e9, lambda: (c, d), lambda: scanned(c, d, call))

    for f in (scanned, looped, branched):
        ours = jax.jit(functools.partial(f, call=mix))
        theirs = jax.jit(functools.partial(f, call=reference))
        for i in range(3):
            for got, expected in zip(ours(c + i, d), theirs(c + i, d), strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_three_batch_sizes_of_one_function(op, numbers):
    total = jax.jit(jax.vmap(op("total")))
    mix = jax.jit(jax.vmap(functools.partial(op("mix"), 2.0), in_axes=(0, None, 0, None)))
    b, d = numbers(10, start=1), numbers(10, start=3)
    for size in (5, 3, 5, 8, 1, 3):
        x = numbers(size, 10, start=size)
        np.testing.assert_array_equal(total(x), x.sum(axis=1))
        c = numbers(size, 10, start=2)
        d_all = np.broadcast_to(d, (size, 10))
        check_mix(lambda a, b, c, d: mix(a, b[0], c, d[0]), x, b[None] + 0 * x, c, d_all)


@pytest.mark.parametrize("size", [0, 1])
def test_few_elements(op, numbers, size):
    mix = op("mix")
    check_mix(functools.partial(mix, 2.0), *(numbers(size, start=j) for j in range(4)))
    np.testing.assert_array_equal(op("halves")(2.0, numbers(size)), 2 * numbers(size))


def test_pointers_in_structs_into_arrays_and_between_them(op, numbers):
    distance, halves = jax.jit(op("distance")), jax.jit(op("halves"), static_argnums=0)
    kept = []
    for i in range(20):
        x, y = jnp.asarray(numbers(1001, start=i)), jnp.asarray(numbers(1001, start=5 * i))
        np.testing.assert_array_equal(distance(x, y), np.asarray(x) + np.asarray(y))
        np.testing.assert_array_equal(distance(y, x), np.asarray(x) + np.asarray(y))
        np.testing.assert_array_equal(halves(3.0, x), 3 * np.asarray(x))
        kept += [x, y][: i % 3]


def test_cublas(op):
    gemm = jax.jit(lambda a, b: op("gemm")(a, b)[0])
    random = np.random.default_rng(1)
    for i in range(6):
        a = jnp.asarray(random.normal(size=(33, 65)), jnp.float32)
        b = jnp.asarray(random.normal(size=(65, 17)), jnp.float32)
        exact = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
        got = np.asarray(gemm(a, b), np.float64)
        assert np.linalg.norm(got - exact) < 1e-5 * np.linalg.norm(exact), i


def test_copies_uploads_and_allocations(op, numbers):
    copy, upload, allocate = (jax.jit(op(name)) for name in ("copy", "upload", "allocate"))
    kept = []
    for i in range(12):
        x = jnp.asarray(numbers(300, start=i))
        np.testing.assert_array_equal(copy(x), x)
        np.testing.assert_array_equal(upload(x), np.arange(300))
        np.testing.assert_array_equal(allocate(x), x)
        kept += [x] * (i % 2)


@pytest.mark.parametrize("condition", [True, False])
def test_a_conditional_node(op, condition, numbers):
    f = jax.jit(functools.partial(op("copy_if"), condition))
    kept = []
    for i in range(12):
        x = jnp.asarray(numbers(300, start=i))
        np.testing.assert_array_equal(f(x), np.asarray(x) * condition)
        kept += [x] * (i % 2)
    for _ in range(4):
        np.testing.assert_array_equal(f(x), np.asarray(x) * condition)


def test_memory_of_the_body_is_refused(op, numbers):
    dangle = op("dangle")
    for _ in range(2):
        with pytest.raises(JaxRuntimeError, match="captured copy from host memory") as caught:
            dangle(numbers(10)).block_until_ready()
        assert f"FAILED_PRECONDITION: {dangle.target.path}: " in str(caught.value)
        assert "graph_mode = None" in str(caught.value)


@pytest.mark.deliberate_error
def test_a_body_that_waits(op, numbers):
    wait, copy = op("wait"), op("copy")
    for _ in range(2):
        with pytest.raises(JaxRuntimeError, match="STREAM_CAPTURE") as caught:
            wait(numbers(10)).block_until_ready()
        assert f"{wait.target.path}: " in str(caught.value)
        assert "graph_mode = None" in str(caught.value)
        np.testing.assert_array_equal(copy(numbers(10)), numbers(10))
    assert wait.graphs.size == 0


def test_a_body_that_panics_at_made_up_addresses(ops, numbers):
    f = jax.jit(ops.shy_warp)
    kept = []
    for i in range(8):
        kept.append(jnp.asarray(numbers(300, start=i)))
        np.testing.assert_array_equal(f(kept[-1]), kept[-1])
    # One try, and then no more: each address is captured.
    statistics = ops.shy_warp.graphs.statistics()
    assert statistics["patches"] == 0 and statistics["updates"] > 0


def test_a_body_that_ends_its_capture(ops, numbers):
    x = jnp.asarray(numbers(300))
    for _ in range(2):
        with pytest.raises(JaxRuntimeError, match="has ended the capture"):
            jax.block_until_ready(ops.ends_capture_warp(x))
    np.testing.assert_array_equal(ops.shy_warp(x), x)


def test_a_body_that_clears_graphs(ops, numbers):
    one, two = jax.jit(ops.clears_staged), jax.jit(lambda x: ops.clears_staged(x) + 1)
    for i in range(4):
        x, y = jnp.asarray(numbers(300, start=i)), jnp.asarray(numbers(400 + i))
        np.testing.assert_array_equal(one(x), x)
        np.testing.assert_array_equal(two(y), y + 1)


def test_a_body_that_fails_in_its_first_capture(op, numbers):
    fail_first = op("fail_first")
    x = numbers(10)
    with pytest.raises(JaxRuntimeError, match="the first call fails"):
        fail_first(x).block_until_ready()
    for _ in range(3):
        np.testing.assert_array_equal(fail_first(x), x)


def test_a_graph_is_captured_once_for_its_addresses(op, mix_runs, numbers):
    mix = op("mix")
    f = jax.jit(functools.partial(mix, 2.0))
    arrays = [jnp.asarray(numbers(100, start=j)) for j in range(4)]
    results = f(*arrays)
    jax.block_until_ready(results)
    del results
    runs = mix_runs()

    def repeat():
        for _ in range(20):
            jax.block_until_ready(f(*arrays))

    changed = changes(mix.graphs, repeat)
    assert changed["launches"] == 20
    # XLA has the results at few places only; to learn to patch takes four captures more.
    assert mix_runs() - runs == changed.get("captures", 0) <= 9
    assert changed.get("hits", 0) >= 14


def test_moving_buffers_need_no_new_graph(op, mode, numbers):
    mix = op("mix")
    f = jax.jit(functools.partial(mix, 2.0))
    kept = []

    def move():
        for i in range(20):
            kept.extend(jnp.asarray(numbers(100, start=i + j)) for j in range(4))
            kept.extend(f(*kept[-4:]))

    changed = changes(mix.graphs, move)
    assert changed["launches"] == 20
    assert changed["instantiations"] == 1
    if mode == "warp":
        # One update, from which it is learnt where the addresses are.
        assert (changed["updates"], changed["patches"]) == (1, 18)
        assert changed["captures"] == 2 + 4 + 18 * VERIFIES
        assert "staged_bytes" not in changed
    else:
        # Staged, nothing in the graph depends on where XLA has the arrays.
        assert changed["hits"] == 19
        assert changed["staged_bytes"] == 5 * 512


def test_what_is_patched_and_what_is_updated(op, mode, numbers):
    if mode != "warp":
        pytest.skip("staged, nothing moves")
    kept = []

    def move(name, *scalars):
        found = op(name)
        f = jax.jit(functools.partial(found, *scalars))

        def calls():
            for i in range(7):
                x = jnp.asarray(numbers(1000, start=i))
                kept.extend([x, f(x)])

        return changes(found.graphs, calls)

    # Pointers into arrays, in structs, are found; copies are of no kind that is patched.
    assert move("halves", 2.0)["patches"] >= 4
    copied = move("copy")
    assert "patches" not in copied
    assert copied["updates"] >= 4
    assert copied["instantiations"] <= 1
    allocated = move("allocate")
    # A graph with allocations cannot be updated at all.
    assert "patches" not in allocated
    assert "updates" not in allocated


def test_nodes_that_could_be_one_another_are_patched(ops, numbers):
    f = jax.jit(ops.triple_by_twins)
    arrays = [jnp.asarray(numbers(100, start=i)) for i in range(8)]
    results = []
    changed = changes(ops.triple_by_twins.graphs, lambda: results.extend(map(f, arrays)))
    assert changed["patches"] > 0
    # Also what earlier calls have written is as it was.
    for x, y in zip(arrays, results, strict=True):
        np.testing.assert_array_equal(y, 3 * np.asarray(x))


def test_a_distance_between_arrays_is_not_patched(op, mode, numbers):
    if mode != "warp":
        pytest.skip("staged, nothing moves")
    distance = op("distance")
    f = jax.jit(distance)
    kept = []

    def move():
        for i in range(8):
            x, y = jnp.asarray(numbers(1000, start=i)), jnp.asarray(numbers(1000, start=-i))
            z = f(x, y)
            np.testing.assert_array_equal(z, np.asarray(x) + np.asarray(y))
            kept.extend([x, y, z] if i % 2 else [x])

    changed = changes(distance.graphs, move)
    assert "patches" not in changed
    assert changed["updates"] >= 3


def test_a_large_batch_is_looped_over_without_a_graph(op, numbers):
    copy = op("copy")
    f = jax.jit(jax.vmap(copy))
    x = numbers(5000, 2)
    changed = changes(copy.graphs, lambda: np.testing.assert_array_equal(f(x), x))
    assert changed == {"looped_batches": 1, "ungraphed_calls": 1}


def test_modes_without_graphs_of_our_own_have_none(ops, numbers):
    copy = ops.copy_none
    np.testing.assert_array_equal(copy(numbers(10)), numbers(10))
    assert (copy.graphs.size, copy.graphs.max) == (0, 32)
    copy.graphs.clear()
    assert set(copy.graphs.statistics().values()) == {0}


def test_targets_without_cuda_have_no_graphs(ops):
    with pytest.raises(AttributeError, match=r"fixture_cuda.mix_runs has no CUDA graphs"):
        _ = ops.mix_runs.graphs
