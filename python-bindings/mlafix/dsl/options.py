"""The options of ``@mlafix.kernel(…)``."""

from __future__ import annotations

from typing import NamedTuple

# The kinds of warnings, as `allow` names them.
WARNINGS = ("races", "bounds", "nan")


class Options(NamedTuple):
    """The parameters of ``@mlafix.kernel``. `allow` has no duplicates and the order of WARNINGS; `plan` holds texts
    "NAME=VALUE"."""

    bounds: str = "guard"
    allow: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()

    def text(self) -> str:
        """The options as lines for a digest. Empty for default options."""
        bounds = "" if self.bounds == "guard" else f"\nbounds = {self.bounds}"
        allow = f"\nallow = {', '.join(self.allow)}" if self.allow else ""
        return bounds + allow + (f"\nplan = {', '.join(self.plan)}" if self.plan else "")
