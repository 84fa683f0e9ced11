"""Compiles many programs with calls, runs and drops them, and says what is left.

Usage: programs.py LIBRARY COUNT KIND, where KIND is `ours`, `twin` (programs of the same form
without calls of ours) or `leak` (ours, and a call that leaks, for whoever looks for leaks).

Prints a line of JSON: call sites that live, states that were built and dropped, bytes of resident
memory after each tenth.
"""

import ctypes
import functools
import gc
import json
import pathlib
import resource
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import jax_callable

SIZE = 16_384
INDEX = np.array([0, 1], np.uint32)
WORDS = np.ones(256, np.float32)
ROWS = np.ones((3, 8), np.float32)


def ours(ops, i, index, words, rows):
    """One of each: a state of 64 KiB, strings and a state of 64 KiB, a batch, a loop of batches."""
    base = 1.0 + i / 1e6
    powers, uses = ops.powers(base, SIZE, index)
    lengths = ops.word_lengths(f"{i:08}" * (255 * 256 // 8), bytes([255] * 256), words)
    rows = jax.vmap(functools.partial(ops.saxpy, base))(rows, rows)
    return powers, uses, lengths, jax.vmap(ops.softmax)(rows)


def twin(_ops, i, index, words, rows):
    """The same for JAX, without a call."""
    return index + i, index.sum(), words.astype(jnp.uint8), rows + (1.0 + i / 1e6) * rows


def drop(ops, limit):
    """Drops all programs, some of which XLA frees a little later."""
    deadline = time.monotonic() + 20
    while True:
        jax.clear_caches()
        gc.collect()
        if jax_callable.live_call_sites(ops) <= limit or time.monotonic() > deadline:
            return
        time.sleep(0.01)


def resident():
    """The bytes of memory that this process has, without what only the allocator keeps."""
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def main(library, count, kind):
    """Does all of it."""
    ops = jax_callable.load(library)
    function = twin if kind == "twin" else ours
    most, sizes = 0, []
    for tenth in range(10):
        programs = []
        for i in range(tenth * count // 10, (tenth + 1) * count // 10):
            call = functools.partial(function, ops, i)
            program = jax.jit(call).lower(INDEX, WORDS, ROWS).compile()
            jax.block_until_ready(program(INDEX, WORDS, ROWS))
            programs.append(program)
        most = max(most, jax_callable.live_call_sites(ops))
        del program, call, programs
        drop(ops, 0)
        sizes.append(resident())
    if kind == "leak":
        ops.leak(1000).block_until_ready()
    built, dropped = np.asarray(ops.state_counts()).tolist()
    drop(ops, 0)
    left = jax_callable.live_call_sites(ops)
    print(json.dumps({"most": most, "left": left, "states": [built, dropped], "sizes": sizes}))


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
