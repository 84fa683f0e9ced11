"""What is in the graphs that XLA captures, and how often a body runs for them."""

NODES = """
import threading

def captured_nodes():
    jax.effects_barrier()
    with jax.default_device(jax.devices("cpu")[0]):
        return np.asarray(ops.captured_nodes()).tolist()

stop, wrong, running = threading.Event(), [], threading.Barrier(5)

def unrelated(number):
    f = jax.jit(lambda x: jnp.sin(x @ x).sum() + number)
    x = jnp.full((128, 128), 1 / 128, jnp.float32)
    expected = 128 * 128 * np.sin(1 / 128) + number
    f(x).block_until_ready()
    running.wait(timeout=120)
    while not stop.is_set():
        if not np.allclose(f(x), expected, rtol=1e-2):
            wrong.append(number)

def calls(host_node):
    f = jax.jit(lambda x: [part + 1 for part in ops.walks_its_graph(3.0, host_node, x)])
    kept = []
    for i in range(40):
        x = np.arange(i, i + 1000, dtype=np.float32)
        result = f(x)
        for part, factor in zip(result, (2, 3, 1)):
            if not (np.asarray(part) == factor * x + 1).all():
                wrong.append((i, factor))
        kept += [result] * (i % 3)

threads = [threading.Thread(target=unrelated, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
try:
    running.wait(timeout=120)
    calls(False)
finally:
    stop.set()
    for thread in threads:
        thread.join()
print(*captured_nodes())
calls(True)
print(*captured_nodes())
print(wrong)
f = jax.jit(lambda x: ops.walks_its_graph(3.0, False, x))
x = jnp.arange(1000, dtype=jnp.float32)
for i in range(40):
    result = f(x)
    assert (np.asarray(result[1]) == 3 * np.arange(1000)).all(), i
    del result
print(captured_nodes()[0])
"""


def test_a_capture_holds_the_nodes_of_the_body_only(python):
    out = python(NODES, capture=True).splitlines()
    alone, with_host_node = (list(map(int, line.split())) for line in out[:2])
    # The memset, two kernels and a copy, in every capture, while four threads ran other programs.
    assert alone[0] >= 2, "new addresses were captured again"
    assert alone[1:] == [2, 1, 1, 0] * 2
    # What is counted as others is seen.
    assert with_host_node[0] >= 1
    assert with_host_node[1:] == [2, 1, 1, 1] * 2
    assert out[2] == "[]"
    # Calls with the same addresses replay what was captured, and run no body.
    assert 1 <= int(out[3]) < 10


LOOP = """
x = jnp.arange(64, dtype=jnp.float32) / 64
half = jnp.eye(64, dtype=jnp.float32) / 2

@jax.jit
def loop(y):
    def step(carry):
        i, y = carry
        multiply = lambda a, b: jnp.matmul(a, b, precision="highest")
        return i + 1, multiply(ops.saxpy(0.5, x, multiply(half, y)), half)
    return jax.lax.while_loop(lambda carry: carry[0] < 20, step, (0, y))[1]

y = jnp.ones(64, jnp.float32)
expected = np.asarray(y)
for _ in range(20):
    expected = (np.asarray(x) / 2 + expected / 2) / 2
before = body_runs()[0]
for _ in range(5):
    np.testing.assert_allclose(loop(y), expected, rtol=1e-5)
print(body_runs()[0] - before)
"""


def test_a_while_loop_with_matmuls_is_captured(python):
    runs = int(python(LOOP, capture=True))
    assert 1 <= runs < 100, "100 iterations replay a graph"


DONATED = """
for donated in ((1,), (0, 1)):
    f = jax.jit(lambda x, y: ops.saxpy(2.0, x, y), donate_argnums=donated)
    for i in range(20):
        numbers = np.arange(i, i + 1000, dtype=np.float32)
        x, y = jax.device_put((numbers, numbers + 1))
        assert (np.asarray(f(x, y)) == 3 * numbers + 1).all(), (donated, i)
        assert x.is_deleted() or y.is_deleted()
"""


def test_donated_buffers_in_captures(python):
    python(DONATED, capture=True)
