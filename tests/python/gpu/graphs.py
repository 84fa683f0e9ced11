"""What the tests of graphs of our own share: the modes, a body, the numbers of its graphs,
and threads."""

import threading

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


def start(count, work):
    """Calls `work(number)` in so many threads; a function that waits, and fails if one did."""
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()

    def finish():
        for thread in threads:
            thread.join(timeout=120)
        assert not any(thread.is_alive() for thread in threads), "a thread hangs"
        assert not failures, [repr(failure) for failure in failures]

    return finish
