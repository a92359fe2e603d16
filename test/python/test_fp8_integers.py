"""Integers that are stored as fp8."""

from __future__ import annotations

import numpy as np
import pytest

from mlafix.dsl import Out, f8e4m3fn, f32, grid, kernel, splat

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")


@kernel
def too_large(y: Out[f8e4m3fn, "n D"], z: Out[f8e4m3fn, "n D"]):
    for t in grid("n"):
        y[t] = f32(splat(66756, "D"))
        z[t] = f32(splat(-66756, "D"))


def test_integers_beyond_fp8_saturate() -> None:
    """Upstream folds the conversion of such a constant to NaN."""
    y, z = (np.zeros((3, 8), np.uint8) for _ in range(2))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    too_large(y.view(ml_dtypes.float8_e4m3fn), z.view(ml_dtypes.float8_e4m3fn))
    assert (y == 0x7E).all() and (z == 0xFE).all()  # +-448
