"""State of call sites: built when a program is compiled, kept, dropped with the program."""

import concurrent.futures
import functools
import gc
import threading
import time

import jax
import jax.export
import numpy as np
import pytest

import jax_callable

INDEX = np.array([0, 2, 1], np.uint32)


@pytest.fixture
def counts(ops):
    """How many states were built and dropped in a block of code: a function that tells."""

    def read():
        jax.effects_barrier()
        return np.asarray(ops.state_counts())

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


def program(ops, *bases, count=3):
    """A jitted program with one call site for each base."""
    return jax.jit(lambda index: [ops.powers(base, count, index) for base in bases])


def forget(done=lambda: True):
    """Drops all compiled programs that nothing refers to, some of which XLA does a little later."""
    jax.clear_caches()
    gc.collect()
    deadline = time.monotonic() + 10
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_built_once_for_each_call_site(ops, counts):
    added = counts()
    function = program(ops, 2.0, 3.0)
    for use in range(5):
        (two, first), (three, second) = function(INDEX)
        np.testing.assert_array_equal(two, [1, 4, 2])
        np.testing.assert_array_equal(three, [1, 9, 3])
        assert (first, second) == (use, use)
    assert added() == [2, 0]


def test_equal_calls_have_one_each(ops, counts):
    added = counts()
    function = program(ops, 2.0, 2.0)
    for use in range(3):
        assert [int(uses) for _, uses in function(INDEX)] == [use, use]
    assert added() == [2, 0]


def test_programs_of_other_devices_have_their_own(ops, counts):
    added = counts()
    function = program(ops, 2.0)
    for use in range(3):
        for device in jax.devices():
            ((result, uses),) = function(jax.device_put(INDEX, device))
            assert result.devices() == {device}
            assert int(uses) == use
    assert added() == [len(jax.devices()), 0]


def test_not_built_by_tracing(ops, counts):
    added = counts()
    jax.make_jaxpr(functools.partial(ops.powers, 2.0, 3))(INDEX)
    jax.eval_shape(functools.partial(ops.powers, 2.0, 3), INDEX)
    jax.jit(functools.partial(ops.powers, 2.0, 3)).lower(INDEX)
    assert added() == [0, 0]


def test_eager_calls_share_one(ops, counts):
    added = counts()
    uses = [int(ops.powers(1.25, 3, INDEX)[1]) for _ in range(4)]
    assert uses == [0, 1, 2, 3]
    assert added() == [1, 0]


def test_dropped_with_the_program(ops, counts):
    added = counts()
    before = jax_callable.live_call_sites(ops)
    function = program(ops, 2.0, 5.0, 6.0)
    function(INDEX)
    assert jax_callable.live_call_sites(ops) >= before + 3
    del function
    forget(lambda: added()[1] == 3)
    assert added() == [3, 3]
    assert jax_callable.live_call_sites(ops) <= before + 1


def test_dropped_with_a_program_compiled_ahead_of_time(ops, counts):
    added = counts()
    compiled = program(ops, 2.5).lower(INDEX).compile()
    assert added() == [1, 0]
    for use in range(3):
        assert int(compiled(INDEX)[0][1]) == use
    del compiled
    forget(lambda: added()[1] == 1)
    assert added() == [1, 1]


def test_a_drop_that_panics(ops, counts):
    added = counts()
    function = program(ops, 2.0, 3.0, count=7)
    function(INDEX)
    del function
    forget(lambda: added()[1] == 2)
    assert added() == [2, 2]
    np.testing.assert_array_equal(ops.powers(2.0, 3, INDEX)[0], [1, 4, 2])


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (0, "OUT_OF_RANGE: fixture.powers: cannot build its state: no powers were asked for"),
        (13, "INTERNAL: fixture.powers: panicked: no 13 powers today"),
    ],
)
def test_constructors_that_fail(ops, counts, count, message):
    added = counts()
    before = jax_callable.live_call_sites(ops)
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError) as error:
            jax.jit(functools.partial(ops.powers, 2.0, count))(INDEX)
        assert message in str(error.value)
    assert added() == [0, 0]
    assert jax_callable.live_call_sites(ops) <= before + 1
    np.testing.assert_array_equal(ops.powers(2.0, 3, INDEX)[0], [1, 4, 2])


def test_errors_of_the_body(ops):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"fixture\.powers: no power 3"):
        jax.block_until_ready(ops.powers(2.0, 3, INDEX + 1))


def test_attributes_of_all_kinds_and_aliases(ops):
    x = np.zeros(3, np.float32)
    lengths = ops.word_lengths("onetwothree", [3, 3, 5], x)
    np.testing.assert_array_equal(lengths, [3, 3, 5])
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        ops.word_lengths("one", [3, 3], x[:2])
    text = str(error.value)
    assert 'fixture.word_lengths: cannot build its state: "one" is too short' in text


def test_in_loops_and_batches(ops, counts):
    added = counts()

    @jax.jit
    def function(rows):
        scanned = jax.lax.scan(lambda c, row: (c, ops.powers(2.0, 3, row)), None, rows)[1]
        batched = jax.vmap(functools.partial(ops.powers, 3.0, 3))(rows)
        return scanned, batched

    rows = np.stack([INDEX, INDEX[::-1], INDEX])
    (scanned, scan_uses), (batched, batch_uses) = function(rows)
    np.testing.assert_array_equal(scanned, 2.0**rows)
    np.testing.assert_array_equal(batched, 3.0**rows)
    np.testing.assert_array_equal(scan_uses, [0, 1, 2])
    np.testing.assert_array_equal(batch_uses, [0, 1, 2])
    assert added() == [2, 0]


def test_shared_by_devices(ops, counts):
    added = counts()
    devices = jax.devices()
    index = np.tile(INDEX, len(devices))
    mesh, spec = jax.sharding.Mesh(devices, "d"), jax.sharding.PartitionSpec("d")
    function = jax.shard_map(
        lambda index: ops.powers(1.5, 3, index)[0], mesh=mesh, in_specs=spec, out_specs=spec
    )
    for _ in range(2):
        np.testing.assert_array_equal(jax.jit(function)(index), np.float32(1.5) ** index)
    assert added() == [1, 0]


def test_shared_by_threads(ops, counts):
    added = counts()
    compiled = program(ops, 4.0).lower(INDEX).compile()
    seen = []

    def work():
        for _ in range(20):
            (result, uses), *_ = compiled(INDEX)
            np.testing.assert_array_equal(result, [1, 16, 4])
            seen.append(int(uses))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(80))
    assert added() == [1, 0]


def test_threads_that_compile_at_once(ops, counts):
    added = counts()
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        compiled = program(ops, 3.0).lower(INDEX).compile()
        return [int(compiled(INDEX)[0][1]) for _ in range(5)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [list(range(5))] * 8
    forget(lambda: added()[1] == 8)
    assert added() == [8, 8]


def test_an_exported_program_builds_its_own(ops, counts):
    added = counts()
    checks = jax_callable.disabled_checks(ops)
    exported = jax.export.export(program(ops, 2.0), disabled_checks=checks)(INDEX)
    assert added() == [0, 0]
    call = jax.jit(jax.export.deserialize(exported.serialize()).call)
    for _ in range(3):
        np.testing.assert_array_equal(call(INDEX)[0][0], [1, 4, 2])
    assert added()[0] == 1


def test_the_manifest_has_the_constructor(ops):
    (handler,) = ops.powers.target.handlers
    assert handler.options["state"] == "Powers::new(base, count)"
    assert [param.name for param in ops.powers.target.inputs] == ["base", "count", "index"]
