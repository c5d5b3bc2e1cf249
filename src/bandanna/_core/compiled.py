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

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

import numba
from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
from numba.extending import overload

from bandanna._core.kernel_cache import ROOT, KernelCache

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


def once(function: F) -> F:
    """Compile a step by itself, for Python to call."""
    return kernel(python_source(function))


def _kept(compiled: FromNumba, function: F) -> F:
    """Keep the machine code of a function on disk."""
    if function.__module__.partition(".")[0] == ROOT:  # the sources of others are not watched
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


# --- functions that only compiled code calls ------------------------------------------

# For every function Numba makes machine code of its own, an entry for Python and an entry for C,
# and optimises the code of all that it calls once more. Kernels are made of a hundred small
# functions, none of which Python calls: most of the time to compile a kernel went there. Here a
# step stays as Numba's lowering wrote it, and is optimised once, in the kernel that inlines it. A
# step may still be called from Python, in tests say. Then it is compiled by itself.

FromNumba = Any
"""What Numba hands over; it is not typed."""


class _ForLinking(JITCodeLibrary):  # type: ignore[misc]  # Numba is not typed
    """Code that is linked into that of a kernel, and never made into machine code."""

    def finalize(self) -> None:
        """Link what it calls, and leave the rest to the kernel."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


class StepCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, for a function that is inlined into kernels."""

    def __init__(self, typing: object, target: FromNumba, library: object, *rest: object) -> None:
        super().__init__(typing, target, _ForLinking(target.codegen(), "step"), *rest)
        self.state.flags.no_compile = True

    def compile_extra(self, function: FromNumba) -> FromNumba:
        """Compile, and make known to Numba what has no machine code: under a name of its own."""
        compiled = super().compile_extra(function)
        name = make_function(sys, function.__name__, "a step", 0, compiled.environment, ())
        compiled.target_context.insert_user_function(name, compiled.fndesc, [compiled.library])
        return compiled._replace(entry_point=name)


class Inner(CPUDispatcher):  # type: ignore[misc]
    """A function for compiled code; where Python calls it, another compilation answers."""

    def add_overload(self, found: FromNumba) -> None:
        """Keep what was compiled, out of the reach of Python: it has no entry for it."""
        self.overloads[tuple(found.signature.args)] = found

    @cached_property
    def _for_python(self) -> Callable[..., FromNumba]:
        options = {key: self.targetoptions[key] for key in ("error_model", "nogil", "_nrt")}
        compiled: Callable[..., FromNumba] = numba.njit(**options)(self.py_func)
        return compiled

    def _compile_for_args(self, *args: object, **kwargs: object) -> Callable[..., FromNumba]:
        return self._for_python
