"""Stubs: mypy accepts them, and what it says of a program is what happens when that runs."""

import ast
import inspect
import json
import shutil
import subprocess
import sys

import pytest
from documents import blocks

import jax_callable
from jax_callable import _stubs
from jax_callable.__main__ import main
from jax_callable._manifest import parse
from jax_callable._open import open_library

PACKAGES = str(jax_callable.__path__[0]).rpartition("/")[0]

# `ops` is the stub for mypy, and the loaded library when this runs. One call a line.
PROGRAM = """
import functools
import jax
import jax.numpy as jnp
import numpy as np
import jax_callable
import ops
x = jnp.ones(3)
y = np.ones(3, np.float32)
matrix = np.ones((2, 3), np.float32)
n = np.array([1, 2], np.int32)
# begin
ops.softmax(x).sum() + 1
ops.softmax(y).at[0].set(1)
ops.saxpy(2, x, y)
ops.saxpy(a=np.float32(2), x=x, y=y)
ops.saxpy(2.0, x, y=y, vmap_method="sequential")
ops.saxpy(2.0, x, y, vmap_method=None)
ops.increment(np.int32(1))
ops.named_shapes(matrix)[1].shape
ops.named_shapes(matrix, output_dims={"d": 3}) + (x,)
ops.mixed(0.5, x, y, n, n)[2] * 2
ops.iota(output_dims=np.int64(3))
ops.iota(output_dims=[3])
ops.iota(output_dims={"out": (n.size,)})
ops.slice_float32([1.0, 2, np.float32(3)], 3)
ops.slice_float32(y, 3)
ops.slice_uint8(b"ab", 2)
ops.fixed_int32((1, 2, 3))
ops.slice_complex64([1j, 2.0], 2)
ops.one_complex64(1)
ops.one_bool(np.True_)
ops.echo_text("abc", 3)
ops.read_table("12")
ops.fixture.saxpy(2.0, x, y).shape
ops.fixture.scale(x).shape
ops.fixture_dep.scale(x).shape
jax.jit(ops.softmax)(x).shape
jax.vmap(ops.softmax)(matrix).shape
jax.vmap(functools.partial(ops.saxpy, 2.0))(matrix, matrix).shape
jax.grad(lambda x: x.sum())(ops.softmax(x)).shape
ops.saxpy.signature.parameters
ops.saxpy.target.path.upper()
jax_callable.disabled_checks(ops.saxpy)
ops.awkward(1, 2, 3, 4, 5, größe=6, _hidden=7, X=x, batch=x, match=x)[0].shape
ops.softmaxx(x)  # wrong
ops.scale(x)  # wrong
ops.original(x)  # wrong
ops.fixture_dep.softmax(x)  # wrong
ops.softmax([1.0, 2.0])  # wrong
ops.softmax(1.0)  # wrong
ops.softmax("x")  # wrong
ops.softmax()  # wrong
ops.softmax(x, y)  # wrong
ops.softmax(x, out=x)  # wrong
ops.softmax(x, vmap_method="fastest")  # wrong
ops.softmax(x, output_dims="3")  # wrong
ops.softmax(x, output_dims=2.5)  # wrong
ops.softmax(x).nothing  # wrong
ops.saxpy("2", x, y)  # wrong
ops.saxpy(2j, x, y)  # wrong
ops.saxpy([2.0], x, y)  # wrong
ops.saxpy(2.0, x)  # wrong
ops.saxpy(2.0, x, y, z=1)  # wrong
ops.saxpy(2.0, x, y, output_dims=3)  # wrong
ops.one_int8(2.5)  # wrong
ops.one_bool(1)  # wrong
ops.echo_text(b"abc", 3)  # wrong
ops.slice_float32(1.0, 1)  # wrong
ops.named_shapes(matrix)[2]  # wrong
ops.named_shapes(matrix).shape  # wrong
ops.mixed(0.5, x, y, n)  # wrong
"""


