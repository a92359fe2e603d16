"""Tests the interpreter's scans."""

from __future__ import annotations

import floats
import numpy as np
from floats import Floats


def test_a_scan_is_the_reduction_of_what_a_row_begins_with() -> None:
    x = np.random.default_rng(5).standard_normal((2, 3, 21)).astype(np.float32).astype(np.float64)
    got = floats.scan("add", Floats(x)).v.reshape(2, 63)
    for i in range(63):
        whole = floats.reduce("add", Floats(x[:, : i // 21])).v
        last = floats.reduce("add", Floats(x[:, i // 21, : i % 21 + 1])).v[:, None]
        np.testing.assert_array_equal(got[:, i], floats.reduce("add", Floats(np.concatenate([whole, last], -1))).v)
