"""tokenspeed's merge of two partial states."""

from __future__ import annotations

import math
from typing import Any

from .. import ops
from .._launcher.arguments import renames, wrong
from ..ops import Array, Base

LSE_LOG2 = 1.0
"""`lse_scale_log2` of an lse in base 2."""

LSE_LN = math.log2(math.e)
"""`lse_scale_log2` of an lse in base e."""


@renames(prefix="v_a", prefix_lse="s_a", suffix="v_b", suffix_lse="s_b", out="v_a", out_lse="v_a", v="v_a", s="s_a", v_other="v_b", s_other="s_b")
def merge_state(v_a: Array, s_a: Array, v_b: Array, s_b: Array, *, inplace: bool = False, lse_scale_log2: float = LSE_LN,
                enable_pdl: bool = False) -> tuple[Any, Any]:
    """Merges two states (`tokenspeed_kernel.thirdparty.cuda.merge_state`; `mlafix.ops.merge_attn_states`).

    Differences from tokenspeed: a state of -inf or +inf is empty and is never multiplied (N1, N2, N5). Nothing need be
    contiguous. Payloads may be f32. The lse is in base e or 2; any other scale is an error.

    Args:
        v_a: `[N, H, D]` bf16, f16, f32.
        s_a: `[N, H] f32`.
        v_b: `[N, H, D]`.
        s_b: `[N, H] f32`.
        inplace: if True, the result is written to `v_a` and `s_a`.
        lse_scale_log2: the factor that converts the lses to base 2: `LSE_LN` for base e, `LSE_LOG2` for base 2.
        enable_pdl: not used: launches are dependent (PDL) wherever their code waits for the preceding grid.

    Returns:
        `(v, s)`: new arrays, or `v_a` and `s_a`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return _merge(v_a, s_a, v_b, s_b, inplace, _base_of(lse_scale_log2))


@renames(prefix="out_a", prefix_lse="lse_a", suffix="out_b", suffix_lse="lse_b", out="out_a", out_lse="out_a", v="out_a", s="lse_a",
         v_other="out_b", s_other="lse_b")
def attn_merge_state(out_a: Array, lse_a: Array, out_b: Array, lse_b: Array, *, lse_scale_log2: float = LSE_LN,
                     inplace: bool = False, enable_pdl: bool = False, override: str | None = None,
                     solution: str | None = None) -> tuple[Any, Any]:
    """`merge_state` by the name under which tokenspeed chooses a kernel (`tokenspeed_kernel.attn_merge_state`).

    Args:
        out_a: as `v_a` of `merge_state`.
        lse_a: as `s_a`.
        out_b: as `v_b`.
        lse_b: as `s_b`.
        lse_scale_log2: likewise.
        inplace: likewise.
        enable_pdl: likewise.
        override: not used; the name of a kernel in tokenspeed.
        solution: not used; a family of kernels in tokenspeed.

    Returns:
        `(out, lse)`: new arrays, or `out_a` and `lse_a`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return _merge(out_a, lse_a, out_b, lse_b, inplace, _base_of(lse_scale_log2))


def _merge(v_a: Array, s_a: Array, v_b: Array, s_b: Array, inplace: bool, base: Base) -> tuple[Any, Any]:
    if not inplace:
        return ops.merge_attn_states(v_a, s_a, v_b, s_b, lse_layout="nh", base=base)
    ops.merge_state_in_place(v_a, s_a, v_b, s_b, base=base)
    return v_a, s_a


def _base_of(scale: float) -> Base:
    if scale == LSE_LOG2:
        return "2"
    # The comparison has a tolerance, since the caller's log2(e) may be an f32. It does not use math.isclose, which
    # torch.compile cannot trace for a symbolic float.
    if abs(scale - LSE_LN) <= 1e-6 * LSE_LN:
        return "e"
    raise wrong("lse_scale_log2", f"{LSE_LOG2} (base 2) or log2(e) = {LSE_LN} (base e)", scale)
