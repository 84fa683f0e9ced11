"""What a call refuses before anything is compiled."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from manifests import array, axis, dim, op, scalar, scalar_value, target

from jax_callable._callable import Callable


def make(name, *params, **options):
    made = target(name, *params, **options)
    return Callable(made, made.target, "libdemo.so")


def shapes(function, *args, **kwargs):
    """Traces the call; nothing is compiled, so no handler is needed."""
    result = jax.eval_shape(functools.partial(function, *args, **kwargs))
    results = result if isinstance(result, tuple) else (result,)
    return [each.shape for each in results]


saxpy = make("saxpy", scalar("a", "float32"), array("x"), array("y", "in_out"))
matmul = make(
    "matmul",
    array("a", rank=2, dims=[dim("n"), dim("k")]),
    array("b", rank=2, dims=[dim("k"), dim("m")]),
    array("c", "output", rank=2, dims=[dim("n"), dim("m")]),
)
normals = make("normals", array("p", packed=[3]), array("v", "output", packed=[3]))
two = make("two", array("x"), array("y", "output"), array("z", "output", rank=0, dims=[]))
x = np.ones(4, np.float32)


def test_by_position_and_by_name():
    assert shapes(saxpy, 2.0, x, x) == shapes(saxpy, y=x, a=2, x=x) == [(4,)]
    assert shapes(saxpy, 2.0, y=x, x=x) == [(4,)]


def test_one_result_is_the_array_and_several_a_plain_tuple():
    assert type(jax.eval_shape(lambda: saxpy(2.0, x, x))) is jax.ShapeDtypeStruct
    assert type(jax.eval_shape(lambda: two(x))) is tuple
    assert shapes(two, x) == [(4,), ()]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: saxpy(2.0, x), "missing parameter `y`"),
        (lambda: saxpy(), "missing parameters `a`, `x`, `y`"),
        (lambda: saxpy(2.0, x, x, x), "takes 3 arguments (a, x, y), got 4"),
        (lambda: saxpy(2.0, x, x, x=x), "two values for parameter `x`"),
        (lambda: saxpy(2.0, x, x, q=1), "unknown keyword `q`"),
        (lambda: two(x, z=x), "`z` is an output"),
        (lambda: saxpy(2.0, x, [1.0]), "parameter `y`: expected a float32[:] array, got [1.0]"),
        (lambda: saxpy(2.0, x, 1.0), "jnp.asarray(..., dtype=jnp.float32)"),
        (lambda: saxpy(2.0, x, None), "got None"),
        (lambda: saxpy(2.0, x, jax.ShapeDtypeStruct((4,), "float32")), "jax.eval_shape"),
        (lambda: saxpy(2.0, x.astype(np.float16), x), "`x`: expected dtype float32, got float16"),
        (lambda: saxpy(2.0, x.astype(np.float64), x), "expected dtype float32, got float64"),
        (lambda: saxpy(2.0, jnp.arange(4), x), "got int32"),
        (lambda: saxpy(2.0, np.ma.masked_array(x), x), "expected a float32[:] array, got masked"),
        (lambda: saxpy(2.0, x.astype(">f4"), x), "got >f4"),
        (lambda: saxpy(2.0, jax.random.key(0), x), "expected dtype float32, got key"),
        (lambda: saxpy(2.0, x[None], x), "expected rank 1, float32[:]; got shape (1, 4)"),
        (lambda: saxpy(2.0, x[0], x), "got shape ()"),
        (lambda: normals(x), "expected rank 2 (1 + 1 packed), float32[:, 3]; got shape (4,)"),
        (lambda: normals(x[:, None]), "trailing dimensions (3,)"),
        (lambda: saxpy("2", x, x), "parameter `a`: expected a float32, got '2'"),
    ],
)
def test_type_errors(call, text):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value).startswith("demo.")
    assert text in str(error.value)


def test_numpy_scalar_is_a_rank_0_array():
    f = make("f", array("x", rank=0), array("o", "output", rank=0))
    assert shapes(f, np.float32(1)) == [()]
    with pytest.raises(TypeError, match=r"float64"):
        f(np.float64(1))


def test_object_with_jax_array_protocol():
    class Wrapped:
        def __jax_array__(self):
            return jnp.ones(4)

    assert shapes(saxpy, 2.0, Wrapped(), x) == [(4,)]


@pytest.fixture
def x64(request):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", request.param)
    yield
    jax.config.update("jax_enable_x64", before)


wide_input = make("f", array("x", dtype="float64"), array("o", "output", dtype="float64"))
wide_output = make("g", array("x"), array("o", "output", dtype="float64"))


@pytest.mark.parametrize("x64", [False], indirect=True)
def test_64_bit_arrays_without_x64(x64):
    with pytest.raises(TypeError, match=r"got float32.*jax_enable_x64"):
        wide_input(jnp.ones(4))
    with pytest.raises(TypeError, match=r"JAX would narrow.*to float32.*jax_enable_x64"):
        wide_input(np.ones(4))
    # The handler writes 64-bit values whatever JAX's default is.
    assert jax.eval_shape(lambda: wide_output(x)).dtype == np.float64


@pytest.mark.parametrize("x64", [True], indirect=True)
def test_64_bit_arrays_with_x64(x64):
    assert shapes(wide_input, np.ones(4)) == [(4,)]
    assert shapes(wide_input, jnp.ones(4)) == [(4,)]
    with pytest.raises(TypeError, match=r"got float32$"):
        wide_input(x)


def test_traced_scalar():
    for call in (
        lambda: jax.jit(saxpy)(2.0, x, x),
        lambda: jax.vmap(saxpy)(x, x[:, None], x[:, None]),
        lambda: jax.jit(make("f", scalar("s", "int32", "slice"), array("x")))([1, 2], x),
    ):
        with pytest.raises(TypeError, match=r"static .* traced value.*rank 0"):
            call()


def test_static_scalar_in_a_traced_call():
    jaxpr = jax.make_jaxpr(jax.jit(saxpy, static_argnames="a"), static_argnums=0)(2.0, x, x)
    assert jaxpr.out_avals[0].shape == (4,)
    batched = jax.vmap(saxpy, (None, 0, 0))
    assert jax.eval_shape(lambda x: batched(2.0, x, x), x[None]).shape == (1, 4)
    constant = jnp.float32(2)
    assert jax.eval_shape(lambda x: saxpy(constant, x, x), x).shape == (4,)


def test_checks_see_the_unbatched_shape():
    batched = jax.vmap(functools.partial(saxpy, 2.0))
    with pytest.raises(TypeError, match=r"got shape \(1, 4\)"):
        jax.eval_shape(batched, x[None, None], x[None, None])


def test_named_dimensions():
    a, b = np.ones((4, 5), np.float32), np.ones((6, 2), np.float32)
    with pytest.raises(ValueError, match=r"demo.matmul: parameter `b`: axis 0 is `k` = 6"):
        matmul(a, b)
    assert shapes(matmul, a, b[:5]) == [(4, 2)]


def test_rule_over_scalars_and_axes():
    f = make(
        "f",
        scalar("k", "uint32"),
        array("x", rank=2),
        array("o", "output", dims=[op("div_ceil", axis("x", 1), scalar_value("k"))]),
    )
    assert shapes(f, 3, np.ones((2, 7), np.float32)) == [(3,)]
    with pytest.raises(ValueError, match=r"output `o`: axis 0: .*divides by zero"):
        f(0, np.ones((2, 7), np.float32))


a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    "output_dims",
    [(5, 6), [5, 6], np.array([5, 6]), (np.int64(5), np.uint8(6)), {"c": (5, 6)}, {"c": [5, 6]}],
)
def test_output_dims(output_dims):
    assert shapes(matmul, a, b, output_dims=output_dims) == [(5, 6)]


def test_output_dims_of_one_axis_and_of_none():
    assert shapes(two, x, output_dims={"y": 7}) == [(7,), ()]
    assert shapes(two, x, output_dims={"z": ()}) == [(4,), ()]
    assert shapes(two, x, output_dims={}) == [(4,), ()]
    assert shapes(two, x, output_dims=None) == [(4,), ()]


def test_output_dims_of_packed_elements():
    p = np.ones((4, 3), np.float32)
    assert shapes(normals, p) == [(4, 3)]
    for given in (5, (5,), (5, 3), {"v": (5, 3)}):
        assert shapes(normals, p, output_dims=given) == [(5, 3)]
    with pytest.raises(ValueError, match=r"1 dimension, or 2 ending in \(3,\)"):
        normals(p, output_dims=(5, 4))


@pytest.mark.parametrize(
    ("output_dims", "error", "text"),
    [
        (3, ValueError, "expected 2 dimensions (float32[n, m]), got (3,)"),
        ((1, 2, 3), ValueError, "got (1, 2, 3)"),
        ((True, 4), ValueError, "must be an integer, got True"),
        ((np.bool_(True), 4), ValueError, "must be an integer"),
        ((-1, 4), ValueError, "cannot be negative, got -1"),
        ({"d": 3}, ValueError, "no output is named 'd'; the outputs are c"),
        ((2.0, 4), TypeError, "must be an integer, got 2.0 (float)"),
        ("24", TypeError, "must be an integer, got '24'"),
        ((None, 4), TypeError, "got None"),
        ((2**63, 4), OverflowError, "64-bit"),
    ],
)
def test_bad_output_dims(output_dims, error, text):
    with pytest.raises(error) as raised:
        matmul(a, b, output_dims=output_dims)
    assert str(raised.value).startswith("demo.matmul: output_dims")
    assert text in str(raised.value)


def test_output_dims_where_they_have_no_place():
    with pytest.raises(ValueError, match=r"no output needs a shape"):
        saxpy(2.0, x, x, output_dims=4)
    f = make("f", array("y", "in_out"), array("o", "output"))
    with pytest.raises(ValueError, match=r"`y` is an in-out"):
        f(x, output_dims={"y": 4})
    with pytest.raises(TypeError, match=r"traced value"):
        jax.jit(lambda n: two(x, output_dims={"y": n}))(3)


def test_vmap_method():
    with pytest.raises(ValueError, match=r"vmap_method must be one of .*got 'fast'"):
        saxpy(2.0, x, x, vmap_method="fast")
    batched = jax.vmap(functools.partial(saxpy, 2.0, vmap_method=None))
    with pytest.raises(NotImplementedError, match=r"demo.saxpy: vmap_method is None.*sequential"):
        jax.eval_shape(batched, x[None], x[None])


def test_differentiation_names_the_target():
    with pytest.raises(NotImplementedError, match=r"demo\.saxpy: .*jax\.custom_vjp"):
        jax.eval_shape(jax.grad(lambda x: saxpy(2.0, x, x).sum()), x)
