"""Scratch: memory for a body, as results of the call in HLO that JAX does not see."""

import functools
import inspect

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import jax_callable

CHECK = "check_vma" if "check_vma" in inspect.signature(jax.shard_map).parameters else "check_rep"


def numbers(*shape):
    size = int(np.prod(shape))
    return (np.arange(size, dtype=np.float32) * 7 % 23).reshape(shape)


def medians(x):
    return np.sort(x, axis=-1)[..., x.shape[-1] // 2]


def test_eager_and_jit(ops):
    for shape in ((4, 5), (1, 1), (3, 100), (5, 5)):
        x = numbers(*shape)
        np.testing.assert_array_equal(ops.row_medians(x), medians(x))
        np.testing.assert_array_equal(jax.jit(ops.row_medians)(x), medians(x))


def test_the_abstract_results_have_none(ops):
    x = numbers(4, 5)
    (shape,) = jax.make_jaxpr(ops.row_medians)(x).out_avals
    assert shape.shape == (4,)
    assert [result.name for result in ops.row_medians.target.results] == ["out"]
    assert [param.name for param in ops.row_medians.target.params] == ["x", "out"]
    text = jax.jit(ops.row_medians).lower(x).as_text()
    assert "(tensor<4xf32>, tensor<5xf32>)" in text


def test_the_handler_lists_it(ops):
    (handler,) = ops.add_in_steps.target.handlers
    listed = [(each.name, str(each)) for each in handler.scratch]
    assert listed == [
        ("parts", "float64[k, x.dim(0) + 1]"),
        ("pairs", "int16[div_ceil(m, 2), 2]"),
        ("total", "float32[]"),
    ]


def test_beside_an_in_out_and_an_output(ops):
    x, y = numbers(3), numbers(5)
    expected = y + 2 * x.sum()
    for f in (ops.add_in_steps, jax.jit(ops.add_in_steps, static_argnums=0)):
        result, sizes = f(2, x, y)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(sizes, [2 * 4, 3, 1])
    np.testing.assert_array_equal(y, numbers(5))


def test_a_donated_in_out_is_written_in_place(ops):
    f = jax.jit(functools.partial(ops.add_in_steps, 2), donate_argnums=1)
    x, y = numbers(3), jnp.array(numbers(500))
    address = y.unsafe_buffer_pointer()
    result, _ = f(x, y)
    np.testing.assert_array_equal(result, numbers(500) + 2 * x.sum())
    assert result.unsafe_buffer_pointer() == address


def test_element_types_and_wide_ones_without_x64(ops):
    for n in (0, 1, 50):
        np.testing.assert_array_equal(jax.jit(ops.fill_all_types)(numbers(n)), numbers(n))


def test_no_elements(ops):
    # No rows, then rows of nothing, of which there is no median.
    np.testing.assert_array_equal(ops.row_medians(numbers(0, 5)), np.zeros(0))
    np.testing.assert_array_equal(ops.row_medians(numbers(0, 0)), np.zeros(0))
    assert ops.sum_of_range(1) == 0
    result, sizes = ops.add_in_steps(0, numbers(3), numbers(0))
    assert result.shape == (0,)
    np.testing.assert_array_equal(sizes, [0, 0, 1])


def test_no_arrays_go_in(ops):
    f = jax.jit(lambda: [ops.sum_of_range(k) for k in (1, 5, 10)])
    np.testing.assert_array_equal(f(), [0, 10, 45])


def test_sizes_that_cannot_be(ops):
    with pytest.raises(ValueError) as error:
        jax.jit(ops.sum_of_range, static_argnums=0)(0)
    text = str(error.value)
    assert "fixture.sum_of_range: scratch `range`: axis 0: `k - 1` is -1, which is no size" in text


def test_vmap(ops):
    x = numbers(6, 4, 5)
    np.testing.assert_array_equal(jax.vmap(ops.row_medians)(x), medians(x))
    nested = jax.jit(jax.vmap(jax.vmap(ops.row_medians, in_axes=2), in_axes=1))
    x = numbers(3, 4, 5, 2)
    expected = medians(x.transpose(1, 3, 0, 2))
    np.testing.assert_array_equal(nested(x), expected)


@pytest.mark.parametrize("method", ["broadcast_all", "sequential", "sequential_unrolled"])
def test_vmap_methods(ops, method):
    f = functools.partial(ops.add_in_steps, 3, vmap_method=method)
    x, y = numbers(6, 4), numbers(5)
    result, sizes = jax.jit(jax.vmap(f, in_axes=(0, None)))(x, y)
    np.testing.assert_array_equal(result, y + 3 * x.sum(1, keepdims=True))
    np.testing.assert_array_equal(sizes, [[3 * 5, 3, 1]] * 6)


def test_a_batch_has_one(ops):
    count = np.arange(8, dtype=np.uint32)
    np.testing.assert_array_equal(jax.vmap(ops.runs_in_one_workspace)(count), count)
    text = jax.jit(jax.vmap(ops.runs_in_one_workspace)).lower(count).as_text()
    assert "(tensor<8xui32>, tensor<1xui32>)" in text


def test_an_empty_batch(ops):
    assert jax.vmap(ops.row_medians)(numbers(0, 4, 5)).shape == (0, 4)


CONSTANTS = [numbers(5), numbers(64) + 0.5, np.float32(3.25), numbers(4, 5) - 1]


def test_constants_in_loops_stay(ops):
    """What a body leaves in its memory must not reach values that XLA keeps beside it."""

    def step(carry):
        a, b, c, d = map(jnp.asarray, CONSTANTS)
        found = ops.row_medians(d + carry[:4, None])
        _, sizes = ops.add_in_steps(2, a, b)
        filled = ops.fill_all_types(b)
        kept = (a.sum() + b.sum() + c + d.sum() + filled.sum()) - sizes.sum()
        return carry.at[:4].set(found) + 1, kept

    a, b, c, d = CONSTANTS
    kept = a.sum() + 2 * b.sum() + c + d.sum() - (2 * 6 + 32 + 1)
    expected = numbers(5)
    for _ in range(20):
        expected[:4] = medians(d + expected[:4, None])
        expected += 1

    @jax.jit
    def scanned(start):
        return jax.lax.scan(lambda c, _: step(c), start, None, 20)

    @jax.jit
    def looped(start):
        def body(state):
            i, carry, _ = state
            return (i + 1, *step(carry))

        return jax.lax.while_loop(lambda s: s[0] < 20, body, (0, start, jnp.float32(0)))

    for _ in range(5):
        last, kept_each = scanned(numbers(5))
        np.testing.assert_array_equal(last, expected)
        np.testing.assert_array_equal(kept_each, [kept] * 20)
        _, last, kept_last = looped(numbers(5))
        np.testing.assert_array_equal(last, expected)
        assert kept_last == kept


def test_cond_and_checkpoint(ops):
    x = numbers(4, 5)
    branched = jax.jit(lambda flag, x: jax.lax.cond(flag, ops.row_medians, lambda x: x[:, 0], x))
    np.testing.assert_array_equal(branched(True, x), medians(x))
    np.testing.assert_array_equal(branched(False, x), x[:, 0])
    np.testing.assert_array_equal(jax.checkpoint(ops.row_medians)(x), medians(x))


def test_a_derivative_of_its_own(ops):
    @jax.custom_vjp
    def total(x):
        return ops.row_medians(x).sum()

    total.defvjp(lambda x: (total(x), x), lambda x, ct: (ct * ops.row_medians(x)[:, None] + x,))
    x = numbers(4, 5)
    np.testing.assert_array_equal(jax.jit(jax.grad(total))(x), medians(x)[:, None] + x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_devices(ops):
    devices = jax.devices()
    x = numbers(len(devices) * 2, 5)
    mesh, spec = jax.sharding.Mesh(devices, "d"), jax.sharding.PartitionSpec("d")
    for checked in (True, False):
        sharded = jax.shard_map(
            ops.row_medians, mesh=mesh, in_specs=spec, out_specs=spec, **{CHECK: checked}
        )
        np.testing.assert_array_equal(jax.jit(sharded)(x), medians(x))
    split = jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
    np.testing.assert_array_equal(jax.jit(ops.row_medians)(split), medians(x))
    mapped = jax.pmap(ops.row_medians)(x.reshape(len(devices), 2, 5))
    np.testing.assert_array_equal(mapped, medians(x).reshape(-1, 2))


def export(ops, function, *arguments, **options):
    checks = jax_callable.disabled_checks(ops)
    exported = jax.export.export(jax.jit(function), disabled_checks=checks, **options)(*arguments)
    return jax.export.deserialize(exported.serialize())


def symbolic(*texts, dtype=np.float32):
    scope = jax.export.SymbolicScope()
    return [
        jax.ShapeDtypeStruct(jax.export.symbolic_shape(text, scope=scope), dtype) for text in texts
    ]


def test_export(ops):
    x = numbers(4, 5)
    exported = export(ops, jax.vmap(ops.row_medians), x[None])
    np.testing.assert_array_equal(exported.call(x[None]), medians(x)[None])


def test_export_with_symbolic_sizes(ops):
    exported = export(ops, functools.partial(ops.add_in_steps, 2), *symbolic("n", "m"))
    for n, m in ((3, 5), (1, 8), (7, 1)):
        x, y = numbers(n), numbers(m)
        result, sizes = exported.call(x, y)
        np.testing.assert_array_equal(result, y + 2 * x.sum())
        np.testing.assert_array_equal(sizes, [2 * (n + 1), -(-m // 2), 1])
    exported = export(ops, jax.vmap(ops.row_medians), *symbolic("b, n, m"))
    for shape in ((2, 3, 5), (1, 4, 2), (3, 1, 1)):
        np.testing.assert_array_equal(exported.call(numbers(*shape)), medians(numbers(*shape)))


def test_a_program_without_the_hidden_result(ops):
    """As another version of the library may have exported it."""
    function = jax.ffi.ffi_call(
        ops.row_medians.target.target, jax.ShapeDtypeStruct((4,), np.float32)
    )
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        jax.block_until_ready(jax.jit(function)(numbers(4, 5)))
    assert "fixture.row_medians: expected 2 results, got 1" in str(error.value)


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((4,), np.float32, ["`sorted`", "axis 0 to be 5, got 4"]),
        ((1, 5), np.float32, ["`sorted`", "expected float32[?], got float32[1, 5]"]),
        ((5,), np.int32, ["`sorted`", "expected float32[?], got int32[5]"]),
        ((0,), np.float32, ["`sorted`", "axis 0 to be 5, got 0"]),
    ],
)
def test_hidden_results_of_other_shapes(ops, shape, dtype, words):
    results = [jax.ShapeDtypeStruct((4,), np.float32), jax.ShapeDtypeStruct(shape, dtype)]
    function = jax.ffi.ffi_call(ops.row_medians.target.target, results)
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        jax.block_until_ready(jax.jit(function)(numbers(4, 5)))
    for word in ["fixture.row_medians: ", *words]:
        assert word in str(error.value)
