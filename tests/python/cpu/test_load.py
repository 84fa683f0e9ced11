"""Loading: again, from elsewhere, rebuilt, and what cannot be loaded."""

import gc
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_callable
from jax_callable import errors

x = np.arange(3, dtype=np.float32)

BUILD = b"fixture build: 1"


def rebuilt(library, folder, number):
    """A copy of the fixture with changed code: the same contract, another answer."""
    content = library.read_bytes()
    assert content.count(BUILD) == 1
    path = folder / library.name
    # A linker writes a new file; writing into the open one would change running code.
    path.unlink(missing_ok=True)
    path.write_bytes(content.replace(BUILD, BUILD[:-1] + str(number).encode()))
    return path


def test_the_same_file_again(library, ops):
    assert jax_callable.load(library) is ops
    assert jax_callable.load(str(library)) is ops
    assert jax_callable.load(library.parent / "." / library.name) is ops


def test_a_copy_elsewhere(library, ops, tmp_path):
    copy = shutil.copy(library, tmp_path / "libother.so")
    assert jax_callable.load(copy) is ops


def test_an_installed_package(library, ops, tmp_path, monkeypatch):
    package = tmp_path / "my_ops"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(library, package / "libmy_ops.so")
    monkeypatch.syspath_prepend(tmp_path)
    assert jax_callable.load("my_ops") is ops


def test_a_rebuilt_library(library, ops, tmp_path, python):
    # In a process of its own: names stay registered for ever.
    first = shutil.copy(library, tmp_path / library.name)
    (tmp_path / "second").mkdir()
    second = rebuilt(library, tmp_path / "second", 2)
    code = """if True:
        import os, sys
        import jax, jax_callable, numpy as np
        path, second = sys.argv[1:]
        old = jax_callable.load(path)
        program = jax.jit(old.build)
        print(int(program()), old.build._xla_name == old.build.target.target)

        os.replace(second, path)
        new = jax_callable.load(path)
        print(new is old, int(new.build()), int(jax.jit(new.build)()))
        print(new.build._xla_name == new.build.target.target + ".g2", new.build == old.build)
        # The old one goes on, in compiled programs and in new ones.
        print(int(program()), int(old.build()), int(jax.jit(lambda: old.build() + 10)()))
        print(jax_callable.load(path) is new)
        print(int(jax.jit(lambda: old.build() + 10 * new.build())()))
        x = np.ones(3, np.float32)
        print(np.asarray(jax.vmap(new.softmax)(x[None])).sum().round(3))
        try:
            jax.export.export(
                jax.jit(new.softmax), disabled_checks=jax_callable.disabled_checks(new)
            )(x)
        except ValueError as error:
            print(error)
    """
    lines = python("import jax.export\n" + code, first, second).splitlines()
    assert lines[:7] == ["1 True", "False 2 2", "True False", "1 1 11", "True", "21", "1.0"]
    assert "fixture.softmax: cannot export" in lines[7]
    assert "loads the library once" in lines[7]


def test_rebuilt_libraries_side_by_side(library, ops, tmp_path):
    for number in (3, 4):
        folder = tmp_path / str(number)
        folder.mkdir()
        other = jax_callable.load(rebuilt(library, folder, number))
        assert [int(each.build()) for each in (ops, other)] == [1, number]
        assert jax_callable.live_call_sites(other) > 0


def test_loading_starts_no_backend(library, python):
    code = """if True:
        import sys
        import jax, jax_callable
        from jax._src import xla_bridge
        ops = jax_callable.load(sys.argv[1])
        print(ops)
        ops.softmax.signature, ops.softmax.__doc__, jax_callable.targets(ops)
        assert not xla_bridge._backends, xla_bridge._backends
        print("none started")
    """
    assert python(code, library).splitlines()[-1] == "none started"


def test_a_library_that_nothing_refers_to(library, python):
    code = """if True:
        import gc, sys
        import jax, jax_callable, numpy as np
        x = np.arange(3, dtype=np.float32)
        ops = jax_callable.load(sys.argv[1])
        saxpy, program = ops.saxpy, jax.jit(lambda x: ops.softmax(ops.cumsum(x)))
        before = np.asarray(program(x)).tolist()
        compiled = jax.jit(ops.cumsum).lower(x).compile()
        del ops
        jax.clear_caches()
        gc.collect()
        print(np.asarray(saxpy(2.0, x, x)).tolist(), np.asarray(compiled(x)).tolist())
        del saxpy
        gc.collect()
        again = jax_callable.load(sys.argv[1])
        ops = again
        same = np.asarray(program(x)).tolist() == before
        print(np.asarray(again.saxpy(3.0, x, x)).tolist(), same)
    """
    assert python(code, library).splitlines() == [
        "[0.0, 3.0, 6.0] [0.0, 1.0, 3.0]",
        "[0.0, 4.0, 8.0] True",
    ]


def test_call_sites_go_with_their_programs(ops):
    jax.clear_caches()
    gc.collect()
    before = jax_callable.live_call_sites(ops)
    program = jax.jit(lambda x: ops.softmax(ops.cumsum(x))).lower(x).compile()
    program(x)
    assert jax_callable.live_call_sites(ops) == before + 2
    del program
    jax.clear_caches()
    gc.collect()
    assert jax_callable.live_call_sites(ops) == before


def test_two_functions_of_one_name(sibling):
    with pytest.raises(errors.ManifestError) as error:
        jax_callable.load(sibling("fixture_duplicate"))
    text = str(error.value)
    assert "`fixture_duplicate.twice` is defined twice for cpu" in text
    for line in (8, 18):
        assert f"tests/fixture_duplicate/src/lib.rs:{line}" in text
    assert "rename one" in text


