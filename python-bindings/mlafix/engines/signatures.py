"""Decides from signatures and the engine's version whether a drop-in can stand in for a function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Container, Iterable


def release_of(version: str) -> tuple[int, ...]:
    """Parses a version into a tuple that can be compared: "0.33.0+cu130" becomes (0, 33, 0). A post-release sorts after
    its release."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = tuple(int(number) for number in found[0].split(".")) if found else ()
    post = re.search(r"\.post(\d+)", version)
    return (*numbers, int(post[1])) if post else numbers


def outside(since: str, last: str, version: str) -> str:
    """Returns the reason why `version` is not between `since` and `last`. Returns "" if it is, or if `version` is "". A
    `last` of "" sets no limit."""
    if version and release_of(version) < release_of(since):
        return f"{version} is older than {since}"
    if version and last and release_of(version) > release_of(last):
        return f"removed after {last}"
    return ""


def unknown(own: Iterable[str], known: Container[str]) -> str:
    """Returns the reason why a function with the parameters `known` cannot stand in for one with the parameters `own`.
    Returns "" if it can."""
    strange = [name for name in own if name not in known]
    return f"parameters that mlafix does not know: {', '.join(strange)}" if strange else ""


def misfit(own: inspect.Signature, mine: inspect.Signature) -> str:
    """Returns the reason in the signatures why `mine` cannot stand in for `own`. Returns "" if it can.

    Every parameter of `own` must be a parameter of `mine`, in the same order and with the same default. The other
    parameters of `mine` must have defaults. `own` must not have ``*args`` or ``**kwargs``.
    """
    known = mine.parameters
    if reason := unknown(own.parameters, known):
        return reason
    if list(own.parameters) != [name for name in known if name in own.parameters]:
        return f"parameters in another order: {', '.join(own.parameters)}"
    for name, parameter in own.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return f"parameters of any name: {parameter}"
        if parameter.default is not known[name].default and parameter.default != known[name].default:
            return f"parameter {name}: default {_default(parameter)} there, {_default(known[name])} here"
    needed = [name for name, parameter in known.items() if name not in own.parameters and parameter.default is parameter.empty]
    return f"parameters that are missing there: {', '.join(needed)}" if needed else ""


def _default(parameter: inspect.Parameter) -> str:
    return "none" if parameter.default is parameter.empty else repr(parameter.default)
