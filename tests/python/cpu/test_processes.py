"""One program over several processes, with `jax.distributed`."""

import os
import socket
import subprocess
import sys

WORK = """if True:
    import functools, sys
    import jax, numpy as np
    jax.distributed.initialize(sys.argv[2], num_processes=2, process_id=int(sys.argv[3]))
    import jax_callable
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    ops = jax_callable.load(sys.argv[1])
    if sys.argv[3] == "1":
        # One process may make calls of its own before.
        np.asarray(ops.saxpy(9.0, np.ones(2, np.float32), np.ones(2, np.float32)))
    assert (len(jax.devices()), len(jax.local_devices())) == (4, 2)
    mesh, spec = Mesh(np.array(jax.devices()), ("i",)), PartitionSpec("i")
    whole = np.arange(12, dtype=np.float32)
    sharding = NamedSharding(mesh, spec)
    x = jax.make_array_from_callback((12,), sharding, lambda index: whole[index])

    @jax.jit
    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=spec, out_specs=(spec, PartitionSpec())
    )
    def program(x):
        y = ops.saxpy(2.0, x, ops.cumsum(x))
        return y, jax.lax.psum(y[-1], "i")

    def show(array):
        return [np.asarray(each.data).tolist() for each in array.addressable_shards]

    # XLA's numbers of the devices that run this process's part.
    places = jax.jit(
        jax.shard_map(
            lambda x: ops.place(x)[1][None], mesh=mesh, in_specs=spec, out_specs=spec
        )
    )(x)
    assert show(places) == [[device.id] for device in jax.local_devices()], places
    for _ in range(3):
        y, total = program(x)
    print(show(y), float(total))
    # Gathered, computed by each device as a whole.
    print(show(jax.jit(ops.cumsum)(x)[-1:]))
    jax.distributed.shutdown()
"""


def test_two_processes(library):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORK, str(library), address, str(number)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors
    # XLA prints of its own.
    lines = [[line for line in out.splitlines() if line.startswith("[[")] for out, _ in outputs]
    assert lines == [
        ["[[0.0, 3.0, 7.0], [9.0, 15.0, 22.0]] 118.0", "[[66.0], [66.0]]"],
        ["[[18.0, 27.0, 37.0], [27.0, 39.0, 52.0]] 118.0", "[[66.0], [66.0]]"],
    ]
