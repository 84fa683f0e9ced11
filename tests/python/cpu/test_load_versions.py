"""Versions of JAX, jaxlib and CUDA plugins that do not fit: what `load` and `doctor` say."""

import os

import jax
import jaxlib.plugin_support
import jaxlib.version
import pytest

import jax_callable
from jax_callable import _cuda, errors
from jax_callable.__main__ import main

JAXLIB = jaxlib.version.__version__

LOAD_TWICE = """
import sys
import jax_callable
for _ in range(2):
    try:
        jax_callable.load(sys.argv[1])
    except jax_callable.errors.JaxVersionError as error:
        print(error)
"""

DOCTOR = """
import sys
from jax_callable.__main__ import main
print(main(["doctor", sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            "import jaxlib.version; jaxlib.version.__version__ = '0.5.1'",
            "jaxlib is version 0.5.1, but this version of jax requires version >= 0.",
        ),
        (
            "import jaxlib.version; jaxlib.version.__version__ = '999.0'",
            "jaxlib version 999.0 is newer than and incompatible with jax version ",
        ),
        (
            "import sys; sys.modules['jaxlib'] = None",
            "jax requires jaxlib to be installed",
        ),
    ],
    ids=["older", "newer", "none"],
)
def test_another_jaxlib(library, python, change, text):
    said, again = python(change + LOAD_TWICE, library).splitlines()
    assert said.startswith(f"JAX cannot be imported: {text}")
    assert again.startswith("JAX cannot be imported: ")
    for line in (said, again):
        assert "pip install -U jax jaxlib" in line
    # In a process of its own, as always.
    *report, exit_code = python(change + DOCTOR, library).splitlines()
    assert f"  - JAX: {said}" in report
    # What can be found out without JAX is.
    assert any(line.startswith("targets ") for line in report)
    assert exit_code == "1"


def test_an_old_jax(library, monkeypatch, capsys):
    monkeypatch.setattr(jax, "__version_info__", (0, 5, 3))
    monkeypatch.setattr(jax, "__version__", "0.5.3")
    with pytest.raises(errors.JaxVersionError) as caught:
        jax_callable.load(library)
    said = str(caught.value)
    assert said == (
        "JAX 0.5.3 is too old: jax-callable needs 0.6.0 or newer. Upgrade it: pip install -U jax"
    )
    assert main(["doctor", str(library)]) == 1
    assert f"  - JAX: {said}\n" in capsys.readouterr().out


def install(folder, versions):
    """Makes distributions of these versions, as installers leave them."""
    for name, version in versions.items():
        path = folder / f"{name}-{version}.dist-info"
        path.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        (path / "METADATA").write_text(text)


CASES = {
    "newer": ({"jax_cuda13_plugin": "999.1.0"}, "jax-cuda13-plugin 999.1.0 is newer", "cuda13"),
    "older": ({"jax_cuda12_plugin": "0.4.30"}, "jax-cuda12-plugin 0.4.30 is older", "cuda12"),
    "newer runtime": (
        {"jax_cuda13_plugin": JAXLIB, "jax_cuda13_pjrt": "999.1.0"},
        "jax-cuda13-pjrt 999.1.0 is newer",
        "cuda13",
    ),
    # JAX compares the numbers.
    "equal": (
        {"jax_cuda13_plugin": f"{JAXLIB}+cuda.2", "jax_cuda13_pjrt": f"{JAXLIB}.dev1"},
        None,
        None,
    ),
    "none": ({}, None, None),
}


def problem(words, extra):
    return (
        f"{words} than jaxlib {JAXLIB}, and JAX uses it only if both are of one version: functions "
        f"for CUDA will not be found. Install one version of all: pip install -U 'jax[{extra}]'"
    )


@pytest.mark.parametrize("case", CASES)
def test_a_cuda_plugin_of_another_version(tmp_path, monkeypatch, capsys, case):
    versions, words, extra = CASES[case]
    install(tmp_path, versions)
    monkeypatch.syspath_prepend(tmp_path)
    main(["doctor"])
    report = capsys.readouterr().out.splitlines()
    found = [line for line in report if line.startswith("  - CUDA plugin: ")]
    assert found == ([f"  - CUDA plugin: {problem(words, extra)}"] if words else [])
    (line,) = [line for line in report if line.startswith("CUDA plugin   ") and "PROB" not in line]
    assert ("none" in line) is (not versions)


def test_loading_with_a_cuda_plugin_of_another_version(library, sibling, python, tmp_path):
    versions, words, extra = CASES["newer"]
    install(tmp_path, versions)
    code = """if True:
        import sys, warnings
        import jax_callable, numpy as np
        def caught(path):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                ops = jax_callable.load(path)
            said = [each for each in caught if "jax_callable" in each.filename or each.filename
                    == "<string>"]
            return ops, [f"{each.category.__name__} {each.message}" for each in said]
        # One that has no functions for CUDA is loaded in silence.
        print(caught(sys.argv[1])[1])
        ops, said = caught(sys.argv[2])
        print(*said)
        x = np.ones(3, np.float32)
        print(np.asarray(ops.saxpy(2.0, x, x)).tolist())
        print(caught(sys.argv[2])[1])
    """
    cuda = sibling("fixture_cuda")
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, paths))
    assert python(code, library, cuda, PYTHONPATH=path).splitlines() == [
        "[]",
        f"RuntimeWarning {cuda.resolve()}: {problem(words, extra)}",
        "[3.0, 3.0, 3.0]",
        "[]",
    ]


@pytest.mark.filterwarnings("ignore:JAX plugin")
def test_the_rule_is_that_of_jaxlib():
    check = jaxlib.plugin_support.check_plugin_version
    for found in (JAXLIB, f"{JAXLIB}.dev20260101", f"{JAXLIB}+cuda", f"{JAXLIB}.1", "0.4.30"):
        same = _cuda._release(found) == _cuda._release(JAXLIB)
        assert check("jax_cuda13_plugin", JAXLIB, found) is same, found