@pytest.fixture(scope="module")
def folder(library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stubs")
    assert main(["stubs", str(library), "-o", str(folder / "ops.pyi")]) == 0
    return folder


def mypy(folder, *files):
    """The lines of the files that mypy refuses; all else that it says is a failure."""
    (folder / "mypy.ini").write_text(
        "[mypy]\nstrict = True\npretty = False\n[mypy-jax_callable.*]\nfollow_imports = silent\n"
    )
    process = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", *files],
        cwd=folder,
        # The package from its source, wherever it is imported from.
        env={"MYPYPATH": PACKAGES, "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode in (0, 1), process.stdout + process.stderr
    *errors, summary = process.stdout.splitlines()
    assert ("Success" in summary) == (process.returncode == 0), process.stdout + process.stderr
    return [line for line in errors if ": error: " in line]


def check(folder, program, stub):
    """Checks that mypy accepts a stub, and in a program refuses just the lines marked so."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    errors = mypy(folder, stub, "program.py")
    lines = enumerate(program.splitlines(), 1)
    wrong = {f"program.py:{number}" for number, line in lines if line.endswith("# wrong")}
    assert {":".join(line.split(":")[:2]) for line in errors} == wrong, "\n".join(errors)


def test_mypy_tells_right_programs_from_wrong_ones(folder):
    check(folder, PROGRAM, "ops.pyi")


AWKWARD = """
import numpy as np
import awkward
x = np.ones(3, np.float32)
n = np.array([1, 2], np.int32)
awkward.tuple(0.5, x, x, n, n)[2].shape
awkward.tuple(0.5, x, x, n, n)[3]  # wrong
awkward._t(x, x)[1].shape
awkward._t(x)  # wrong
awkward.fixture(x).shape
awkward.fixture.graphs.clear()
awkward.fixture.cumsum(x).shape
awkward.fixture(x, x)  # wrong
awkward.fixture.cumsum(x, x)  # wrong
"""


def test_names_that_the_stub_needs_itself(library, folder):
    raw = open_library(library).manifest.raw
    # The third is called like its crate.
    renamed = {"mixed": "tuple", "swap": "_t", "softmax": "fixture"}
    targets = [
        {**target, "name": renamed.get(target["name"], target["name"])} for target in raw["targets"]
    ]
    stub = _stubs.render(parse(json.dumps({**raw, "targets": targets}), "awkward"), "awkward")
    (folder / "awkward.pyi").write_text(stub, encoding="utf-8")
    check(folder, AWKWARD, "awkward.pyi")


def test_the_programs_behave_as_mypy_says(ops):
    setting, _, lines = PROGRAM.partition("# begin\n")
    names = {"ops": ops}
    exec(setting.replace("import ops\n", ""), names)
    for line in lines.splitlines():
        if line.endswith("# wrong"):
            with pytest.raises((TypeError, ValueError, AttributeError, IndexError)):
                eval(line, names)
        else:
            eval(line, names)


def test_every_target_is_there_as_it_is(ops, folder):
    stub = ast.parse((folder / "ops.pyi").read_text(encoding="utf-8"))
    top = {each.name: each for each in stub.body if isinstance(each, ast.FunctionDef)}
    crates = {each.name: each for each in stub.body if isinstance(each, ast.ClassDef)}
    assert {*top, *crates} == set(dir(ops))
    for function in ops:
        target = function.target
        members = {
            getattr(each, "name", None) or each.targets[0].id: each
            for each in crates[target.crate].body
        }
        definition = top.get(target.name, members[target.name])
        arguments = definition.args.args + definition.args.kwonlyargs
        assert [each.arg for each in arguments] == list(function.signature.parameters)
        assert ast.get_docstring(definition) == inspect.cleandoc(function.__doc__)
        results = ast.unparse(definition.returns).count("_t.Array")
        assert results == len(target.results)


def test_printed(library, folder, capsys):
    assert main(["stubs", str(library)]) == 0
    assert capsys.readouterr().out == (folder / "ops.pyi").read_text(encoding="utf-8")


def test_needs_no_jax(library, python, tmp_path):
    code = """if True:
        import sys
        sys.modules["jax"] = None
        from jax_callable.__main__ import main
        print(main(["stubs", sys.argv[1], "-o", sys.argv[2]]))
    """
    assert python(code, library, tmp_path / "ops.pyi") == "0\n"
    assert "def saxpy(" in (tmp_path / "ops.pyi").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written(library, capsys, tmp_path):
    missing = tmp_path / "missing" / "ops.pyi"
    assert main(["stubs", str(library), "-o", str(missing)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"jax-callable: cannot write {missing}: No such file or directory\n"


def test_a_package_with_the_library_and_its_stub(library, python, folder):
    (module,) = [text for _, text in blocks("docs/jax.md") if "__getattr__" in text]
    package = folder / "my_ops"
    package.mkdir()
    (package / "__init__.py").write_text(module, encoding="utf-8")
    shutil.copy(library, package / "libmy_ops.so")
    assert main(["stubs", str(package / "libmy_ops.so"), "-o", str(package / "__init__.pyi")]) == 0
    code = """if True:
        import sys
        sys.path.insert(0, sys.argv[1])
        import numpy as np, my_ops
        from my_ops import softmax, fixture_dep
        print(softmax(np.zeros(2, np.float32)), fixture_dep.scale(np.ones(1, np.float32)))
        print("saxpy" in dir(my_ops), hasattr(my_ops, "missing"))
    """
    assert python(code, folder).splitlines() == ["[0.5 0.5] [10.]", "True False"]
    check(folder, USE_OF_THE_PACKAGE, "my_ops")


USE_OF_THE_PACKAGE = """
import numpy as np
from my_ops import fixture_dep, softmax
softmax(np.zeros(2, np.float32)).shape
fixture_dep.scale(np.ones(1, np.float32)).shape
softmax([0.0])  # wrong
"""
