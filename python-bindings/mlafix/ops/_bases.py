"""Bases and layouts of log-sum-exps: converts from callers' spellings to kernels'."""

from __future__ import annotations

import math
from typing import Any, Dict, NamedTuple

from .._launcher.arguments import wrong

_BASES = {"e": "e", "2": "2", "ln": "e", "log2": "2", "basee": "e", "base2": "2"}
_LAYOUTS = {"hn": "hn", "nh": "nh", "HN": "hn", "NH": "nh"}

TO_LOG2 = {"e": math.log2(math.e), "2": 1.0}
"""What makes a number in units of a base one in units of base 2."""


def base_of(name: str, base: Any) -> str:
    """The base, "e" or "2", of an argument called `name`. Raises ArgumentError."""
    found = _BASES.get(base) if isinstance(base, str) else None
    if found is None:
        raise wrong(name, "'e', 'ln', '2' or 'log2'", repr(base))
    return found


def layout_of(layout: Any) -> str:
    """The layout of an argument "lse_layout": "hn" or "nh". Raises ArgumentError."""
    found = _LAYOUTS.get(layout) if isinstance(layout, str) else None
    if found is None:
        raise wrong("lse_layout", "'hn' for [H, n] or 'nh' for [n, H]", repr(layout))
    return found


class Bases(NamedTuple):
    """The bases of the lses of a merge: each "e" or "2". `prefix` is that of all inputs where they share one."""

    prefix: str
    suffix: str
    result: str

    @property
    def are_one(self) -> bool:
        return self.prefix == self.suffix == self.result

    @property
    def meeting(self) -> str:
        """The base in which two sides are merged: e, to which every lse converts within the range of f32, unless one of base 2 stays in it."""
        return "2" if self.result == "2" and "2" in (self.prefix, self.suffix) else "e"

    def bindings(self, sides: bool = False) -> Dict[str, str]:
        """The bindings for these bases, without a kernel's defaults. `sides`: it merges a prefix and a suffix, else
        states of one base."""
        named = {"ResultBase": self.result}
        if sides:
            named |= {"SuffixBase": self.suffix, "MeetingBase": self.meeting}
        others = {name: base for name, base in named.items() if base != self.prefix}
        return others if self.prefix == "e" else {"B": self.prefix, **others}

    def key(self, layout: str, spelled: str = "", sides: bool = False) -> tuple[str, ...]:
        """The launch key of a kernel for these; `spelled`: B as the caller has it, by which the fast path looks the key up."""
        return (layout, spelled or self.prefix, *(f"{name}={base}" for name, base in self.bindings(sides).items() if name != "B"))


def bases_of(base: Any, lse_base: Any, out_base: Any, prefix_base: Any = None, suffix_base: Any = None) -> Bases:
    """The bases given by the arguments with these names. Raises ArgumentError."""
    whole = base_of("base", base) if lse_base is None else base_of("lse_base", lse_base)
    named = ("prefix_base", prefix_base), ("suffix_base", suffix_base), ("out_base", out_base)
    return Bases(*(whole if given is None else base_of(name, given) for name, given in named))


def spelled_base(base: Any, lse_base: Any, bases: Bases) -> str:
    """The base of the prefix, spelled as the caller has it where that says it: the fast path looks launch keys up so."""
    spelled: str = base if lse_base is None else lse_base
    return spelled if _BASES[spelled] == bases.prefix else bases.prefix
