"""Replaces the functions at seams, if the engine's version, the user's choice and the signatures permit it."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from . import seams
from .seams import Seam
from .signatures import misfit, outside
from .switch import Choice, Function, Replaced, compared, is_stand_in, stand_in

Make = Callable[[Function, Function], Function]
"""Makes the stand-in for an engine's function. Its arguments are the engine's function and mlafix's drop-in."""

Way = Callable[[Seam, Make], str]
"""Replaces the function at one seam. Returns "", or the reason why it cannot be replaced."""


def installed(name: str) -> str:
    """Returns the version of an engine in this environment, or "" if it is unknown. If no distribution has this name,
    asks the loaded package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(name), "__version__", ""))


def find(seam: Seam) -> Any:
    """Returns the engine's function or kernel at a seam. Raises LookupError with the reason if it does not exist."""
    try:
        module = importlib.import_module(seam.module)
    except ImportError as error:
        raise LookupError(f"{seam.module} does not import: {error}") from error
    own: Any = module
    for name in seam.attribute.split("."):
        own = getattr(own, name, None)
    if own is None:
        raise LookupError(f"{seam.module} has no {seam.attribute}")
    return own


def fitting(seam: Seam, engine: str) -> tuple[Function, Function]:
    """Returns the engine's function and mlafix's drop-in. Raises LookupError with the reason if the drop-in cannot
    stand in for the function, or already does."""
    own, mine = find(seam), seams.drop_in(engine, seam.function)
    if is_stand_in(own):
        raise LookupError("replaced already, since another module has the same function")
    if why := misfit(inspect.signature(own), inspect.signature(mine)):
        raise LookupError(why)
    return own, mine


def maker(seam: Seam, choice: Choice, replaced: Replaced) -> Make:
    """Returns the function that makes the stand-in at this seam. Stand-ins for functions over ranks (`only_by_name`)
    neither fall back nor compare, since one rank alone cannot decide to do so."""
    tally = replaced.tally(seam.function)
    if seam.only_by_name:
        return lambda own, mine: stand_in(own, mine, tally, refusals=())
    if choice.compares:
        return lambda own, mine: compared(own, mine, tally, seam.writes)
    return lambda own, mine: stand_in(own, mine, tally)


def replace_all(engine: str, version: str, choice: Choice, ways: Mapping[str, Way], replaced: Replaced,
                when: Callable[[str, Callable[[], object]], None]) -> None:
    """Replaces the functions at all seams of the engine that `choice` selects. Among alternative seams, replaces only
    the function at the first seam where this is possible. If the version is unknown, several modules may have the
    function. Then it is replaced in each of them, but a stand-in that one module imports from another is kept.

    `when(module, call)` calls `call` when the module has been imported, or at once.
    """
    known = {seam.function for seam in seams.SEAMS[engine]}
    for name in sorted(choice.names - known):
        replaced.left[name] = f"no such function; there are {', '.join(sorted(known))}"
    for group in seams.alternatives(engine):
        if not choice.wants(group[0].function, group[0].only_by_name):
            continue
        there = [seam for seam in group if not _is_outside(seam, version, replaced)]
        if there:
            replaced.wanted.add(there[0].function)
            when(there[0].module, partial(replace_one_of, there, choice, ways, replaced))


def _is_outside(seam: Seam, version: str, replaced: Replaced) -> bool:
    if why := outside(seam.since, seam.last, version):
        replaced.left[f"{seam.function} at {seam.place}"] = why
    return bool(why)


def replace_one_of(alternatives: Iterable[Seam], choice: Choice, ways: Mapping[str, Way], replaced: Replaced) -> None:
    """Replaces the function at the first seam where this is possible. Notes for each earlier seam why it is not possible
    there. Never raises."""
    for seam in alternatives:
        replaced.done.add(seam.function)
        try:
            why = ways[seam.kind](seam, maker(seam, choice, replaced))
        except Exception as error:  # The engine must start even if the plugin fails.
            why = str(error) if isinstance(error, LookupError) else f"{type(error).__name__}: {error}"
        if not why:
            replaced.note(seam.function, seam.place)
            return
        replaced.note(seam.function, seam.place, why)
