"""Derivatives by `vjp`, against pure jax.numpy twins and finite differences."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivatives import batch, close, loss, matrix, offset, power, several, vector, x
from jax.test_util import check_grads


def growth(x, y):
    return jnp.exp(x * y), x + y


PAIRS = {
    "smooth": (lambda ops: ops.smooth, jax.nn.softmax, (x,)),
    "axpy": (lambda ops: functools.partial(ops.axpy, 3), lambda x, y: 3 * x + y, (x, x + 1)),
    "growth": (lambda ops: ops.growth, growth, (x, x / 2 + 1)),
    "norms": (
        lambda ops: ops.norms,
        lambda vectors: jnp.linalg.norm(vectors, axis=-1),
        (np.arange(1, 13, dtype=np.float32).reshape(4, 3),),
    ),
    "kept": (lambda ops: ops.kept, lambda x: x, (x,)),
    "tile": (
        lambda ops: functools.partial(ops.tile, [3], output_dims=12, vmap_method="sequential"),
        lambda x: 3 * jnp.resize(x, 12),
        (x,),
    ),
}


@pytest.fixture(params=PAIRS)
def pair(request, ops):
    """A Rust function, its twin in jax.numpy, and arguments."""
    find, twin, args = PAIRS[request.param]
    return find(ops), twin, args


@pytest.fixture(
    params=["eager", "jit", "inner jit", "remat", "scan", "vmap of grad", "grad of vmap"]
)
def gradient(request):
    """Ways to the gradient by all arguments."""

    def grad(function, args):
        return jax.grad(loss(function), tuple(range(len(args))))

    def scan(function, args):
        def steps(*args):
            body = jax.checkpoint(lambda total, _: (total + loss(function)(*args) * total, None))
            return jax.lax.scan(body, jnp.float32(1), None, 3)[0]

        return jax.grad(steps, tuple(range(len(args))))

    def batches(args):
        return [jnp.stack([arg, arg / 2, -arg]) for arg in args]

    return {
        "eager": grad,
        "jit": lambda f, args: jax.jit(grad(f, args)),
        "inner jit": lambda f, args: grad(jax.jit(f), args),
        "remat": lambda f, args: jax.jit(grad(jax.checkpoint(f), args)),
        "scan": lambda f, args: jax.jit(scan(f, args)),
        "vmap of grad": lambda f, args: lambda *args: jax.vmap(grad(f, args))(*batches(args)),
        "grad of vmap": lambda f, args: lambda *args: grad(jax.vmap(f), args)(*batches(args)),
    }[request.param]


def test_gradients(pair, gradient):
    function, twin, args = pair
    close(gradient(function, args), gradient(twin, args), *args)


def test_finite_differences(pair):
    function, _, args = pair
    check_grads(function, args, order=1, modes=["rev"], atol=2e-2, rtol=2e-2)


def test_jacobians(pair):
    function, twin, args = pair
    close(jax.jacrev(function), jax.jacrev(twin), *args)
    close(jax.jit(jax.jacrev(function)), jax.jacrev(twin), *args)


@pytest.mark.parametrize("wrt", [(0,), (2,), (3,), (0, 3), (0, 2, 3)], ids=str)
def test_several_arguments_and_results(rust_several, wrt):
    args = (matrix, offset, vector, power)
    close(jax.grad(loss(rust_several), wrt), jax.grad(loss(several), wrt), *args)


@pytest.mark.parametrize(
    "use", [lambda r: r[1] * 2, lambda r: r[0].sum(), lambda r: 3.0 * r[2]], ids=["1", "0", "none"]
)
def test_cotangents_of_unused_results_are_zero(rust_several, use):
    ours, theirs = (
        jax.grad(lambda *args, f=f: use(f(*args)), (0, 2, 3)) for f in (rust_several, several)
    )
    close(ours, theirs, matrix, offset, vector, power)


def test_integers_have_no_derivative(rust_several):
    args = (matrix, offset, vector, power)
    _, pullback = jax.vjp(rust_several, *args)
    ct = (jnp.ones(3), jnp.float32(1), np.zeros((), jax.dtypes.float0))
    _, d_offset, _, _ = pullback(ct)
    assert (d_offset.shape, d_offset.dtype) == ((3,), jax.dtypes.float0)


@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, None), (None, None, 0), (1, 0, None)])
@pytest.mark.parametrize("method", ["broadcast_all", "sequential"])
def test_batches_of_some_arguments(ops, axes, method):
    args = [
        arg if axis is None else jnp.stack([arg, arg / 2, -arg, arg + 1], axis)
        for arg, axis in zip((matrix, vector, power), axes, strict=True)
    ]

    def summed(function):
        return lambda *args: loss(jax.vmap(function, axes))(*args)

    rust = functools.partial(ops.several, 2.5, "label", vmap_method=method)
    ours, theirs = (lambda m, v, p, f=f: f(m, offset, v, p) for f in (rust, several))
    wrt = (0, 1, 2)
    # What elements share has the sum of their derivatives.
    close(jax.grad(summed(ours), wrt), jax.grad(summed(theirs), wrt), *args)
    each = [jax.vmap(jax.grad(loss(f), wrt), axes) for f in (ours, theirs)]
    close(*each, *args)
    close(*map(jax.jit, each), *args)


BY_A_NUMBER = {
    "eager": lambda f: jax.grad(f)(0.5, vector),
    "jit": lambda f: jax.jit(lambda: jax.grad(f)(0.5, vector))(),
    "loop": lambda f: jax.grad(
        lambda p: jax.lax.fori_loop(0, 3, lambda _, c: jnp.sin(f(c, vector)), p)
    )(0.5),
    "vmap of grad": lambda f: jax.vmap(lambda v: jax.grad(f)(0.5, v))(np.stack([vector, -vector])),
    "grad of vmap": lambda f: jax.grad(
        lambda p: jax.vmap(lambda v: f(p, v))(np.stack([vector, -vector])).sum()
    )(0.5),
}


@pytest.mark.parametrize("transform", BY_A_NUMBER.values(), ids=BY_A_NUMBER)
@pytest.mark.parametrize("method", ["broadcast_all", "sequential"])
def test_by_a_number_of_python(ops, transform, method):
    rust = functools.partial(ops.several, 2.5, "label", vmap_method=method)
    ours, theirs = (loss(lambda p, v, f=f: f(matrix, offset, v, p)[:2]) for f in (rust, several))
    close(lambda: transform(ours), lambda: transform(theirs))


def test_nested_batches(ops):
    def twice(function):
        rows = jax.vmap(function, (0, None, None))
        both = jax.vmap(rows, (None, 0, None))
        return jax.grad(loss(lambda m, v, p: both(m, v, p)), (0, 1, 2))

    ours, theirs = (
        twice(lambda m, v, p, f=f: f(m, offset, v, p)[:2])
        for f in (functools.partial(ops.several, 2.5, "label"), several)
    )
    matrices, vectors = np.stack([matrix, matrix + 1]), np.stack([vector, -vector, vector**2])
    close(ours, theirs, matrices, vectors, power)


def test_residuals_are_not_copied_over_a_batch(ops):
    # Only cotangents have the batch of a Jacobian.
    _, pullback = jax.vjp(ops.smooth, x)
    text = jax.jit(jax.vmap(pullback)).lower(np.eye(5, dtype=np.float32)).as_text()
    assert 'jc.batch = "0,1"' in text


def test_second_derivatives(ops):
    def hessian(function):
        return jax.jacrev(jax.grad(loss(function)))

    close(hessian(ops.smooth), hessian(jax.nn.softmax), x)
    close(jax.jit(hessian(jax.jit(ops.smooth))), hessian(jax.nn.softmax), x)
    close(jax.vmap(hessian(ops.smooth)), jax.vmap(hessian(jax.nn.softmax)), batch)
    check_grads(ops.smooth, (x,), order=2, modes=["rev"], atol=2e-2, rtol=2e-2)


def test_results_without_derivatives_need_no_vjp(ops):
    def weighted(x):
        return jnp.sum(x**2) * ops.largest(x)

    for function in (weighted, jax.jit(weighted), jax.checkpoint(weighted)):
        np.testing.assert_allclose(jax.grad(function)(x), 2 * x * 4)
    np.testing.assert_allclose(jax.jvp(weighted, (x,), (np.ones_like(x),))[1], 8 * x.sum())
    np.testing.assert_allclose(jax.vmap(jax.grad(weighted))(batch[:2]), 2 * batch[:2] * 4)


def test_a_third_derivative_names_the_last_callable(ops):
    third = jax.jacrev(jax.jacrev(jax.jacrev(ops.smooth)))
    with pytest.raises(NotImplementedError, match=r"fixture\.smooth_vjp_vjp: .*vjp = "):
        third(x)
    with pytest.raises(NotImplementedError, match=r"fixture\.several_vjp: .*vjp = "):
        jax.jacrev(jax.grad(lambda v: ops.several(1, "label", matrix, offset, v, power)[1]))(vector)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64", "complex64", "complex128"])
def test_element_types(ops, x64, name):
    product = getattr(ops, f"product_{name}")
    factors = [jnp.asarray(value, name) for value in ([1.5, -2, 0.25], [3, 0.5, -1])]
    if name.startswith("complex"):
        factors = [factor * (1 - 2j) for factor in factors]
    _, ours = jax.vjp(product, *factors)
    _, theirs = jax.vjp(jnp.multiply, *factors)
    close(ours, theirs, factors[0] + factors[1], tolerance=1e-2 if "16" in name else 1e-6)


def test_shapes_of_derivatives_are_those_of_inputs(ops):
    # Neither the first array's, nor the call's own.
    twin = functools.partial(jnp.resize, new_shape=12)
    close(
        jax.grad(loss(lambda x: ops.tile([1], x, output_dims={"y": 12}))), jax.grad(loss(twin)), x
    )
    with pytest.raises(
        ValueError, match=r"fixture\.misshapen_vjp: `d_x` has shape \(6,\), but `x`"
    ):
        jax.grad(lambda x: ops.misshapen(x).sum())(x)


def test_a_chosen_vmap_method_is_for_both(ops):
    def tiled(method, x):
        return loss(functools.partial(ops.tile, [1], output_dims=12, vmap_method=method))(x)

    jax.vmap(jax.grad(functools.partial(tiled, "broadcast_all")))(batch)
    with pytest.raises(NotImplementedError, match=r"fixture\.tile: vmap_method is None"):
        jax.vmap(jax.grad(functools.partial(tiled, None)))(batch)
    # The backward one's own, where none is chosen.
    _, pullback = jax.vjp(functools.partial(ops.tile, [1], output_dims=12), x)
    with pytest.raises(NotImplementedError, match=r"fixture\.tile_vjp: vmap_method is None"):
        jax.vmap(pullback)(np.eye(12, dtype=np.float32))


FORWARD_MODE = {
    "jvp": lambda f: jax.jvp(f, (x,), (x,)),
    "jacfwd": lambda f: jax.jacfwd(f)(x),
    "jit of jvp": lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (x,)))(x),
    "jvp of jit": lambda f: jax.jvp(jax.jit(f), (x,), (x,)),
    "jit of jacfwd": lambda f: jax.jit(jax.jacfwd(f))(x),
    "jit of jvp of jvp": lambda f: jax.jit(
        lambda x: jax.jvp(lambda x: jax.jvp(f, (x,), (x,))[1], (x,), (x,))
    )(x),
    "vmap of jvp": lambda f: jax.vmap(lambda x: jax.jvp(f, (x,), (x,)))(batch),
    "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(f))(x),
    "hessian": lambda f: jax.hessian(loss(f))(x),
    "linearize": lambda f: jax.linearize(f, x)[1](x),
    "remat": lambda f: jax.jvp(jax.checkpoint(f), (x,), (x,)),
    "scan": lambda f: jax.jvp(
        lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, 2), (x,), (x,)
    ),
}


@pytest.mark.parametrize("transform", FORWARD_MODE.values(), ids=FORWARD_MODE)
def test_there_is_no_forward_mode(ops, transform):
    message = r"fixture\.smooth: forward-mode .*not offered.*jax\.grad"
    with pytest.raises(NotImplementedError, match=message):
        transform(ops.smooth)


def test_a_backward_callable_is_a_target(ops):
    assert ops.axpy.target.vjp == ("fixture", "axpy_vjp")
    d_y, d_x = ops.axpy_vjp(2, x)
    np.testing.assert_array_equal(d_y, x)
    np.testing.assert_array_equal(d_x, 2 * x)
