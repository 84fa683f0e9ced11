"""examples/quickstart: its demo, and the numbers that it shows."""

import importlib
import os
import pathlib
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parents[3] / "examples" / "quickstart"


@pytest.fixture
def library():
    """The path of the quickstart's cdylib, which `cargo xtask test` builds."""
    return os.environ["JAX_CALLABLE_QUICKSTART"]


@pytest.fixture
def demo(monkeypatch):
    """The module demo.py, in double precision as when it runs as a program."""
    monkeypatch.syspath_prepend(FOLDER)
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield importlib.import_module("demo")
    jax.config.update("jax_enable_x64", before)
    for name in ("demo", "dense"):
        sys.modules.pop(name, None)


def links(demo):
    """The catalogue's pairs in time, and the distance of every pair, found without JAX."""
    quakes, _, _ = demo.read_catalogue()
    latitude, longitude = np.radians(quakes.latitude), np.radians(quakes.longitude)
    direction = np.stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ],
        axis=-1,
    )
    position = (6371 - quakes.depth)[:, None] * direction
    days = np.abs(quakes.day[:, None] - quakes.day)
    return days, np.linalg.norm(position[:, None] - position, axis=-1)


def test_the_program_succeeds_and_prints_both_columns(library):
    run = subprocess.run(
        [sys.executable, FOLDER / "demo.py", library], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert re.search(r"^sequences within 50 km +400 +400$", run.stdout, re.MULTILINE), run.stdout
    assert re.search(r"another sequence: 0 of 1788$", run.stdout, re.MULTILINE), run.stdout


def test_the_sequences_are_those_of_a_search_without_jax(demo, library):
    days, km = links(demo)
    ops = demo.jax_callable.load(library)
    quakes, _, _ = demo.read_catalogue()
    result = jax.jit(demo.analyse, static_argnums=0)(ops, quakes, demo.RADII, quakes.day)
    for i, radius in enumerate(demo.RADII):
        joined = (days <= demo.WINDOW) & (km <= radius)
        expected = np.full(len(days), -1)
        for root in range(len(days)):
            queue = [root] if expected[root] < 0 else []
            while queue:
                event = queue.pop()
                expected[event] = root
                queue += np.flatnonzero(joined[event] & (expected < 0)).tolist()
        np.testing.assert_array_equal(result["first"][i], expected)
        assert result["count"][i] == len(set(expected))


def test_no_pair_is_so_near_a_limit_that_rounding_could_decide(demo):
    days, km = links(demo)
    assert np.min(np.abs(days - demo.WINDOW)) > 1e-9
    for radius in demo.RADII:
        assert np.min(np.abs(km - radius)) > 1e-9


@pytest.mark.parametrize("name", ["link", "add_at", "decaying_sum"])
def test_a_wrong_result_fails(demo, library, monkeypatch, capsys, name):
    right = getattr(demo.dense, name)

    def wrong(*args):
        result = right(*args)
        return (result[0] + 1, result[1]) if name == "link" else result * (1 + 1e-9)

    monkeypatch.setattr(demo.dense, name, wrong)
    assert demo.main(library) == 1
    assert "FAILED" in capsys.readouterr().out
