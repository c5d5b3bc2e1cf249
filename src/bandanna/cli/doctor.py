"""``bandanna doctor``: what is installed, what is missing for which extra, and whether it works."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from bandanna._core.extras import EXTRAS, missing_for
from bandanna._core.types import JSON
from bandanna.cli.help import command
from bandanna.cli.output import print_json
from bandanna.version import __version__

LITTLE_ROOM = 200 * 2**20
"""Bytes: machine code and a study's results need less."""

REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:>=([0-9.]+))?")


@command("bandanna doctor")
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check versions, compiled code, disk space and extras.

    Exits with code 1 if something that every program needs is wrong.
    """
    examined = examine()
    if as_json:
        print_json(examined)
    else:
        for line in lines(examined):
            typer.echo(line)
    raise typer.Exit(1 if examined["problems"] else 0)


def examine() -> JSON:
    """Return everything that was looked at, and what is wrong."""
    packages = {name: _package(name, least) for name, least in _required().items()}
    problems = [
        f"{name} {package['version'] or 'is not installed'}; needed is {package['needed']}"
        for name, package in packages.items()
        if not package["good"]
    ]
    code = _machine_code() if not problems else {"works": None}
    if code["works"] is False:
        problems.append(f"machine code cannot be compiled: {code['error']}")
    disk = {folder: shutil.disk_usage(folder).free for folder in _folders(code)}
    problems += [
        f"only {free / 2**20:.0f} MB are free for {folder}"
        for folder, free in disk.items()
        if free < LITTLE_ROOM
    ]
    return {
        "bandanna": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "free_threaded": not getattr(sys, "_is_gil_enabled", lambda: True)(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": packages,
        "machine_code": code,
        "free_bytes": disk,
        "extras": {extra: missing_for(extra) for extra in sorted(EXTRAS)},
        "problems": problems,
    }


def lines(examined: JSON) -> list[str]:
    """Write down what was found."""
    threads = ", free-threaded (not tested)" if examined["free_threaded"] else ""
    shown = [
        f"bandanna {examined['bandanna']}, {examined['implementation']} {examined['python']}"
        f"{threads}, {examined['system']}, {examined['cores']} cores"
    ]
    for name, package in examined["packages"].items():
        good = "" if package["good"] else f"   NEEDED: {package['needed']}"
        shown.append(f"  {name:14} {package['version'] or 'missing'}{good}")
    code = examined["machine_code"]
    if code["works"]:
        kept = f"kept in {code['cache']}" if code["cache"] else "not kept: no folder can be written"
        shown.append(f"machine code: compiled in {code['seconds']:.2f} s, {kept}")
    for folder, free in examined["free_bytes"].items():
        shown.append(f"disk: {free / 2**30:.1f} GB free for {folder}")
    for extra, missing in examined["extras"].items():
        how = f"needs {', '.join(missing)}: pip install 'bandanna[{extra}]'" if missing else "ready"
        shown.append(f"extra {extra}: {how}")
    shown += [f"PROBLEM: {problem}" for problem in examined["problems"]]
    shown.append("something is wrong" if examined["problems"] else "all that is needed works")
    return shown


def _required() -> dict[str, str | None]:
    """Return the packages that every program needs, with their least versions."""
    try:
        texts = metadata.requires("bandanna") or []
    except metadata.PackageNotFoundError:  # a clone on the path, not installed
        texts = []
    plain = (REQUIREMENT.match(text) for text in texts if "extra ==" not in text)
    needed = {match[1]: match[2] for match in plain if match}
    return needed or dict.fromkeys(
        ("dp-accounting", "numba", "numpy", "opendp", "rich", "scipy", "typer")
    )


def _package(name: str, least: str | None) -> JSON:
    try:
        version: str | None = metadata.version(name)
    except metadata.PackageNotFoundError:
        version = None
    good = version is not None and (least is None or _ordered(version) >= _ordered(least))
    return {"version": version, "needed": f">={least}" if least else "any", "good": good}


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version)[:3])


def _machine_code() -> JSON:
    """Compile something small, and look where machine code is kept."""
    import numba
    from numba.core.caching import FunctionCache

    from bandanna._core import streams

    def add(a: float, b: float) -> float:
        return a + b

    start = time.perf_counter()
    try:
        works = numba.njit(add)(1.0, 2.0) == 3.0
    except Exception as error:
        return {"works": False, "error": f"{type(error).__name__}: {error}", "cache": None}
    seconds = time.perf_counter() - start
    try:
        cache: str | None = FunctionCache(streams.new_stream).cache_path
    except (RuntimeError, OSError):
        cache = None
    return {"works": works, "seconds": seconds, "cache": cache}


def _folders(code: JSON) -> list[str]:
    """Return the folders that are written to: the one we are in, and the machine code's."""
    cache = code.get("cache")
    exists = cache is not None and Path(cache).exists()
    return list(dict.fromkeys([str(Path.cwd()), *([str(cache)] if exists else [])]))
