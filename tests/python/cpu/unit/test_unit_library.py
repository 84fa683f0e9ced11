"""Finding targets in a loaded library."""

import json
import pathlib

import pytest
from manifests import array, manifest, raw_target

import jax_callable
from jax_callable._callable import Callable
from jax_callable._library import Library
from jax_callable._manifest import parse
from jax_callable._open import OpenLibrary


def library(*paths):
    """A library of targets named `crate.name`, without a file behind it."""
    pairs = [path.split(".") for path in paths]
    raw = manifest(*(raw_target(name, array("x"), crate=crate) for crate, name in pairs))
    read = parse(json.dumps(raw), "libdemo.so")
    opened = OpenLibrary(pathlib.Path("/some/libdemo.so"), "digest", read, handle=None)
    return Library(opened, [Callable(each, each.target, "libdemo.so") for each in read.targets])


ops = library("a.saxpy", "a.matmul", "b.saxpy", "b.softmax")


def paths(found):
    return [each.target.path for each in found]


def test_by_name_and_by_crate():
    assert ops.matmul.target.path == "a.matmul"
    assert ops.a.matmul is ops.matmul
    assert ops.b.saxpy.target.path == "b.saxpy"
    assert ops["b.saxpy"] is ops.b.saxpy


def test_iteration_keeps_the_order_of_the_library():
    assert paths(ops) == ["a.saxpy", "a.matmul", "b.saxpy", "b.softmax"]
    assert len(ops) == 4
    assert [each.path for each in jax_callable.targets(ops)] == paths(ops)


def test_ambiguous_name():
    with pytest.raises(AttributeError, match=r"'saxpy' is in 2 crates; write ops\.a\.saxpy or ops"):
        _ = ops.saxpy
    assert dir(ops) == ["a", "b", "matmul", "softmax"]
    assert dir(ops.a) == ["matmul", "saxpy"]


def test_near_miss():
    with pytest.raises(AttributeError, match=r"libdemo\.so: no target 'matmull'; did you mean"):
        _ = ops.matmull
    with pytest.raises(AttributeError, match=r"crate a: no target 'saxp'; did you mean 'saxpy'"):
        _ = ops.a.saxp
    with pytest.raises(AttributeError, match=r"it has matmul, saxpy"):
        _ = ops.a.zzz
    with pytest.raises(KeyError, match=r"did you mean 'b\.softmax'"):
        _ = ops["b.softmaxx"]


def test_function_named_as_a_crate():
    # The usual shape of a small crate: the function is what users mean, the crate stays reachable.
    small = library("softmax.softmax", "softmax.backward", "other.relu")
    assert small.softmax.target.path == "softmax.softmax"
    assert small.softmax.softmax is small.softmax
    assert small.softmax.backward is small.backward
    assert dir(small) == ["backward", "other", "relu", "softmax"]
    with pytest.raises(AttributeError, match=r"'softmax\.softmax' has no attribute 'zzz'"):
        _ = small.softmax.zzz


def test_printing():
    lines = str(ops).splitlines()
    assert lines[0] == "/some/libdemo.so (jax-callable 0.1.0): 4 targets"
    assert [line.split()[0] for line in lines[2:]] == ["a.saxpy", "matmul", "b.saxpy", "softmax"]
    assert str(ops.b).splitlines()[0] == "b: 2 targets"
    assert repr(ops) == "<jax_callable library '/some/libdemo.so': 4 targets>"
    assert repr(ops.b) == "<jax_callable crate b: saxpy, softmax>"


def test_disabled_checks_name_the_exported_targets():
    pytest.importorskip("jax.export", exc_type=ImportError)
    checks = jax_callable.disabled_checks(ops.a.saxpy, library("c.f"))
    assert [check.is_custom_call() for check in checks] == ["a.saxpy.0123abcd", "c.f.0123abcd"]
