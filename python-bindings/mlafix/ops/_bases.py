"""Checks the bases and the layout of log-sum-exps, and converts them to the bindings of kernels."""

from __future__ import annotations

import math
from typing import Any, Dict, NamedTuple, Tuple

from .._launcher.arguments import wrong

TO_LOG2 = {"e": math.log2(math.e), "2": 1.0}
"""The factor that converts a log-sum-exp of a base to base 2."""


def base_of(name: str, base: Any) -> str:
    """Checks the base of an argument called `name` and returns it: "e" or "2". Raises ArgumentError for any other
    value."""
    if not isinstance(base, str) or base not in TO_LOG2:
        raise wrong(name, "'e' or '2'", repr(base))
    return base


def layout_of(layout: Any) -> str:
    """Checks the value of the argument "lse_layout" and returns it: "hn" or "nh". Raises ArgumentError for any other
    value."""
    if not isinstance(layout, str) or layout not in ("hn", "nh"):
        raise wrong("lse_layout", "'hn' for [H, n] or 'nh' for [n, H]", repr(layout))
    return layout


def check_bases(name: str, base: Any) -> None:
    """Raises ArgumentError unless the value of an argument is a base or a tuple of bases."""
    for one in base if isinstance(base, (tuple, list)) else (base,):
        base_of(name, one)


class LseBases(NamedTuple):
    """The bases of the lses of a merge, each "e" or "2". If all inputs have the same base, `prefix` is this base."""

    prefix: str
    suffix: str
    result: str

    @property
    def meeting(self) -> str:
        """The base in which two sides are merged. It is "2" if the result and a side have base 2. Otherwise it is "e",
        to which every lse converts within the range of f32."""
        return "2" if self.result == "2" and "2" in (self.prefix, self.suffix) else "e"

    def bindings(self, sides: bool = False) -> Dict[str, str]:
        """Returns the bindings for these bases, less those that equal the kernel's defaults. `sides` is True for a
        kernel that merges a prefix and a suffix, and False if all states of the kernel have the same base."""
        named = {"ResultBase": self.result}
        if sides:
            named |= {"SuffixBase": self.suffix, "MeetingBase": self.meeting}
        others = {name: base for name, base in named.items() if base != self.prefix}
        return others if self.prefix == "e" else {"B": self.prefix, **others}

    def key(self, layout: str, sides: bool = False) -> Tuple[str, ...]:
        """Returns the launch key of a kernel for these bases."""
        return (layout, self.prefix, *(f"{name}={base}" for name, base in self.bindings(sides).items() if name != "B"))


def bases_of(base: Any, *lses: str) -> LseBases:
    """Returns the bases that an argument "base" gives to the lses called `lses`. The last lse is the result's. The
    argument is one base for all lses, or a tuple with one for each. Raises ArgumentError for any other value."""
    if isinstance(base, str):
        return LseBases(*([base_of("base", base)] * 3))
    if not isinstance(base, (tuple, list)) or len(base) != len(lses):
        raise wrong("base", f"'e' or '2', or a tuple of them for {', '.join(lses[:-1])} and {lses[-1]}", repr(base))
    first, *_, last = found = [base_of("base", one) for one in base]
    return LseBases(first, found[-2], last)
