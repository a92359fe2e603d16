"""Right arguments for every public function: tests spoil one of them, bind them, or capture the call."""

from __future__ import annotations

from typing import Any

import numpy as np

from devices import Device
from mlafix import ops
from numerics import F32

N, H, D = 5, 4, 64


class Right:
    """Right arguments for every function, made on a device; a test then spoils one."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def rows(self, *shape: int, dtype: Any = F32) -> Any:
        return self.device.put(np.ones(shape or (N, H, D), np.float32).astype(dtype))

    def ints(self, *values: int, dtype: Any = np.int32) -> Any:
        return self.device.put(np.array(values, dtype))

    def call(self, function: str, **changed: Any) -> Any:
        return getattr(ops, function)(**{**self.arguments(function), **changed})

    def arguments(self, function: str) -> dict[str, Any]:
        rows, ints = self.rows, self.ints
        hn, nh, starts = (lambda: rows(H, N)), (lambda: rows(N, H)), (lambda: ints(0, 2, N))
        return {
            "merge_attn_states": lambda: dict(prefix=rows(), prefix_lse=hn(), suffix=rows(), suffix_lse=hn(), out=rows(),
                                              out_lse=hn()),
            "merge_state_in_place": lambda: dict(v=rows(), s=nh(), v_other=rows(), s_other=nh()),
            "merge_attn_stats": lambda: dict(prefix=rows(), prefix_stats=rows(N, H, 2), suffix=rows(), suffix_stats=rows(N, H, 2),
                                             softmax_scale=0.1, out=rows()),
            "merge_states": lambda: dict(v=rows(N, 3, H, D), s=rows(N, 3, H), out=rows()),
            "merge_states_ragged": lambda: dict(v=rows(7, H, D), s=rows(7, H), indptr=ints(0, 1, 2, 3, 4, 7), out=rows()),
            "merge_states_list": lambda: dict(vs=[rows(), rows()], ss=[nh(), nh()], out=rows()),
            "combine_split_kv": lambda: dict(partial=rows(2, 1, N, H, D), partial_lse=rows(2, 1, N, H), out=rows(1, N, H, D)),
            "fixup_zero_kv_rows": lambda: dict(out=rows(), lse=hn(), kv_lens=ints(0, 1), cu_seqlens=starts()),
            "mask_empty_context_lse": lambda: dict(lse=hn(), query_start_loc=starts(), context_start_loc=starts()),
            "mask_empty_context": lambda: dict(out=rows(), lse=hn(), query_start_loc=starts(), context_start_loc=starts()),
            "fill_pad_rows": lambda: dict(out=rows(), live_rows=2, lse=hn()),
            "clear_pad_flags": lambda: dict(flags=ints(1, 1, 1, dtype=np.bool_), live_rows=1),
            "mark_prefilling": lambda: dict(flags=ints(1, 1, dtype=np.bool_), computed=ints(1, 2), prompt=ints(2, 2), live_rows=2),
            "expand_context_lens": lambda: dict(buffer=ints(*range(9)), seq_lens=ints(1, 2, 3), num_decodes=3, max_decode_len=3),
            "quantize_fp8_static": lambda: dict(x=rows(N, D), scale=rows(1)),
            "rmsnorm": lambda: dict(x=rows(N, D), weight=rows(D)),
            "softmax": lambda: dict(x=rows(N, D)),
        }[function]()


FUNCTIONS = [name for name in ops.__all__ if hasattr(getattr(ops, name), "bind")]
"""Every function of `mlafix.ops` that launches a kernel of its own."""
