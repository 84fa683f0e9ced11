"""Errors that `jax_callable.load` raises.

All of them derive from `LoadError`, which is an `ImportError`: a library that cannot be loaded is
code that cannot be imported. Each message says what to do.
"""


class LoadError(ImportError):
    """A library of JAX callables cannot be loaded."""


class LibraryNotFoundError(LoadError):
    """There is no such file, no such package, or the package holds no library."""


class NotALibraryError(LoadError):
    """The file is not a shared library that this machine can open."""


class MissingSymbolsError(LoadError):
    """The shared library was not built with the jax-callable crate."""


class AbiVersionError(LoadError):
    """The library and this package speak different versions of the interface between them."""


class ManifestError(LoadError):
    """The library's description of its targets is damaged, or the library refuses itself."""


class NoTargetsError(LoadError):
    """The library holds no `#[jax_callable]` function."""


class JaxVersionError(LoadError):
    """JAX is missing, or older than the oldest supported release."""


class RegistrationError(LoadError):
    """XLA refused a target of the library."""