def test_no_targets(sibling):
    with pytest.raises(errors.NoTargetsError) as error:
        jax_callable.load(sibling("fixture_empty"))
    assert "has no targets" in str(error.value)
    assert "#[jax_callable]" in str(error.value)
    assert "jax_callable::link!" in str(error.value)


@pytest.mark.parametrize(
    ("abi", "remedy"), [(0, "cargo update -p jax-callable"), (2, "pip install -U jax-callable")]
)
def test_another_abi_version(sibling, monkeypatch, abi, remedy):
    monkeypatch.setenv("IMPOSTOR_ABI", str(abi))
    with pytest.raises(errors.AbiVersionError) as error:
        jax_callable.load(sibling("fixture_impostor"))
    ours = f"this Python package (jax-callable {jax_callable.__version__}) reads version 1"
    assert f"has ABI version {abi}, {ours}; " in str(error.value)
    assert remedy in str(error.value)


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ("", "the manifest of this library is damaged"),
        ("[]", "the manifest of this library is damaged"),
        ('{"abi": 1}', "damaged (missing key 'errors')"),
        (
            '{"abi": 1, "version": "0.1.0", "errors": ["`a.f` is bad"], "cuda_libraries": [], '
            '"targets": []}',
            "`a.f` is bad",
        ),
    ],
)
def test_a_damaged_manifest(sibling, monkeypatch, manifest, text):
    monkeypatch.setenv("IMPOSTOR_ABI", "1")
    monkeypatch.setenv("IMPOSTOR_MANIFEST", manifest)
    with pytest.raises(errors.ManifestError) as error:
        jax_callable.load(sibling("fixture_impostor"))
    assert text in str(error.value)


def test_a_target_without_code(sibling, ops, monkeypatch):
    raw = json.loads(json.dumps(dict(ops._opened.manifest.raw)))
    raw["targets"] = raw["targets"][:1]
    monkeypatch.setenv("IMPOSTOR_ABI", "1")
    monkeypatch.setenv("IMPOSTOR_MANIFEST", json.dumps(raw))
    with pytest.raises(errors.RegistrationError, match=r"has no code for cpu; rebuild the library"):
        jax_callable.load(sibling("fixture_impostor"))


def test_a_damaged_copy(library, tmp_path):
    path = tmp_path / library.name
    path.write_bytes(library.read_bytes()[:100_000])
    with pytest.raises(errors.NotALibraryError, match="truncated"):
        jax_callable.load(path)


BLOCKED = """if True:
    import sys
    class Blocker:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("jax", "jaxlib"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Blocker())
    import jax_callable
    from jax_callable.__main__ import main
"""


def test_without_jax(library, python):
    code = """
    try:
        jax_callable.load(sys.argv[1])
    except jax_callable.errors.JaxVersionError as error:
        print(error)
    """
    text = python(BLOCKED + code, library)
    assert text.startswith("JAX is not installed.")
    assert "pip install 'jax>=0.6.0'" in text


def test_a_library_can_be_listed_without_jax(library, python):
    code = """
    code = main(["list", sys.argv[1]])
    assert "jax" not in sys.modules
    print(code)
    """
    lines = python(BLOCKED + code, library).splitlines()
    assert lines[-1] == "0"
    assert any(line.startswith("saxpy ") for line in lines)


def test_a_jax_that_is_too_old(library, monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", (0, 5, 3))
    monkeypatch.setattr(jax, "__version__", "0.5.3")
    with pytest.raises(errors.JaxVersionError) as error:
        jax_callable.load(library)
    assert "JAX 0.5.3 is too old: jax-callable needs 0.6.0 or newer" in str(error.value)
    assert "pip install -U jax" in str(error.value)


def test_after_failures_all_goes_on(ops, sibling):
    for name in ("fixture_duplicate", "fixture_empty"):
        with pytest.raises(jax_callable.LoadError):
            jax_callable.load(sibling(name))
    np.testing.assert_array_equal(ops.cumsum(jnp.asarray(x)), np.cumsum(x))


@pytest.mark.parametrize("start", ["pass", "jax.devices()"], ids=["before JAX starts", "after"])
def test_a_package_that_is_imported_anew(library, python, start):
    code = f"""if True:
        import importlib, sys
        import jax, jax_callable, numpy as np
        old = jax_callable.load(sys.argv[1])
        {start}
        assert importlib.reload(jax_callable).load(sys.argv[1]) is old
        for name in [name for name in sys.modules if name.partition(".")[0] == "jax_callable"]:
            del sys.modules[name]
        import jax_callable
        new = jax_callable.load(sys.argv[1])
        x = np.arange(3, dtype=np.float32)
        for ops in (old, new):
            print(np.asarray(jax.vmap(ops.cumsum)(x[None])).tolist())
    """
    assert python(code, library).splitlines() == ["[[0.0, 1.0, 3.0]]"] * 2


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing(library, python, method):
    code = """if True:
        import multiprocessing, sys
        import jax_callable, numpy as np
        ops = jax_callable.load(sys.argv[1])
        x = np.arange(3, dtype=np.float32)
        # Functions go there by name. A fork must come before JAX starts threads.
        with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
            there = pool.map(ops.cumsum, [x, x + 1])
        print([np.asarray(each).tolist() for each in (*there, ops.cumsum(x))])
    """
    there = "[[0.0, 1.0, 3.0], [1.0, 3.0, 6.0], [0.0, 1.0, 3.0]]"
    assert python(code, library, method).strip() == there
