"""The stubs of targets with awkward names, texts and homes."""

import ast
import inspect
import json

import pytest
from manifests import array, manifest, raw_target, scalar

from jax_callable import _stubs, _text
from jax_callable._callable import Callable
from jax_callable._manifest import parse


def render(*targets):
    return _stubs.render(parse(json.dumps(manifest(*targets)), "libdemo.so"), "libdemo.so")


def one(*params, **options):
    """The parsed definition of one target, and its text."""
    text = render(raw_target("f", *params, **options))
    return next(each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)), text


@pytest.mark.parametrize(
    ("dtype", "length", "expected"),
    [
        ("bool", None, "_t.Bool"),
        ("int8", None, "_t.Integer"),
        ("uint64", None, "_t.Integer"),
        ("bfloat16", None, "_t.Float"),
        ("float16", None, "_t.Float"),
        ("complex64", None, "_t.Complex"),
        ("str", None, "str"),
        ("bool", 3, "_t.Bools"),
        ("uint8", "slice", "_t.Bytes"),
        ("uint8", 3, "_t.Bytes"),
        ("uint16", "slice", "_t.Integers"),
        ("bfloat16", 3, "_t.Floats"),
        ("complex128", "slice", "_t.Complexes"),
    ],
)
def test_types_of_scalars(dtype, length, expected):
    definition, _ = one(scalar("value", dtype, length), array("out", "output", dims=[3]))
    (value,) = definition.args.args
    assert ast.unparse(value.annotation) == expected


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([array("out", "output")], "_t.Array"),
        ([array("y", "in_out"), array("out", "output")], "tuple[_t.Array, _t.Array]"),
        ([array(n, "output") for n in "abc"], "tuple[_t.Array, _t.Array, _t.Array]"),
    ],
)
def test_results(results, expected):
    definition, _ = one(array("x"), *results)
    assert ast.unparse(definition.returns) == expected


def test_options_have_their_defaults():
    definition, _ = one(array("x"), array("out", "output"), vmap_method="sequential")
    options = [each.arg for each in definition.args.kwonlyargs]
    defaults = [ast.literal_eval(each) for each in definition.args.kw_defaults]
    assert dict(zip(options, defaults, strict=True)) == {
        "output_dims": None,
        "vmap_method": "sequential",
    }
    definition, _ = one(array("y", "in_out"), vmap_method=None)
    assert ast.unparse(definition.args.kwonlyargs[0].annotation) == "None"
    assert ast.literal_eval(definition.args.kw_defaults[1]) is None


@pytest.mark.parametrize(
    "doc",
    [
        "Plain.",
        'Ends in a "quote"',
        'Has """three""" and a \\ and \\n and \\"""',
        "Two lines,\n\n    an indented one, ümlauts, 数 and 🦀.",
        "A bell \x07, a return \r and a zero \x00.",
        "",
    ],
)
def test_doc_strings_survive(doc):
    text = render(raw_target("f", array("x"), array("out", "output"), doc=doc))
    (definition,) = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    (parsed,) = parse(
        json.dumps(manifest(raw_target("f", array("x"), array("out", "output"), doc=doc))), "lib"
    ).targets
    assert ast.get_docstring(definition) == inspect.cleandoc(_text.doc(parsed))


def test_a_name_of_two_crates_is_in_their_classes_only():
    text = render(
        raw_target("scale", array("y", "in_out"), crate="a"),
        raw_target("scale", array("x"), array("out", "output"), crate="b"),
        raw_target("shift", array("y", "in_out"), crate="b"),
    )
    top = {each.name: each for each in ast.parse(text).body if hasattr(each, "name")}
    assert list(top) == ["shift", "a", "b"]
    assert [ast.unparse(each).splitlines()[-1].strip() for each in top["b"].body][-1] == (
        "shift = shift"
    )
    names = [each.name for crate in "ab" for each in top[crate].body if hasattr(each, "name")]
    assert names == ["scale", "scale"]


def test_a_function_with_the_name_of_its_crate():
    text = render(
        raw_target("softmax", array("x"), array("out", "output"), crate="softmax"),
        raw_target("backward", array("y", "in_out"), crate="softmax"),
        raw_target("target", array("y", "in_out"), crate="softmax"),
    )
    body = {each.name: each for each in ast.parse(text).body if hasattr(each, "name")}
    assert list(body) == ["backward", "target", "_softmax"]
    assert ast.unparse(body["_softmax"].bases[0]) == "_t.Function[..., _t.Array]"
    members = [getattr(each, "name", None) or ast.unparse(each) for each in body["_softmax"].body]
    assert members == ["__call__", "softmax", "backward = backward"]
    assert text.endswith("\nsoftmax: _softmax\n")


def test_names_that_the_stub_needs_itself():
    results = array("a", "output"), array("b", "output")
    text = render(
        raw_target("_t", array("x"), *results),
        raw_target("tuple", array("x"), *results, crate="_t_"),
    )
    assert "import jax_callable.typing as _t__" in text
    assert "-> _t__.builtins.tuple[_t__.Array, _t__.Array]:" in text


def test_attributes_of_callables_are_known_to_the_stubs():
    public = {name for name in vars(Callable) if not name.startswith("_")} | {"target"}
    assert public == set(_stubs._ATTRIBUTES)
