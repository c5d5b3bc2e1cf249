"""How hot loops are compiled: two decorators around Numba, one for steps and one for kernels.

A *step* is a small function on plain arrays that is always inlined into its caller. Steps
allocate nothing, so reference counting is switched off for them: the atomic counters would cost
more than the arithmetic (124 against 40 nanoseconds a round for EXP3 with ten arms).

A *part* is called rather than inlined: what runs seldom and is long, such as a fit.

A *kernel* is what Python calls. Kernels are compiled on first use and kept on disk, by
``kernel_cache``.

Nothing here may use fast-math: the online object and the simulator inline the same steps into
different kernels and must still agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import numba
from numba.extending import overload

from bandanna._core.inner import FromNumba, Inner, StepCompiler
from bandanna._core.kernel_cache import KernelCache

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = {"error_model": "numpy", "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
_INNER_OPTIONS = {**_OPTIONS, "no_cpython_wrapper": True, "nopython": True}
_STEP_OPTIONS = {**_INNER_OPTIONS, "forceinline": True}


def step(function: F) -> F:
    """Compile a function to be inlined into the kernels that call it."""
    compiled: F = Inner(function, None, _STEP_OPTIONS, StepCompiler)
    return compiled


def part(function: F) -> F:
    """Compile a function that kernels call; kept on disk, so that the next kernel only links it."""
    return _kept(Inner(function, None, _INNER_OPTIONS), function)


def kernel(function: F) -> F:
    """Compile a function that Python calls; the machine code is kept on disk where possible."""
    return _kept(numba.njit(**_OPTIONS)(function), function)


def _kept(compiled: FromNumba, function: F) -> F:
    """Keep the machine code of a function on disk."""
    with suppress(RuntimeError):  # nowhere to write: a read-only installation without a home
        compiled._cache = KernelCache(function)
    typed: F = compiled
    return typed


def dispatches(stub: Callable[..., object]) -> Callable[[F], F]:
    """Let compiled code that calls ``stub`` call what the decorated function chooses by type.

    The decorated function gets Numba's types and returns a Python function to compile and inline.
    """
    options = {**_STEP_OPTIONS, "pipeline_class": StepCompiler}
    return overload(stub, jit_options=options, strict=False)  # type: ignore[no-any-return]


def python_source(compiled: F) -> F:
    """Return the Python function behind a compiled one, as Numba's ``overload`` wants it."""
    source: F = getattr(compiled, "py_func", compiled)
    return source
