"""Which parameters of a backward callable are which, without a library."""

import pytest
from manifests import array, scalar, target

from jax_callable import errors
from jax_callable._callable import Callable
from jax_callable._vjp import link


def linked(*targets):
    """Callables of targets of one library."""
    callables = [Callable(each, each.target, "libdemo.so") for each in targets]
    link(callables)
    return callables


def differentiable(*params):
    return target("f", *params, vjp={"crate": "demo", "name": "b"})


FORWARD = differentiable(
    scalar("a", "float32"),
    array("x"),
    array("n", dtype="int32"),
    array("y", "in_out"),
    array("z", "output"),
)


def test_parameters_have_meanings():
    names = ("z", "out_z", "ct_z", "y", "out_y", "ct_y", "n", "x")
    results = (array("d_x", "output"), array("d_y", "output"))
    backward = target("b", *map(array, names), scalar("a", "float32"), *results)
    forward, backward = linked(FORWARD, backward)
    vjp = forward._vjp
    assert vjp.backward is backward
    assert vjp.arguments == (
        ("result", 1),
        ("result", 1),
        ("cotangent", 1),
        ("operand", 2),
        ("result", 0),
        ("cotangent", 0),
        ("operand", 1),
        ("operand", 0),
    )
    assert vjp.derivatives == (0, None, 1)
    assert vjp.smooth == (0, 1)
    assert backward._vjp is None


def test_an_in_out_is_a_cotangent_first():
    forward, _ = linked(FORWARD, target("b", array("d_y", "in_out"), array("d_x", "output")))
    assert forward._vjp.arguments == (("cotangent", 0),)
    assert forward._vjp.derivatives == (1, None, 0)
    # `z` counts as a constant.
    assert forward._vjp.smooth == (0,)


def test_a_name_of_the_forward_callable_comes_first():
    forward = differentiable(array("ct_y"), array("y", "in_out"))
    results = (array("d_y", "in_out"), array("d_ct_y", "output"))
    forward, _ = linked(forward, target("b", array("ct_y"), *results))
    assert forward._vjp.arguments == (("operand", 0), ("cotangent", 0))


def test_a_backward_callable_must_be_in_the_library():
    other = target("b", array("ct_z"), array("d_x", "output"), crate="other")
    message = r"demo\.f: its vjp, demo\.b, is not in the library; .*link!\(demo\)"
    with pytest.raises(errors.ManifestError, match=message):
        linked(FORWARD, other)
