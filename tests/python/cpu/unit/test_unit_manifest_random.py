"""Damaged manifests, at random: one is read as what it says, or refused with an error of ours.

The cases are the same in each run. `HYPOTHESIS_PROFILE=explore` tries others, and more of them.
"""

import copy
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifests import array, axis, dim, handler, manifest, op, raw_target, scalar, scalar_value

from jax_callable import errors
from jax_callable._manifest import Axis, Dim, Op, ScalarValue, parse

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=150)
settings.register_profile("explore", deadline=None, max_examples=100_000)
PROFILE = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

FULL = manifest(
    raw_target(
        "f",
        scalar("k", "int32"),
        scalar("text", "str"),
        scalar("list", "float32", "slice"),
        scalar("three", "uint8", 3),
        array("x", rank=2, dims=[dim("n"), op("div_ceil", axis("y", 0), scalar_value("k"))]),
        array("y", "in_out", packed=[3, 2]),
        array("z", "output", "bfloat16", 0, dims=[]),
        doc="Docs.",
        batch_dims=["n"],
        vjp={"crate": "demo", "name": "g"},
        handlers=[
            handler(),
            {**handler("CUDA", 1), "scratch": [array("w", "scratch", dims=[op("*", dim("n"), 2)])]},
        ],
    ),
    raw_target("g", array("x"), absent={"platform": "CUDA", "index": 2, "reason": "it has none"}),
    cuda_libraries=["nvrtc"],
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.just(2**70)
    | st.floats()
    | st.sampled_from(["", "n", "x", "slice", "scalar", "input", "output", "float32", "cpu", "+"])
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["dim", "axis", "scalar", "op", "args", "name", "role"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=5,
)


def places(value, path=()):
    """Where there is something, as keys from the outermost."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@st.composite
def damaged(draw):
    """The full manifest with one to three places changed."""
    raw = copy.deepcopy(FULL)
    for _ in range(draw(st.integers(1, 3))):
        *outer, last = draw(st.sampled_from(list(places(raw))))
        inside = raw
        for key in outer:
            inside = inside[key]
        match draw(st.sampled_from(["set", "set", "delete", "copy"])):
            case "set":
                inside[last] = draw(VALUES)
            case "delete":
                del inside[last]
            case "copy" if isinstance(inside, list):
                inside.insert(last, copy.deepcopy(inside[last]))
            case "copy":
                inside[draw(st.text(max_size=3))] = inside[last]
    return raw


def expr(rule):
    match rule:
        case Dim(name):
            return dim(name)
        case Axis(param, index):
            return axis(param, index)
        case ScalarValue(name):
            return scalar_value(name)
        case Op():
            return op(rule.op, expr(rule.left), expr(rule.right))
    return rule


def raw_param(param):
    if param.role == "scalar":
        return scalar(param.name, param.dtype, param.length)
    dims = None if param.dims is None else [expr(rule) for rule in param.dims]
    return array(param.name, param.role, param.dtype, param.rank, dims=dims, packed=param.packed)


def written(found):
    """A manifest as JSON again: what was read of it."""
    targets = [
        {
            "crate": target.crate,
            "name": target.name,
            "target": target.target,
            "doc": target.doc,
            "params": [raw_param(param) for param in target.params],
            "vmap_method": target.vmap_method,
            "batch_dims": list(target.batch_dims),
            "has_side_effect": target.has_side_effect,
            "vjp": target.vjp and dict(zip(("crate", "name"), target.vjp, strict=True)),
            "handlers": [
                {
                    **handler.options,
                    "platform": handler.platform,
                    "index": handler.index,
                    "file": handler.file,
                    "line": handler.line,
                    "module": handler.module,
                    "scratch": [raw_param(param) for param in handler.scratch],
                }
                for handler in target.handlers
            ],
            "absent": target.absent and vars(target.absent),
        }
        for target in found.targets
    ]
    return manifest(*targets, version=found.version, cuda_libraries=list(found.cuda_libraries))


def known(got, expected):
    """What is read of `got`: keys that nobody knows are passed over."""
    if isinstance(got, dict) and isinstance(expected, dict):
        return {key: known(got[key], expected[key]) for key in got if key in expected}
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        return [known(*pair) for pair in zip(got, expected, strict=True)]
    return got


def check(text):
    """Whether a manifest is read."""
    try:
        found = parse(text, "libdemo.so")
    except errors.LoadError as error:
        assert "libdemo.so: " in str(error)
        return False
    expected = written(found)
    # As JSON, in which 1 is neither 1.0 nor true.
    assert json.dumps(known(json.loads(text), expected), sort_keys=True) == json.dumps(
        expected, sort_keys=True
    )
    sizes = [
        size
        for target in found.targets
        for param in (*target.params, *(w for h in target.handlers for w in h.scratch))
        for size in (param.rank, *param.packed, param.length if param.length != "slice" else 0)
    ]
    assert all(size is None or size >= 0 for size in sizes)
    return True


def test_the_full_manifest_is_read():
    assert check(json.dumps(FULL))


OTHERS = [None, True, 0, 1, -1, 1.0, 2**70, "", "nm", [], ["nm"], {}, {"dim": "n"}]


def test_every_value_as_every_other():
    for *outer, last in places(FULL):
        raw = copy.deepcopy(FULL)
        inside = raw
        for key in outer:
            inside = inside[key]
        for value in OTHERS:
            inside[last] = value
            check(json.dumps(raw))
        del inside[last]
        check(json.dumps(raw))


@settings(PROFILE)
@given(damaged())
def test_damaged_values(raw):
    check(json.dumps(raw))


@settings(PROFILE)
@given(st.data())
def test_damaged_bytes(data):
    text = bytearray(json.dumps(FULL).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text) - 1))
        end = start + data.draw(st.integers(0, 4))
        text[start:end] = data.draw(st.binary(max_size=4))
    check(bytes(text))


@pytest.mark.parametrize("opening", ["[", '{"abi":', '{"op":"+","args":['])
def test_endless_nesting(opening):
    dims = FULL["targets"][1]["params"][0] | {"dims": ["deep"]}
    raw = manifest(raw_target("f", dims))
    assert not check(json.dumps(raw).replace('"deep"', opening * 100_000))
