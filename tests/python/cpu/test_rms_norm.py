"""examples/rms_norm: its program, and the derivative of its function."""

import functools
import importlib
import os
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jax_callable

FOLDER = pathlib.Path(__file__).parents[3] / "examples" / "rms_norm"

x = np.random.default_rng(1).normal(size=(4, 7)).astype(np.float32)


@pytest.fixture
def library():
    """The path of the example's cdylib, which `cargo xtask test` builds."""
    return os.environ["JAX_CALLABLE_RMS_NORM"]


@pytest.fixture
def rms_norm(library):
    return functools.partial(jax_callable.load(library).rms_norm, 1e-5)


@pytest.fixture
def program(monkeypatch):
    """The module run.py."""
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module("run")
    sys.modules.pop("run")


def test_the_program_succeeds_and_learns(library):
    run = subprocess.run(
        [sys.executable, FOLDER / "run.py", library], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    losses = re.findall(r"^step \d+ +([\d.]+) +([\d.]+)$", run.stdout, re.MULTILINE)
    ours, reference = np.array(losses, float).T
    np.testing.assert_allclose(ours, reference, 1e-3)
    assert ours[-1] < ours[0] / 50


def test_values(rms_norm, program):
    ours = jax.vmap(rms_norm)(x)
    wanted = jax.vmap(functools.partial(program.rms_norm_jax, 1e-5))(x)
    for result, expected in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(result, expected, 1e-5)


def test_finite_differences(rms_norm):
    check_grads(lambda x: rms_norm(x)[0], (x[0],), order=1, modes=["rev"], atol=1e-2, rtol=1e-2)
    check_grads(
        jax.vmap(lambda x: rms_norm(x)[0]), (x,), order=1, modes=["rev"], atol=1e-2, rtol=1e-2
    )


def test_the_scale_is_a_constant_to_jax(rms_norm):
    def loss(x, use_scale):
        y, scale = rms_norm(x)
        return jnp.sum(jnp.sin(y)) + use_scale * scale

    np.testing.assert_array_equal(jax.grad(lambda x: rms_norm(x)[1])(x[0]), np.zeros(7))
    np.testing.assert_array_equal(jax.grad(loss)(x[0], 1.0), jax.grad(loss)(x[0], 0.0))


def test_a_wrong_derivative_fails(program, library, monkeypatch, capsys):
    right = program.rms_norm_jax

    def wrong(eps, x):
        y, scale = right(eps, x)
        return y - 1e-3 * x + jax.lax.stop_gradient(1e-3 * x), scale

    monkeypatch.setattr(program, "rms_norm_jax", wrong)
    assert program.main(library) == 1
    assert "FAILED" in capsys.readouterr().out
