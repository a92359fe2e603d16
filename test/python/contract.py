"""A reference for every kernel in f64, written only from the numerical contract (N1 to N13).

States are `(out, lse)`: a payload `[..., D]` and one log-sum-exp per row. Nothing here depends on the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numerics import E4M3, F32, round_to, ulps, widen

# Weights are f32 (N7). A weight below half of the smallest denormal becomes zero.
ZERO_WEIGHT = 2.0**-150
RELATIVE = 4e-6


@dataclass(frozen=True)
class Expected:
    """The values that an array must have, in f64, and the errors that are allowed.

    Elements that are `exact` must equal `value`, including the sign of zero; a NaN may be any NaN. All other elements
    must be within N10: 1 ulp of the stored type or, for f32 and where terms cancel, 4e-6 of `magnitude`. `magnitude` is
    the sum of |weight x payload|, since errors of f32 sums are relative to it.
    """

    value: np.ndarray
    magnitude: np.ndarray
    exact: np.ndarray

    def check(self, got: np.ndarray, what: str) -> None:
        """Raises an AssertionError that shows the first wrong element."""
        assert got.shape == self.value.shape, f"{what}: expected shape {self.value.shape}, got {got.shape}"
        value, wide = self.value, widen(got)
        with np.errstate(invalid="ignore"):
            same = (wide == value) & (np.signbit(wide) == np.signbit(value)) | np.isnan(wide) & np.isnan(value)
            near = np.abs(wide - value) <= np.maximum(RELATIVE * self.magnitude, 2.0**-126)
        near |= wide == value
        if got.dtype != F32:
            near |= (ulps(got, value) <= 1) & ~np.isnan(wide) & ~np.isnan(value)
        fits = np.where(self.exact, same, near | np.isnan(wide) & np.isnan(value))
        if not fits.all():
            at = tuple(int(i) for i in np.argwhere(~fits)[0])
            how = "exactly" if self.exact[at] else "about"
            raise AssertionError(
                f"{what}{list(at)}: expected {how} {float(value[at])!r}, got {float(wide[at])!r} ({got.dtype}); "
                f"{int((~fits).sum())} of {fits.size} elements are wrong"
            )


def exactly(value: np.ndarray) -> Expected:
    """Returns an expectation of exactly these numbers."""
    value = np.asarray(value, np.float64)
    return Expected(value, np.abs(value), np.ones(value.shape, bool))


def empty_lse(lse: np.ndarray) -> np.ndarray:
    """Returns true where an lse belongs to an empty row: it is -inf or +inf (N1, N2)."""
    return np.isinf(lse)


def merge(payloads: np.ndarray, lses: np.ndarray, *, base: float = np.e, out_dtype: np.dtype = F32,
          scale: float | None = None, present: np.ndarray | None = None) -> tuple[Expected, Expected]:
    """Merges states along axis 0: payloads [K, ..., D] and lses [K, ...] in `base`. States that are not `present` are
    left out.

    Returns the expected out [..., D] and lse [...] by N1 to N7. If `scale` is not None, value * f32(1 / scale) is
    stored as fp8.
    """
    payloads, lses = widen(payloads), widen(lses)
    live = ~empty_lse(lses)
    if present is not None:
        live &= present
    count = live.sum(axis=0)
    faulty = (live & np.isnan(lses)).any(axis=0)
    usable = live & ~np.isnan(lses)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = np.max(np.where(usable, lses, -np.inf), axis=0, initial=-np.inf)
        weight = np.where(usable, np.power(base, np.where(usable, lses - top, 0)), 0)
        weight = np.where(weight < ZERO_WEIGHT, 0, weight)
        total = weight.sum(axis=0)
        # N5: a payload without weight is never multiplied.
        terms = np.where(weight[..., None] != 0, weight[..., None] * payloads, 0)
        value = terms.sum(axis=0) / total[..., None]
        magnitude = np.abs(terms).sum(axis=0) / total[..., None]
        lse = top + np.log(total) / np.log(base)
    single = (count == 1) & ~faulty
    if payloads.shape[0]:
        only = np.argmax(live, axis=0)
        value = np.where(single[..., None], np.take_along_axis(payloads, only[None, ..., None], 0)[0], value)
        lse = np.where(single, np.take_along_axis(lses, only[None], 0)[0], lse)  # N4: a single live state is copied
    none = count == 0
    # N3: without a live state, the row is the identity
    value, lse = np.where(none[..., None], 0.0, value), np.where(none, -np.inf, lse)
    # N6: NaN in the lse of a live state makes the row and its lse NaN
    value, lse = np.where(faulty[..., None], np.nan, value), np.where(faulty, np.nan, lse)
    copied = single | none | faulty
    if scale is not None:
        # The reciprocal is rounded to f32 here, and the product below. The product is rounded to f32 before it is
        # rounded to fp8, since the first rounding may produce a tie of fp8.
        inverse = np.float64(np.float32(1) / np.float32(scale))
        value, magnitude = value * inverse, magnitude * abs(inverse)
    if scale is not None or out_dtype == E4M3:
        with np.errstate(over="ignore"):
            value = round_to(out_dtype, value.astype(np.float32).astype(np.float64))
    elif out_dtype is not None:
        value = np.where(copied[..., None], round_to(out_dtype, value), value)  # N4: a copy is converted, too
    out = Expected(value, np.nan_to_num(magnitude), np.broadcast_to(copied[..., None], value.shape))
    return out, Expected(lse, np.maximum(1, np.nan_to_num(np.abs(lse), posinf=1, neginf=1)), copied)


def merge_attn_states(prefix: np.ndarray, prefix_lse: np.ndarray, suffix: np.ndarray, suffix_lse: np.ndarray,
                      context_rows: int | None = None, **how: object) -> tuple[Expected, Expected]:
    """Merges rows [n, H, D] with lses [n, H]. Rows at or past `context_rows` only use the suffix."""
    n = prefix.shape[0]
    inside = np.arange(n)[:, None] < (n if context_rows is None else context_rows)
    present = np.stack([np.broadcast_to(inside, prefix_lse.shape), np.ones(prefix_lse.shape, bool)])
    return merge(np.stack([prefix, suffix]), np.stack([prefix_lse, suffix_lse]), present=present, **how)  # type: ignore[arg-type]


def merge_ragged(v: np.ndarray, s: np.ndarray, indptr: np.ndarray, **how: object) -> tuple[Expected, Expected]:
    """Merges runs of v [nnz, H, D] and s [nnz, H]: row i of the result merges [indptr[i], indptr[i + 1]). A run out of
    bounds is empty."""
    nnz, heads, dim = v.shape
    rows = len(indptr) - 1
    longest = max([1, *(int(b) - int(a) for a, b in zip(indptr, indptr[1:]) if 0 <= a <= b <= nnz)])
    payloads = np.zeros((longest, rows, heads, dim), v.dtype)
    lses = np.full((longest, rows, heads), -np.inf, np.float32)
    for row, (begin, end) in enumerate(zip(indptr, indptr[1:])):
        if 0 <= begin <= end <= nnz:
            payloads[: end - begin, row], lses[: end - begin, row] = v[begin:end], s[begin:end]
    return merge(payloads, lses, **how)  # type: ignore[arg-type]


def dead_rows(n: int, kv_lens: np.ndarray, cu_seqlens: np.ndarray) -> np.ndarray:
    """Returns a mask [n] of the rows of sequences with kv_lens <= 0. Sequences whose bounds are out of order or outside
    [0, n] are ignored."""
    dead = np.zeros(n, bool)
    for length, begin, end in zip(kv_lens, cu_seqlens, cu_seqlens[1:]):
        if length <= 0 and 0 <= begin <= end <= n:
            dead[begin:end] = True
    return dead


def blanked(out: np.ndarray, lse: np.ndarray, dead: np.ndarray) -> tuple[Expected, Expected]:
    """Returns the expected out [n, H, D] and lse [n, H] after dead rows became the identity (N1). Other rows are
    unchanged."""
    return (exactly(np.where(dead[:, None, None], 0.0, widen(out))), exactly(np.where(dead[:, None], -np.inf, widen(lse))))


def empty_context_rows(n: int, query_start: np.ndarray, context_start: np.ndarray) -> np.ndarray:
    """Returns a mask [n] of the rows of requests whose context [context_start[b], context_start[b + 1]) is empty."""
    return dead_rows(n, np.diff(context_start), query_start)


def prefilling(computed: np.ndarray, prompt: np.ndarray, n: int, live: int) -> np.ndarray:
    """Returns flags [n] that are computed < prompt for live requests, and False in padding."""
    flags = np.zeros(n, bool)
    count = max(0, min(live, n, len(computed)))
    flags[:count] = computed[:count] < prompt[:count]
    return flags


def context_lens(seq_lens: np.ndarray, decodes: int, longest: int, live: int) -> np.ndarray:
    """Returns the i32 array [decodes, longest] of max(seq_lens[i] - longest + 1 + j, 0). Rows of requests at or past
    `live`, or without a length, are 0."""
    lens = np.zeros((decodes, longest), np.int32)
    count = max(0, min(live, decodes, len(seq_lens)))
    lens[:count] = np.maximum(seq_lens[:count, None].astype(np.int64) - longest + 1 + np.arange(longest), 0)
    return lens


def stats_to_lse(stats: np.ndarray, softmax_scale: float) -> np.ndarray:
    """Returns lses in base e from pairs (max, sum) [..., 2]: max * scale + ln(sum). A sum of 0 or a max of -inf gives
    -inf."""
    top, total = widen(stats[..., 0]), widen(stats[..., 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        lse = top * np.float64(np.float32(softmax_scale)) + np.log(total)
    return np.where((total == 0) | np.isneginf(top), -np.inf, lse)


def quantize_fp8(x: np.ndarray, scale: float) -> Expected:
    """Returns x * f32(1 / scale), computed in f32 and converted to e4m3fn: nearest even, saturating, NaN stays NaN
    (N7)."""
    with np.errstate(over="ignore"):
        inverse = np.float32(1) / np.float32(scale)
        return exactly(round_to(E4M3, (np.asarray(x).astype(np.float32) * inverse).astype(np.float64)))


def rmsnorm(x: np.ndarray, weight: np.ndarray, eps: float) -> Expected:
    """Returns x * rsqrt(mean(x^2) + eps) * weight, with the mean over the last axis."""
    x, weight = widen(x), widen(weight)
    value = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight
    return Expected(value, np.abs(value), np.zeros(value.shape, bool))


def softmax(x: np.ndarray, scale: float = 1.0) -> Expected:
    """Returns exp(scale * (x - max)) / sum, with the maximum and the sum over the last axis."""
    x = widen(x)
    top = x.max(axis=-1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scale * (x - top))
        value = weights / weights.sum(axis=-1, keepdims=True)
    return Expected(value, np.abs(value), np.zeros(value.shape, bool))
