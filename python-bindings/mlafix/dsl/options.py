"""The options of ``@mlafix.kernel(…)``."""

from __future__ import annotations

from typing import NamedTuple

# The kinds of warnings, as `allow` names them.
WARNINGS = ("races", "bounds", "nan")


class Options(NamedTuple):
    """The parameters of ``@mlafix.kernel``; `allow` without duplicates, in the order of WARNINGS."""

    bounds: str = "guard"
    allow: tuple[str, ...] = ()

    def text(self) -> str:
        """Lines for a digest; empty for default options."""
        bounds = "" if self.bounds == "guard" else f"\nbounds = {self.bounds}"
        return bounds + (f"\nallow = {', '.join(self.allow)}" if self.allow else "")
