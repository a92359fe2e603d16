"""Compares a kernel with a planted fault to the original by the interpreter alone. A fault is detected if a result of
the changed kernel cannot be a result of the original."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import integers
import numpy as np
from contents import contents
from floats import Floats
from interpret import Text
from memory import Cells
from run import expected
from syntax import Case, Kernel


def is_told(case: Case, spoiled: Kernel) -> bool:
    """True if some call must give different results for the two kernels, in an element of a tensor or in a printed
    text."""
    with np.errstate(all="ignore"):
        for call in case.calls:
            made = contents(case.kernel, call)
            (plain, one), (other, two) = (expected(kernel, call, made) for kernel in (case.kernel, spoiled))
            if any(_differ(plain[name], other[name]) for name in plain) or print_otherwise(one.printed, two.printed):
                return True
    return False


def _differ(plain: Cells, other: Cells) -> bool:
    touched = plain.touched | other.touched
    if not hasattr(plain, "lo"):
        return bool((touched & ~plain.unknown & ~other.unknown & (plain.v != other.v)).any())
    is_number, low, high = other.lo <= other.hi, plain.lo, plain.hi
    # -0.0 is below 0.0
    below = (other.hi < low) | ((other.hi == 0) & (low == 0) & np.signbit(other.hi) & ~np.signbit(low))
    above = (other.lo > high) | ((other.lo == 0) & (high == 0) & ~np.signbit(other.lo) & np.signbit(high))
    return bool((touched & np.where(is_number, (below | above) & ~(plain.nan & other.nan), ~plain.nan)).any())


def print_otherwise(plain: Sequence[Text], other: Sequence[Text]) -> bool:
    for one, two in itertools.zip_longest(plain, other):
        if one is None or two is None:
            return True
        surely = one.surely & two.surely
        for value, changed in zip(one.values, two.values):
            if isinstance(value, Floats) or isinstance(changed, Floats):
                (low, high, nan), (lo, hi, other_nan) = value.bounds(), changed.bounds()
                wrong = np.where(lo > hi, ~nan, ((hi < low) | (lo > high)) & ~(nan & other_nan))
            else:
                unknown = integers.either(value.unknown, changed.unknown)
                wrong = (value.v != changed.v) & (True if unknown is None else ~unknown)
            if (surely & wrong).any():
                return True
    return False
