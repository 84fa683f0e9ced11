"""Tables, signatures and doc strings."""

import inspect
import pydoc

from manifests import array, dim, handler, scalar, target

from jax_callable import _text
from jax_callable._callable import Callable

SAXPY = target(
    "saxpy",
    scalar("a", "float32"),
    array("x", dims=[dim("n")]),
    array("y", "in_out", dims=[dim("n")]),
    doc="y <- a x + y, in place.",
    handlers=[handler(), handler("CUDA", 1, "src/cuda.rs", 5)],
)
SPLIT = target(
    "split",
    array("p", rank=2, packed=[3]),
    array("u", "output", rank=0, dims=[]),
    array("v", "output", "int32", 1, dims=[4]),
    vmap_method=None,
    has_side_effect=True,
)


def test_table():
    saxpy = "(a: float32, x: float32[n], y: float32[n] in-out) -> y"
    split = "(p: float32[:, :, 3]) -> u: float32[], v: int32[4]"
    assert _text.table("ops: 2 targets", [SAXPY, SPLIT]).splitlines() == [
        "ops: 2 targets",
        "name   platforms  vmap           source                        signature",
        f"saxpy  cpu, CUDA  broadcast_all  src/lib.rs:12, src/cuda.rs:5  {saxpy}",
        f"split  cpu        none           src/lib.rs:12                 {split}",
    ]


def test_table_tells_equal_names_apart():
    other = target("saxpy", array("x"), crate="other")
    lines = _text.table("ops", [SAXPY, other]).splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["demo.saxpy", "other.saxpy"]


def test_signature():
    assert str(_text.signature(SAXPY)) == (
        "(a: float32, x: float32[n], y: float32[n], *, output_dims=None, "
        "vmap_method='broadcast_all') -> float32[n]"
    )
    assert str(_text.signature(SPLIT)) == (
        "(p: float32[:, :, 3], *, output_dims=None, vmap_method=None) -> (float32[], int32[4])"
    )


def test_doc():
    text = _text.doc(SAXPY)
    assert text.startswith("y <- a x + y, in place.\n\nArgs:\n    a: float32, static.\n")
    assert "    y: float32[n], in-out." in text
    assert "side effects" not in text
    assert "Derivatives" not in text
    assert "side effects" in _text.doc(SPLIT)
    assert "p: float32[:, :, 3], input; elements of shape (3,)." in _text.doc(SPLIT)


def test_doc_names_the_derivative():
    text = _text.doc(target("f", array("x"), vjp={"crate": "demo", "name": "back"}))
    assert text.endswith("\n\nDerivatives are reverse mode, by demo.back.")


def test_callable_describes_itself():
    function = Callable(SAXPY, SAXPY.target, "libdemo.so")
    assert function.__name__ == "saxpy"
    assert function.__qualname__ == "demo.saxpy"
    assert inspect.signature(function) == function.signature == _text.signature(SAXPY)
    assert "y <- a x + y" in function.__doc__
    assert repr(function) == (
        "<jax_callable demo.saxpy(a: float32, x: float32[n], y: float32[n] in-out) -> y>"
    )
    page = pydoc.plain(pydoc.render_doc(function))
    assert "a: float32" in page
    assert "y <- a x + y" in page


def test_callable_is_equal_per_target_and_no_method():
    function = Callable(SAXPY, SAXPY.target, "libdemo.so")
    again = Callable(SAXPY, SAXPY.target, "libdemo.so")
    rebuilt = Callable(SAXPY, SAXPY.target + ".g2", "libdemo.so")
    assert function == again
    assert hash(function) == hash(again)
    assert function != rebuilt
    assert function != "saxpy"

    class Model:
        step = function

    assert Model().step is function
