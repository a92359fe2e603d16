"""The options of ``@mlafix.kernel(…)``."""

from __future__ import annotations

from typing import NamedTuple

# The kinds of warnings that `allow` can name.
WARNINGS = ("races", "bounds", "nan")


class Options(NamedTuple):
    """The options of ``@mlafix.kernel``. `allow` is sorted as WARNINGS is, and has no duplicates. `plan` has texts
    "NAME=VALUE"."""

    bounds: str = "guard"
    allow: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()

    def text(self) -> str:
        """Returns the options as lines for a digest. Returns "" for default options."""
        bounds = "" if self.bounds == "guard" else f"\nbounds = {self.bounds}"
        allow = f"\nallow = {', '.join(self.allow)}" if self.allow else ""
        return bounds + allow + (f"\nplan = {', '.join(self.plan)}" if self.plan else "")
