"""The command line, in a process of its own."""

import json
import os
import subprocess
import sys

import jax
import pytest

import jax_callable


@pytest.fixture
def run():
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "jax_callable", *map(str, arguments)],
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_list(run, library, ops):
    process = run("list", library)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == f"{ops}\n"


def test_list_as_json(run, library, ops):
    process = run("list", "--json", library)
    assert (process.returncode, process.stderr) == (0, "")
    listed = json.loads(process.stdout)
    assert listed["path"] == str(library.resolve())
    assert listed["abi"] == 1
    assert {target["target"] for target in listed["targets"]} == {
        target.target for target in jax_callable.targets(ops)
    }
    (saxpy,) = [target for target in listed["targets"] if target["name"] == "saxpy"]
    assert [param["role"] for param in saxpy["params"]] == ["scalar", "input", "in_out"]
    assert saxpy["doc"] == "y <- a x + y."


def test_doctor(run, library, ops):
    process = run("doctor", library)
    assert process.returncode == 0, process.stdout
    assert jax.__version__ in process.stdout
    assert f"{len(ops)} for cpu" in process.stdout
    assert f"{len(ops)} with XLA on the CPU" in process.stdout
    assert process.stdout.splitlines()[-1] == "all is well"


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["doctor"]])
def test_a_library_that_cannot_be_used(run, sibling, command):
    process = run(*command, sibling("fixture_duplicate"))
    assert process.returncode == 1
    text = process.stderr if "list" in command else process.stdout
    assert "`fixture_duplicate.twice` is defined twice for cpu" in text
    assert "Traceback" not in process.stderr
    if "list" in command:
        assert process.stdout == ""


def test_no_such_library(run, tmp_path):
    process = run("list", tmp_path / "libmissing.so")
    assert process.returncode == 1
    assert process.stderr.startswith("jax-callable: ")
    assert "no such file" in process.stderr


def test_wrong_usage(run):
    assert run("show").returncode == 2
    assert run("--version").stdout.strip() == f"jax-callable {jax_callable.__version__}"
