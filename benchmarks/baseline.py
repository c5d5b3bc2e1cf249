"""The C baseline: compiled when needed, called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("baseline.c")
FAST = ("-O3", "-march=native")


def compiler() -> str | None:
    """Return a C compiler, if this machine has one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compile_baseline(*flags: str) -> Any:
    """Compile the loops and return the library."""
    command = compiler()
    if command is None:
        raise RuntimeError("no C compiler on this machine")
    library = Path(tempfile.mkdtemp()) / "baseline.so"
    arguments = [command, *flags, "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-lm"]
    subprocess.run(arguments, check=True)
    loaded = ctypes.CDLL(str(library))
    for name in ("exp3", "tsallis_inf", "htinf", "exp4"):
        getattr(loaded, name).restype = ctypes.c_int64
    return loaded


def call(library: Any, name: str, prefix: np.ndarray, stream: np.ndarray, *numbers: float) -> int:
    """Play one run on a table of prefix sums; the stream is used up in place."""
    result: int = getattr(library, name)(
        ctypes.c_int(prefix.shape[1]),
        ctypes.c_int64(prefix.shape[0] - 1),
        prefix.ctypes.data_as(ctypes.c_void_p),
        stream.ctypes.data_as(ctypes.c_void_p),
        *(ctypes.c_double(number) for number in numbers),
    )
    return result


def call_exp4(
    library: Any, losses: np.ndarray, advice: np.ndarray, stream: np.ndarray, rate: float
) -> int:
    """Play one run of EXP4 on (rounds, arms) losses and advice in the engine's layout."""
    experts = advice.shape[-1]
    votes = advice.ctypes.data_as(ctypes.c_void_p) if advice.ndim == 2 else None
    shares = advice.ctypes.data_as(ctypes.c_void_p) if advice.ndim == 3 else None
    result: int = library.exp4(
        ctypes.c_int(losses.shape[1]),
        ctypes.c_int(experts),
        ctypes.c_int64(losses.shape[0]),
        losses.ctypes.data_as(ctypes.c_void_p),
        votes,
        shares,
        stream.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_double(rate),
    )
    return result
