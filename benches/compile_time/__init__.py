"""What `#[jax_callable]` costs when a crate is compiled, beside PyO3's `#[pyfunction]`.

Crates with the same 200 signatures are generated and compiled in turn, with their
dependencies built before. Times are of the crate alone, with cargo's own and the linker's.
"""

from compile_time.measure import run

__all__ = ["run"]
