"""The functions of src/lib.rs in pure jax.numpy.

Written as arrays want it: every event meets every other one in an n x n matrix, where Rust walks
along the events once.
"""

import jax.numpy as jnp


def decaying_sum(tau, time, weight, at):
    """Sum of the weights of past events, each decayed by exp(-age / tau), at the times `at`."""
    age = at[:, None] - time
    return jnp.where(age >= 0, jnp.exp(-jnp.abs(age) / tau), 0) @ weight


def add_at(index, weight, total):
    """total[index[i]] += weight[i]."""
    return total.at[index].add(weight)


def link(window, radius, day, position):
    """Index of the earliest event in each event's sequence, and the number of sequences."""
    n = day.size
    apart = jnp.sum((position[:, None] - position) ** 2, axis=-1)
    joined = (jnp.abs(day[:, None] - day) <= window) & (apart <= radius**2)
    for _ in range(n.bit_length()):  # each squaring doubles the length of the chains
        steps = joined.astype(jnp.float32)
        joined = steps @ steps > 0
    first = jnp.argmax(joined, axis=1).astype(jnp.int32)
    return first, jnp.sum(first == jnp.arange(n), dtype=jnp.int32)
