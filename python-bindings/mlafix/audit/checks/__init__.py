"""The checks A0 to A17. docs/Audit.md has a section on each."""

from . import bits, earlier, empty, ends, graphs, host, lse, options, padding, poison, quantised, sizes, splits, tables, views
from .check import Check, fit

CHECKS: dict[str, Check] = {
    check.number: check
    for module in (empty, padding, poison, lse, splits, graphs, views, bits, ends, tables, host, sizes, options, earlier, quantised)
    for check in module.CHECKS
}

__all__ = ["CHECKS", "Check", "fit"]
