"""Tests the rounding to formats that numpy's types do not cover."""

from __future__ import annotations

import formats
import numpy as np


def test_powers_are_rounded_up() -> None:
    values = np.array([0.0, -3.0, 2.0**-140, 2.0**-127, 2.0**-126.5, 1.0, np.nextafter(1, 2), 3.0, 2.0**127, 3e38, np.inf, -np.inf, np.nan])
    expected = [2.0**-127] * 4 + [2.0**-126, 1.0, 2.0, 4.0, 2.0**127, 2.0**127, 2.0**127, 2.0**-127, np.nan]
    np.testing.assert_array_equal(formats.round_to("f8e8m0", values), expected)
