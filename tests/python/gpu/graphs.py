"""What the tests of graphs of our own share: the modes, a body, and the numbers of its graphs."""

import numpy as np

OWN = ["warp", "staged", "staged_ex"]


def mixed(s, a, b, c, d):
    return c + s * a, d + s * b, a + b


def check_mix(f, *arrays, s=2.0):
    for got, expected in zip(f(*arrays), mixed(s, *map(np.asarray, arrays)), strict=True):
        np.testing.assert_array_equal(got, expected)


def changes(graphs, work):
    """What the work changes in the statistics."""
    before = graphs.statistics()
    work()
    return {name: n - before[name] for name, n in graphs.statistics().items() if n != before[name]}
