"""Functions that only compiled code calls, compiled no further than that needs.

For every function Numba makes machine code of its own, an entry for Python and an entry for C, and
optimises the code of all that it calls once more. Kernels are made of a hundred small functions,
none of which Python calls: most of the time to compile a kernel went there. Here a step stays as
Numba's lowering wrote it, and is optimised once, in the kernel that inlines it.

A step may still be called from Python, in tests say. Then it is compiled by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

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
        found = super().compile_extra(function)
        name = make_function(sys, function.__name__, "a step", 0, found.environment, ())
        found.target_context.insert_user_function(name, found.fndesc, [found.library])
        return found._replace(entry_point=name)


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
