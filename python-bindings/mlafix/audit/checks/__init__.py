"""The checks: A0 to A12. docs/Audit.md has a section on each."""

from . import bits, empty, ends, graphs, host, lse, padding, poison, splits, tables, views
from .check import Check, fit

CHECKS: dict[str, Check] = {
    check.number: check
    for module in (empty, padding, poison, lse, splits, graphs, views, bits, ends, tables, host)
    for check in module.CHECKS
}

__all__ = ["CHECKS", "Check", "fit"]
