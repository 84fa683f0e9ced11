"""Finds sequences of earthquakes with Rust functions in a jitted JAX program.

Usage: python demo.py path/to/libquickstart.so

The same program runs twice: with the three functions of src/lib.rs and with those of dense.py,
which are pure jax.numpy. It fails if their results differ.
"""

import csv
import datetime
import functools
import importlib.util
import pathlib
import sys
import time
from typing import NamedTuple

import dense
import jax
import jax.numpy as jnp
import numpy as np

import jax_callable

WINDOW = 10.0  # days between linked events
RADII = np.array([25.0, 50.0, 100.0])  # km between linked events
SHOWN = 1  # the radius whose sequences are listed
TAU = 5.0  # days in which activity decays
# Sums of positive terms: each operation rounds by 1e-16 at most, and there are some hundreds.
TOLERANCE = 1e-12


class Catalogue(NamedTuple):
    """Earthquakes in the order of time, as arrays of shape (n,)."""

    day: np.ndarray  # since the first one
    latitude: np.ndarray  # degrees
    longitude: np.ndarray  # degrees
    depth: np.ndarray  # km
    magnitude: np.ndarray


def read_catalogue():
    """The catalogue, and the time and the place of each earthquake as text."""
    package = pathlib.Path(importlib.util.find_spec("hvsampledata").origin).parent
    with open(package / "_data" / "earthquakes.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    moments = [datetime.datetime.fromisoformat(row["time"]) for row in rows]
    day = [(moment - moments[0]) / datetime.timedelta(days=1) for moment in moments]
    columns = [[float(row[name]) for row in rows] for name in ("lat", "lon", "depth", "mag")]
    catalogue = Catalogue(*map(np.array, [day, *columns]))
    return catalogue, moments, [row["place"] for row in rows]


def analyse(ops, quakes, radii, hours):
    """Sequences for each radius, and the activity at each hour.

    Args:
        ops: Where `link`, `add_at` and `decaying_sum` are: the Rust library, or dense.py.
        quakes: The catalogue, n events.
        radii: Shape (r,), in km.
        hours: Shape (h,), in days.
    """
    latitude, longitude = jnp.radians(quakes.latitude), jnp.radians(quakes.longitude)
    direction = [
        jnp.cos(latitude) * jnp.cos(longitude),
        jnp.cos(latitude) * jnp.sin(longitude),
        jnp.sin(latitude),
    ]
    position = (6371 - quakes.depth)[:, None] * jnp.stack(direction, axis=-1)
    energy = 10 ** (1.5 * quakes.magnitude + 4.8)  # joules, after Gutenberg and Richter

    # One call for all radii; the arrays that they share are not copied.
    link = functools.partial(ops.link, WINDOW)
    first, count = jax.vmap(link, in_axes=(0, None, None))(radii, quakes.day, position)
    sums = jax.vmap(ops.add_at, in_axes=(0, None, None))
    return {
        "first": first,
        "count": count,
        "size": sums(first, jnp.ones_like(energy), jnp.zeros_like(energy)),
        "energy": sums(first, energy, jnp.zeros_like(energy)),
        "activity": ops.decaying_sum(TAU, quakes.day, energy, hours),
    }


def compare(ours, reference):
    """Prints both results side by side; returns whether they agree."""
    largest = np.argmax(reference["size"][SHOWN])
    rows = [
        *((f"sequences within {radius:.0f} km", "count", i) for i, radius in enumerate(RADII)),
        ("events in the largest sequence", "size", (SHOWN, largest)),
        ("joules in the largest sequence", "energy", (SHOWN, largest)),
        ("peak of activity, joules", "activity", np.argmax(reference["activity"])),
    ]
    print(f"{'':32}{'Rust':>20}{'jax.numpy':>20}")
    for text, name, index in rows:
        numbers = (f"{result[name][index]:.12g}" for result in (ours, reference))
        print(f"{text:32}" + "".join(f"{number:>20}" for number in numbers))

    moved = np.count_nonzero(ours["first"] != reference["first"])
    error = max(relative_error(ours[name], reference[name]) for name in ("energy", "activity"))
    print(f"\nevents put into another sequence: {moved} of {ours['first'].size}")
    print(f"largest relative difference: {error:.1e} (allowed: {TOLERANCE:.0e})")
    exact = all(np.array_equal(ours[name], reference[name]) for name in ("first", "count", "size"))
    return exact and error <= TOLERANCE


def relative_error(ours, reference):
    """The largest difference, relative to the reference where that is not 0."""
    return float(np.max(np.abs(ours - reference) / np.where(reference == 0, 1, reference)))


def list_sequences(result, quakes, moments, places, number=5):
    """Prints the sequences with the most events."""
    first, size, energy = (result[name][SHOWN] for name in ("first", "size", "energy"))
    print(f"\nThe largest sequences within {RADII[SHOWN]:.0f} km and {WINDOW:.0f} days:")
    print("events  days  begins      energy     strongest")
    for root in np.argsort(-size, kind="stable")[:number]:
        members = np.flatnonzero(first == root)
        strongest = members[np.argmax(quakes.magnitude[members])]
        print(
            f"{len(members):6}  {np.ptp(quakes.day[members]):4.1f}  {moments[root]:%Y-%m-%d}"
            f"  {energy[root]:.2e} J  M {quakes.magnitude[strongest]}, {places[strongest]}"
        )


def milliseconds(function, *args, repeats=20):
    """The median time of a call that is compiled already."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times))


def main(library):
    """Runs both programs on the catalogue; returns the exit code."""
    quakes, moments, places = read_catalogue()
    print(
        f"{len(places)} earthquakes from {moments[0]:%Y-%m-%d} to {moments[-1]:%Y-%m-%d}, "
        f"magnitude {quakes.magnitude.min()} to {quakes.magnitude.max()} (U.S. Geological Survey)\n"
    )
    args = (quakes, RADII, np.arange(0, quakes.day[-1], 1 / 24))
    both = (jax_callable.load(library), dense)
    programs = [jax.jit(functools.partial(analyse, ops)) for ops in both]
    ours, reference = (jax.device_get(program(*args)) for program in programs)
    if not compare(ours, reference):
        print("\nFAILED: Rust and jax.numpy do not agree")
        return 1
    list_sequences(ours, quakes, moments, places)
    rust, numpy = (milliseconds(program, *args) for program in programs)
    print(f"\none run: {rust:.2f} ms with Rust, {numpy:.2f} ms in jax.numpy, over all pairs")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    # After four months, single precision knows times to 1e-5 days: as near as one pair of
    # earthquakes is to the edge of the window.
    jax.config.update("jax_enable_x64", True)
    sys.exit(main(sys.argv[1]))
