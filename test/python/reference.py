"""The merge of two attention states in float64, by the formula of docs/Dialect.md."""

from __future__ import annotations

import numpy as np


def merge(
    prefix: np.ndarray, prefix_lse: np.ndarray, suffix: np.ndarray, suffix_lse: np.ndarray, context_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Payloads [n, H, D], lse [H, n], base e; rows at or past context_rows take the suffix alone. All lse finite."""
    p, s = prefix.astype(np.float64), suffix.astype(np.float64)
    p_lse, s_lse = prefix_lse.astype(np.float64).T[..., None], suffix_lse.astype(np.float64).T[..., None]
    p_lse = np.where(np.arange(p.shape[0])[:, None, None] < context_rows, p_lse, -np.inf)
    lse = np.logaddexp(p_lse, s_lse)
    out = np.exp(p_lse - lse) * p + np.exp(s_lse - lse) * s
    return out, lse[..., 0].T
