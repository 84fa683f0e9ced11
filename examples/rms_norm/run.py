"""Trains a small network whose normalisation, and its derivative, are Rust functions.

Usage: python run.py path/to/librms_norm.so

The same training runs twice: with the functions of src/lib.rs, and with jax.numpy, which JAX
differentiates by itself. It fails if the gradients or the losses differ.
"""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np

import jax_callable

EPS = 1e-5
STEPS = 300
RATE = 0.1
# Sums of some hundred terms in single precision; for the losses, after all the steps.
GRADIENT_TOLERANCE = 1e-5
LOSS_TOLERANCE = 1e-3


def rms_norm_jax(eps, x):
    """The function of src/lib.rs in jax.numpy."""
    scale = jax.lax.rsqrt(jnp.mean(x**2) + eps)
    return scale * x, scale


def make_data(points=256):
    """Points of a square, and what is to be learnt about them.

    Returns:
        Shapes (points, 2) and (points,).
    """
    x = np.random.default_rng(0).uniform(-2, 2, (points, 2)).astype(np.float32)
    return x, np.sin(2 * x[:, 0]) * x[:, 1]


def make_weights(hidden=32):
    """Of two layers, and of the normalisation between them."""
    first, second = jax.random.split(jax.random.key(0))
    return {
        "first": jax.random.normal(first, (3, hidden)),
        "gain": jnp.ones(hidden),
        "second": jax.random.normal(second, (hidden,)) / hidden**0.5,
    }


def loss(rms_norm, weights, x, target):
    """The mean squared error of the network."""
    hidden = jnp.tanh(jnp.pad(x, ((0, 0), (0, 1)), constant_values=1) @ weights["first"])
    # One call for all points.
    normal, _ = jax.vmap(functools.partial(rms_norm, EPS))(hidden)
    return jnp.mean((normal * weights["gain"] @ weights["second"] - target) ** 2)


@functools.partial(jax.jit, static_argnums=0)
def train(rms_norm, weights, x, target):
    """Gradient descent.

    Returns:
        The loss before each step, shape (STEPS,).
    """

    def step(weights, _):
        # With a checkpoint, the backward pass computes the layers again and keeps none of them.
        gradient = jax.value_and_grad(jax.checkpoint(functools.partial(loss, rms_norm)))
        error, slope = gradient(weights, x, target)
        return jax.tree.map(lambda w, s: w - RATE * s, weights, slope), error

    return jax.lax.scan(step, weights, None, STEPS)[1]


def relative_error(ours, reference):
    """The largest difference, relative to the largest number."""
    return float(jnp.max(jnp.abs(ours - reference)) / jnp.max(jnp.abs(reference)))


def main(library):
    """Compares gradients and trains; returns the exit code."""
    ops = jax_callable.load(library)
    both = (ops.rms_norm, rms_norm_jax)
    weights, data = make_weights(), make_data()

    ours, reference = (jax.grad(loss, 1)(rms_norm, weights, *data) for rms_norm in both)
    print("largest relative difference of gradients")
    worst = 0.0
    for name in weights:
        error = relative_error(ours[name], reference[name])
        worst = max(worst, error)
        print(f"  {name:8}{error:10.1e}  (allowed: {GRADIENT_TOLERANCE:.0e})")

    ours, reference = (train(rms_norm, weights, *data) for rms_norm in both)
    print(f"\n{'loss':10}{'Rust':>12}{'jax.numpy':>12}")
    for step in (0, 10, 100, STEPS - 1):
        print(f"{f'step {step}':10}{ours[step]:12.6f}{reference[step]:12.6f}")

    if worst > GRADIENT_TOLERANCE or relative_error(ours, reference) > LOSS_TOLERANCE:
        print("\nFAILED: Rust and jax.numpy do not agree")
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    sys.exit(main(sys.argv[1]))
