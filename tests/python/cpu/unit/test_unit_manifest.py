"""Reading the manifest."""

import json

import pytest
from manifests import array, axis, dim, handler, manifest, op, raw_target, scalar, scalar_value

from jax_callable import errors
from jax_callable._manifest import Absent, Axis, Dim, Op, Param, ScalarValue, parse


def read(raw):
    return parse(json.dumps(raw), "libdemo.so")


def test_all_fields():
    params = [
        scalar("k", "int32"),
        scalar("s", "str"),
        scalar("fs", "float32", "slice"),
        scalar("i3", "int32", 3),
        array("x", rank=2, dims=[dim("n"), op("+", axis("y", 0), scalar_value("k"))]),
        array("y", "in_out", rank=1, packed=[3]),
        array("z", "output", "bfloat16", 0, dims=[]),
    ]
    target = read(
        manifest(
            raw_target(
                "f",
                *params,
                doc="Docs.",
                vmap_method=None,
                batch_dims=["n"],
                has_side_effect=True,
                vjp={"crate": "demo", "name": "g"},
                handlers=[handler(), handler("CUDA", 1, "src/cuda.rs", 5)],
            )
        )
    ).targets[0]
    assert target.path == "demo.f"
    assert target.target == "demo.f.0123abcd"
    assert target.doc == "Docs."
    assert target.vmap_method is None
    assert target.batch_dims == ("n",)
    assert target.has_side_effect
    assert target.vjp == ("demo", "g")
    assert target.platforms == ("cpu", "CUDA")
    assert target.handlers[1].file == "src/cuda.rs"
    assert target.handlers[1].line == 5
    assert target.handlers[0].options["preload"] == "CurrentDevice"
    assert target.params[:4] == (
        Param("k", "scalar", "int32"),
        Param("s", "scalar", "str"),
        Param("fs", "scalar", "float32", length="slice"),
        Param("i3", "scalar", "int32", length=3),
    )
    assert target.params[4].dims == (Dim("n"), Op("+", Axis("y", 0), ScalarValue("k")))
    assert target.params[5].packed == (3,)
    assert target.params[6].dims == ()
    assert [param.name for param in target.inputs] == ["k", "s", "fs", "i3", "x", "y"]
    assert [param.name for param in target.operands] == ["x", "y"]
    assert [param.name for param in target.results] == ["y", "z"]


def test_the_platform_without_a_function():
    absent = {"platform": "CUDA", "index": 7, "reason": "it has none"}
    target = read(manifest(raw_target("f", array("x"), absent=absent))).targets[0]
    assert target.absent == Absent("CUDA", 7, "it has none")
    assert target.platforms == ("cpu",)
    assert read(manifest(raw_target("f", array("x")))).targets[0].absent is None


def test_scratch_is_of_one_handler():
    scratch = array("w", "scratch", "int16", dims=[op("+", dim("n"), 1)], packed=[2])
    handlers = [handler(), {**handler("CUDA", 1), "scratch": [scratch]}]
    target = read(manifest(raw_target("f", array("x"), handlers=handlers))).targets[0]
    cpu, cuda = target.handlers
    rule = Op("+", Dim("n"), 1)
    assert cpu.scratch == ()
    assert cuda.scratch == (Param("w", "scratch", "int16", rank=1, packed=(2,), dims=(rule,)),)
    assert "scratch" not in cuda.options
    assert [param.name for param in target.params] == ["x"]


def test_targets_are_equal_and_hashable_by_value():
    raw = manifest(raw_target("f", array("x")))
    assert read(raw).targets == read(raw).targets
    assert len({*read(raw).targets, *read(raw).targets}) == 1


@pytest.mark.parametrize(("abi", "side"), [(2, "pip install"), (0, "cargo update")])
def test_other_abi_names_the_side_to_upgrade(abi, side):
    # Nothing else can be known about another version's manifest.
    with pytest.raises(errors.AbiVersionError, match=side):
        read({"abi": abi})


def test_errors_of_the_library_refuse_it():
    problem = "`saxpy` is defined twice: src/a.rs:1 and src/b.rs:2"
    with pytest.raises(errors.ManifestError, match=r"src/b.rs:2"):
        read(manifest(raw_target("saxpy", array("x")), errors=[problem]))


def test_no_targets():
    with pytest.raises(errors.NoTargetsError, match=r"link!"):
        read(manifest())


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"vmap_method": "nope"}, "nope"),
        ({"crate": 1}, "expected a string"),
        ({"params": [{"role": "scalar", "dtype": "int32", "length": None}]}, "missing key 'name'"),
        ({"params": [array("x", dims=[{"what": 1}])]}, "unknown dimension expression"),
        ({"params": [array("x", dims=[op("**", 1, 2)])]}, "expected one of"),
        ({"params": [array("x", dims=[1, 2])]}, "rank 1 but 2 dims"),
        ({"params": [array("x", dims=[True])]}, "expected an integer"),
        ({"params": [array("x", "sideways")]}, "sideways"),
        ({"handlers": [{**handler(), "platform": "cuda"}]}, "cuda"),
        ({"params": [array("x", "scratch")]}, "scratch"),
        ({"handlers": [{**handler(), "scratch": [array("w")]}]}, "input"),
        ({"handlers": [{**handler(), "scratch": [array("w", "scratch")]}]}, "without dims"),
        ({"batch_dims": "nm"}, "expected a list"),
        ({"has_side_effect": 1}, "expected a boolean"),
        ({"params": [array("x", rank=-1)]}, "expected a size, got -1"),
        ({"params": [array("x", packed=[3, -3])]}, "expected a size, got -3"),
    ],
)
def test_damaged_manifest(change, detail):
    with pytest.raises(errors.ManifestError, match=r"damaged") as error:
        read(manifest({**raw_target("f", array("x")), **change}))
    assert detail in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"abi": true}', b"\xff"])
def test_not_a_manifest(text):
    with pytest.raises(errors.ManifestError, match=r"libdemo\.so"):
        parse(text, "libdemo.so")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (op("+", op("*", 2, dim("n")), 1), "2 * n + 1"),
        (op("*", 2, op("+", dim("n"), 1)), "2 * (n + 1)"),
        (op("*", op("+", dim("n"), 1), 2), "(n + 1) * 2"),
        (op("-", dim("n"), op("-", dim("m"), 1)), "n - (m - 1)"),
        (op("/", dim("n"), op("*", 2, dim("m"))), "n / (2 * m)"),
        (op("div_ceil", axis("x", 0), scalar_value("k")), "div_ceil(x.dim(0), k)"),
        (op("max", op("-", dim("n"), 2), 0), "max(n - 2, 0)"),
    ],
)
def test_expressions_in_words(expr, text):
    target = read(manifest(raw_target("f", array("x", dims=[expr])))).targets[0]
    assert str(target.params[0].dims[0]) == text


@pytest.mark.parametrize(
    ("param", "text"),
    [
        (scalar("a", "float32"), "float32"),
        (scalar("a", "float32", "slice"), "[float32]"),
        (scalar("a", "int8", 4), "[int8; 4]"),
        (array("a", rank=0), "float32[]"),
        (array("a", rank=2), "float32[:, :]"),
        (array("a", rank=1, dims=[dim("n")], packed=[3, 2]), "float32[n, 3, 2]"),
    ],
)
def test_types_in_words(param, text):
    assert str(read(manifest(raw_target("f", param))).targets[0].params[0]) == text
