"""Reports which functions can be replaced in the installed engines or in a wheel: `python -m mlafix engines`."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .. import _env
from . import seams, source
from .replace import installed
from .seams import Seam
from .signatures import misfit, outside, unknown
from .switch import choice_of

class Row(NamedTuple):
    seam: Seam
    reason: str
    """The reason why the function at the seam is not replaced; "" if it can be."""


def rows(engine: str, version: str, read: source.Read) -> Iterator[Row]:
    """Yields a row for each seam of an engine's version."""
    for group in seams.alternatives(engine):
        first: Seam | None = None
        for seam in group:
            why = outside(seam.since, seam.last, version) or _misfit(engine, seam, read) or (f"{first.kind} instead" if first else "")
            first = first if why else seam
            yield Row(seam, why)


def _misfit(engine: str, seam: Seam, read: source.Read) -> str:
    """Returns the reason in the engine's files why the function cannot be replaced; "" if it can be."""
    try:
        if seam.kind == "operator":
            # A wheel contains the schemas of its operators only in machine code, so this checks the Python function of
            # vLLM that calls the operator. It has the same arguments in another order, which `unknown` ignores.
            return unknown(source.signature(read, "vllm._custom_ops", seam.function).parameters, seam.parameters)
        own = source.signature(read, seam.module, seam.attribute)
        return unknown(own.parameters, seams.MERGE_KERNEL) if seam.kind == "kernel" else misfit(own, inspect.signature(seams.drop_in(engine, seam.function)))
    except LookupError as error:
        return str(error)


def table(engine: str, version: str, read: source.Read) -> Iterator[str]:
    """Yields the lines of the report on one engine."""
    choice = choice_of(_env.engine(engine))
    variable = f"MLAFIX_{engine.upper()}"
    yield f"{engine} {version or '(version unknown)'}: {variable} is {_env.engine(engine) or 'unset: nothing is replaced'}"
    for row in rows(engine, version, read):
        wanted = choice is not None and choice.wants(row.seam.function, row.seam.only_by_name)
        how = f"not: {row.reason}"
        if not row.reason:
            how = "replaced" if wanted else f"by its name alone: {row.seam.only_by_name}" if row.seam.only_by_name else f"with {variable}=1"
        yield f"  {row.seam.function:34} {row.seam.kind:9} since {row.seam.since:13} {how}\n      {row.seam.place}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("wheel", nargs="*", type=Path, metavar="WHEEL", help="wheels, or folders of unpacked ones, in place of what is installed")


def run(options: argparse.Namespace) -> int:
    """Prints the reports on the installed engines, or on wheels. Returns the exit status, which is 1 if no engine is
    found."""
    found: list[tuple[str, str, source.Read]] = []
    for path in options.wheel:
        name, version = source.version_of(path)
        found += [(name, version, source.wheel(path))] if name in seams.SEAMS else []
    if not options.wheel:
        found = [(name, installed(name), source.environment) for name in seams.SEAMS if source.environment(f"{name}/__init__.py") is not None]
    for name, version, read in found:
        print("\n".join(table(name, version, read)))
    if not found:
        where = "as a wheel or a folder of an unpacked one" if options.wheel else "installed, or as WHEEL"
        print(f"expected {' or '.join(seams.SEAMS)}, {where}, got neither")
    return int(not found)
