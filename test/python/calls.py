"""Calls of every public function: valid ones, which tests change, bind or capture; wrong ones with their messages; and
all ways to merge K states, with one interface."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import pytest

from devices import Device
from mlafix import ArgumentError, ops
from mlafix.compat import flash_attn, flashinfer, sglang, vllm
from numerics import BF16, E4M3, F16, F32, poison
from states import lay_out

N, H, D = 5, 4, 64


class Right:
    """Makes valid arguments for every kernel on a device. A test may then replace one of them. Rows are ones, and
    outputs are filled with sevens."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def rows(self, *shape: int, dtype: Any = F32, value: float = 1) -> Any:
        return self.device.put(np.full(shape or (N, H, D), value, np.float32).astype(dtype))

    def out(self, *shape: int, dtype: Any = F32) -> Any:
        return self.rows(*shape, dtype=dtype, value=7)

    def ints(self, *values: int, dtype: Any = np.int32) -> Any:
        return self.device.put(np.array(values, dtype))

    def call(self, kernel: str, **changed: Any) -> Any:
        return getattr(ops, FUNCTION_OF.get(kernel, kernel))(**{**self.arguments(kernel), **changed})

    def arguments(self, kernel: str) -> dict[str, Any]:
        """Returns arguments with which a kernel's public function launches this kernel, including outputs."""
        return CALLS[kernel](self)

    def refuses(self, kernel: str, message: str, **changed: Any) -> None:
        """Asserts that a call with changed arguments raises an ArgumentError that matches, and that the valid call still
        runs."""
        with pytest.raises(ArgumentError, match=message):
            self.call(kernel, **changed)
        self.call(kernel)

    def merge(self, **more: Any) -> dict[str, Any]:
        lses = {name: self.rows(H, N) for name in ("prefix_lse", "suffix_lse")}
        return dict(prefix=self.rows(), suffix=self.rows(), **lses, **{"out": self.out(), "out_lse": self.out(H, N), **more})

    def fixup_merge(self, **more: Any) -> dict[str, Any]:
        lses = {name: self.rows(N, H) for name in ("prefix_lse", "suffix_lse")}
        return dict(prefix=self.rows(), suffix=self.rows(), **lses, kv_lens=self.ints(0, 1), cu_seqlens=self.ints(0, 2, N),
                    **{"out": self.out(), **more})

    def record(self, *shape: int) -> dict[str, Any]:
        """Returns the arrays to which the kernels `check_*` write what they find."""
        return dict(record=self.device.put(np.zeros(shape, np.int64)), flags=self.ints(*[0] * 16))

    def offsets(self) -> dict[str, Any]:
        return dict(query_start_loc=self.ints(0, 2, N), context_start_loc=self.ints(0, 0, 3))


CALLS: dict[str, Callable[[Right], dict[str, Any]]] = {
    "merge_attn_states": lambda r: r.merge(),
    "merge_attn_states_fp8": lambda r: r.merge(out=r.out(dtype=E4M3), out_format=ops.Fp8(r.rows(1))),
    "merge_attn_states_copy": lambda r: r.merge(context_rows=3, copy_past_context=True),
    "merge_attn_states_copy_fp8": lambda r: r.merge(
        out=r.out(dtype=E4M3), out_format=ops.Fp8(r.rows(1)), context_rows=3, copy_past_context=True),
    "merge_attn_states_groups": lambda r: r.merge(
        out=r.out(dtype=E4M3), out_format=ops.Fp8Groups(r.out(N, H, 1), power_of_two=True, quantize_from="output")),
    "merge_attn_states_nvfp4": lambda r: r.merge(
        out=r.out(N, H, D // 2, dtype=np.uint8), out_format=ops.NvFp4(r.out(128, H * D // 16, dtype=np.uint8), 2.0, tiles="128x4", first_row=9)),
    "merge_attn_states_mxfp4": lambda r: r.merge(
        out=r.out(N, H, D // 2, dtype=np.uint8), out_format=ops.MxFp4(r.out(128, H * D // 32, dtype=np.uint8), rounding="ceil", tiles="128x4")),
    "merge_attn_states_gated": lambda r: r.merge(gate=r.rows(N, H)),
    "merge_state_in_place": lambda r: dict(v=r.rows(), s=r.rows(N, H), v_other=r.rows(), s_other=r.rows(N, H),
                                           mask=r.ints(1, 0, 1, 0, 1, dtype=np.uint8)),
    "merge_attn_states_bases": lambda r: r.merge(base=("2", "e", "e")),
    "merge_attn_states_copy_bases": lambda r: r.merge(context_rows=3, copy_past_context=True, base=("e", "e", "2")),
    "merge_state_in_place_bases": lambda r: dict(v=r.rows(), s=r.rows(N, H), v_other=r.rows(), s_other=r.rows(N, H), base=("e", "2")),
    "merge_states_bases": lambda r: dict(v=r.rows(N, 3, H, D), s=r.rows(N, 3, H), out=r.out(), base=("e", "2")),
    "merge_states_ragged_bases": lambda r: dict(
        v=r.rows(7, H, D), s=r.rows(7, H), indptr=r.ints(0, 1, 2, 3, 4, 7), out=r.out(), base=("e", "2")),
    "merge_states_list_bases": lambda r: dict(vs=[r.rows(), r.rows()], ss=[r.rows(N, H), r.rows(N, H)], out=r.out(), base=("e", "2")),
    "combine_split_kv_bases": lambda r: dict(
        partial=r.rows(2, 1, N, H, D), partial_lse=r.rows(2, 1, N, H), out=r.out(1, N, H, D), base=("e", "2")),
    "combine_split_kv_counted": lambda r: dict(
        partial=r.rows(2, 1, N, H, D), partial_lse=r.rows(2, 1, N, H), partial_sum=r.rows(2, 1, N, H), seq_lens=r.ints(17), tile_len=16,
        out=r.out(1, N, H, D)),
    "combine_split_kv_turned": lambda r: dict(
        partial=r.rows(2, 1, N, H, D), partial_lse=r.rows(2, 1, N, H), sinks=r.rows(H), rope=ops.Rope(r.ints(0, 1, 2, 3, 0)[None], r.rows(4, 16)),
        out=r.out(1, N, H, D)),
    "combine_split_kv_gated": lambda r: dict(
        partial=r.rows(2, 1, N, H, D), partial_lse=r.rows(2, 1, N, H), gate=r.rows(1, N, H, D), out=r.out(1, N, H, D)),
    "merge_attn_stats": lambda r: dict(prefix=r.rows(), prefix_stats=r.rows(N, H, 2), suffix=r.rows(),
                                       suffix_stats=r.rows(N, H, 2), softmax_scale=0.1, out=r.out()),
    "fixup_merge": lambda r: r.fixup_merge(),
    "fixup_merge_fp8": lambda r: r.fixup_merge(out=r.out(dtype=E4M3), out_format=ops.Fp8(r.rows(1))),
    "apply_sink": lambda r: dict(v=r.rows(), s=r.rows(N, H), sinks=r.rows(H), out=r.out()),
    "apply_sink_bases": lambda r: dict(v=r.rows(), s=r.rows(N, H), sinks=r.rows(H, dtype=BF16), out=r.out(), base=("2", "e")),
    "merge_states": lambda r: dict(v=r.rows(N, 3, H, D), s=r.rows(N, 3, H), out=r.out()),
    "merge_states_fp8": lambda r: dict(v=r.rows(N, 3, H, D), s=r.rows(N, 3, H), out=r.out(dtype=E4M3), out_format=ops.Fp8(r.rows(1))),
    "merge_states_ragged": lambda r: dict(v=r.rows(7, H, D), s=r.rows(7, H), indptr=r.ints(0, 1, 2, 3, 4, 7), out=r.out()),
    "merge_states_mapped": lambda r: dict(
        out=r.out(), parts=r.rows(7, H, D), lses=r.rows(7, H), indptr=r.ints(0, 2, 4, 7), part_map=r.ints(6, 5, 4, 3, 2, 1, 0),
        row_map=r.ints(4, 0, 2), sinks=r.rows(H)),
    "merge_states_mapped_sums": lambda r: dict(
        out=r.out(), parts=r.rows(7, H, D), lses=r.rows(7, H), part_sums=r.rows(7, H), indptr=r.ints(0, 2, 4, 7), row_map=r.ints(4, 0, 2)),
    "merge_states_mapped_groups": lambda r: dict(
        out=r.out(dtype=E4M3), parts=r.rows(7, H, D), lses=r.rows(7, H), indptr=r.ints(0, 2, 4, 7), row_map=r.ints(4, 0, 2), base=("2", "e"),
        out_format=ops.Fp8Groups(r.out(N, H, 1))),
    "merge_states_list": lambda r: dict(vs=[r.rows(), r.rows()], ss=[r.rows(N, H), r.rows(N, H)], out=r.out()),
    "combine_split_kv": lambda r: dict(partial=r.rows(2, 1, N, H, D), partial_lse=r.rows(2, 1, N, H), out=r.out(1, N, H, D)),
    "fixup_zero_kv_rows": lambda r: dict(out=r.out(), lse=r.out(H, N), kv_lens=r.ints(0, 1), cu_seqlens=r.ints(0, 2, N)),
    "mask_empty_context_lse": lambda r: dict(lse=r.out(H, N), **r.offsets()),
    "mask_empty_context": lambda r: dict(out=r.out(), lse=r.out(H, N), **r.offsets()),
    "fill_pad_rows": lambda r: dict(out=r.out(), live_rows=2, lse=r.out(H, N)),
    "blank_rows_without_indices": lambda r: dict(out=r.out(), indices=r.ints(*range(-2, 3))[:, None], lse=r.out(H, N)),
    "clear_pad_flags": lambda r: dict(flags=r.ints(1, 1, 1, dtype=np.bool_), live_rows=1),
    "mark_prefilling": lambda r: dict(flags=r.ints(1, 1, dtype=np.bool_), computed=r.ints(1, 2), prompt=r.ints(2, 2), live_rows=2),
    "expand_context_lens": lambda r: dict(buffer=r.ints(*range(9)), seq_lens=r.ints(1, 2, 3), num_decodes=3, max_decode_len=3),
    "quantize_fp8_static": lambda r: dict(x=r.rows(N, D), scale=r.rows(1), out=r.out(N, D, dtype=E4M3)),
    "quantize_groups": lambda r: dict(x=r.rows(), out_format=ops.Fp8Groups(r.out(N, H, 1)), out=r.out(dtype=E4M3)),
    "rmsnorm": lambda r: dict(x=r.rows(N, D), weight=r.rows(D), out=r.out(N, D)),
    "rmsnorm_of_sums": lambda r: dict(x=r.rows(), weight=r.rows(D), residual=r.out(), out_format=ops.Fp8Groups(r.out(N, H, 1)), out=r.out(dtype=E4M3)),
    "combine_experts": lambda r: dict(rows=r.rows(7, D), places=r.ints(*range(2, 2 + N))[:, None], weights=r.rows(N, 1), shared=r.rows(N, D), out=r.out(N, D)),
    "softmax": lambda r: dict(x=r.rows(N, D), out=r.out(N, D)),
    "mix_depth": lambda r: dict(prefix=r.rows(N, D), bank=r.rows(N, 2, D), score_weight=r.rows(D), out_weight=r.rows(D), snapshot=r.out(N, D),
                                out=r.out(N, D)),
    "zero_blocks": lambda r: dict(cache=r.out(), ids=r.ints(1, -1, 3)),
    "zero_blocks_of_shapes": lambda r: dict(cache=[r.out(), r.out(3, 2, D)], ids=r.ints(1, -1, 3)),
    "zero_blocks_behind": lambda r: dict(cache=r.out(), ids=r.ints(1, -1, 3), kept=r.ints(2, 0, 1)),
    "store_rows": lambda r: dict(cache=r.out(3, 2, H, D, dtype=E4M3), rows=r.rows(), slots=r.ints(5, -1, 0, 6, 3), out_format=ops.Fp8Groups(r.out(3, 2, H, 1))),
    "store_rows_as_they_are": lambda r: dict(cache=r.out(3, 2, H, D), rows=r.rows(), slots=r.ints(5, -1, 0, 6, 3)),
    "pad_metadata": lambda r: dict(seq_lens=r.ints(3, -1, 2), live_rows=2, cu_seqlens=r.ints(0, 1, 2, 9), slots=r.ints(5, 4, 3, dtype=np.int64),
                                   block_table=r.ints(1, 2, 3)[:, None]),
    "cumulate_lens": lambda r: dict(lens=r.ints(3, -1, 2), live_rows=2, out=r.ints(7, 7, 7, 7)),
    "lens_of_rank": lambda r: dict(seq_lens=r.ints(3, -1, 9), rank=1, ranks=2, out=r.ints(7, 7, 7)),
    "pages_of_rank": lambda r: dict(out=r.ints(7, 7)[:, None], token_table=r.ints(8, 9, 10, 11)[None], requests=r.ints(0, 3),
                                    local_lens=r.ints(2, 1), rank=1, ranks=2, page_size=1),
    "pack_rows": lambda r: dict(x=r.rows(), starts=r.ints(0, 2, N), length=2, pad=3.0, out=r.out(2, 2, H, D)),
    "unpack_rows": lambda r: dict(padded=r.rows(2, 2, H, D), starts=r.ints(0, 2, 4), out=r.out()),
    "visible_keys": lambda r: dict(out=r.ints(7, 7, 7, 7, 7), lens=r.ints(9, 1), cu_seqlens=r.ints(0, 2, 4)),
    "check_states": lambda r: dict(out=r.rows(), lse=r.rows(H, N), lens=r.ints(1, 0, 3, 2, 1), **r.record(N, H)),
    "check_merge": lambda r: dict(out=r.rows(), lse=r.rows(H, N), sides=[r.rows(), r.rows()], side_lses=[r.rows(H, N), r.rows(H, N)], **r.record(N, H)),
    "check_attention": lambda r: dict(out=r.rows(), lse=r.rows(H, N), q=r.rows(), k=r.rows(3, 2, 1, D), v=r.rows(3, 2, 1, D), lens=r.ints(3, 0),
                                      cu_seqlens=r.ints(0, 2, N), block_table=r.ints(1, 2, 0, 0).reshape(2, 2), scale=0.1, **r.record(N, H)),
    "check_blocks": lambda r: dict(cache=r.rows(3, 2, D, value=np.nan), block_table=r.ints(1, 2, 0, 0).reshape(2, 2), lens=r.ints(3, 1), **r.record(2, 2)),
    "check_metadata": lambda r: dict(lens=r.ints(3, -1, 2), slots=r.ints(1, -1, 9, dtype=np.int64), pages=4, page_size=2, **r.record(3, 1)),
    "apply_rope": lambda r: dict(x=r.out(), positions=r.ints(0, 1, 2, 3, 0), table=r.rows(4, 2, D // 2)),
}
"""For each kernel, a function that makes valid arguments of the public function that launches the kernel."""

FUNCTION_OF = {kernel: max((name for name in ops.__all__ if kernel.startswith(name)), key=len) for kernel in CALLS}
"""For each kernel, the public function that launches it. If a kernel is for a special case of this function, the
kernel's name begins with the function's name."""


def arrays(arguments: dict[str, Any]) -> list[Any]:
    """Returns the arrays among the arguments of a call, with those of lists and the scales of a format."""
    each = [one for value in arguments.values() for one in (value if isinstance(value, list) else [value, getattr(value, "scales", None)])]
    return [one for one in each if hasattr(one, "shape")]


FUNCTIONS = [name for name in ops.__all__ if hasattr(getattr(ops, name), "bind")]
"""Every function of `mlafix.ops` that launches its own kernel."""

WRONG: list[tuple[str, Callable[[Right], dict[str, Any]], str]] = [
    ("check_states", lambda r: {"record": r.ints(0)}, 'argument "record": expected .*got'),
    ("check_states", lambda r: {"lens": r.ints(1, 2)}, 'argument "lens": expected size 5 .*got 2'),
    ("visible_keys", lambda r: {"cu_seqlens": r.ints(0, 2, 4, 5)}, 'argument "cu_seqlens": expected at most 3 entries .*got 4'),
    ("check_merge", lambda r: {"side_lses": [r.rows(H, N)]}, 'argument "side_lses": expected as many arrays as sides, 2, got 1'),
    ("check_attention", lambda r: {"k": r.rows(3, 2, 3, D)}, 'argument "k": expected a size of dim 2 that divides the 4 heads of out, got 3'),
    ("check_attention", lambda r: {"step_size": 0}, 'argument "step_size": expected 1 or more, got 0'),
    ("check_states", lambda r: {"seam": -1}, 'argument "seam": expected a number from 0'),
    ("check_states", lambda r: {"live_rows": -1}, 'argument "live_rows": expected a value from 0 to 5.*got -1'),
    ("check_states", lambda r: {"live_rows": N + 1}, 'argument "live_rows": expected a value from 0 to 5.*got 6'),
    ("check_merge", lambda r: {"live_rows": -1}, 'argument "live_rows": expected a value from 0 to 5.*got -1'),
    ("check_merge", lambda r: {"live_rows": N + 1}, 'argument "live_rows": expected a value from 0 to 5.*got 6'),
    ("check_attention", lambda r: {"live_rows": N + 1}, 'argument "live_rows": expected a value from 0 to 5.*got 6'),
    ("check_blocks", lambda r: {"live_rows": 3}, 'argument "live_rows": expected a value from 0 to 2.*got 3'),
    ("check_states", lambda r: r.record(N - 1, H), 'argument "(record|out)": expected size .*got'),
    ("check_merge", lambda r: {"sides": [], "side_lses": []}, 'argument "sides": expected 1 to 8 arrays, got 0'),
    ("check_blocks", lambda r: {"cache": r.rows(3, D)}, 'argument "cache": expected 3 dims'),
    ("check_metadata", lambda r: {"page_size": 0}, 'argument "page_size": expected 1 or more, got 0'),
    ("check_metadata", lambda r: {"pages": -1}, 'argument "pages": expected 0 or more, got -1'),
    ("check_attention", lambda r: {"most_keys": -1}, 'argument "most_keys": expected 0 or more, got -1'),
    ("merge_attn_states", lambda r: {"suffix": r.rows(N + 1, H, D)}, 'argument "suffix": expected size 5 .*got 6'),
    ("merge_attn_states", lambda r: {"suffix": r.rows(dtype=F16)}, 'argument "suffix": expected dtype f32.*got f16'),
    ("merge_attn_states", lambda r: {"out": r.rows(N, H)}, 'argument "out": expected 3 dims, got 2'),
    ("merge_attn_states", lambda r: {"out": r.rows(N, H, D + 1)}, 'argument "(out|prefix)": expected size .*got'),
    ("merge_attn_states", lambda r: {"out_lse": r.rows(N, H)}, 'argument "out_lse": expected size 4 .*got 5'),
    ("merge_attn_states", lambda r: {"prefix_lse": r.rows(H, N, dtype=BF16)}, 'argument "prefix_lse": expected dtype f32.*got bf16'),
    ("merge_attn_states", lambda r: {"context_rows": N + 1}, 'argument "context_rows": expected a value from 0 to 5.*got 6'),
    ("merge_attn_states", lambda r: {"context_rows": -1}, 'argument "context_rows": expected a value from 0 to 5.*got -1'),
    ("merge_attn_states", lambda r: {"context_rows": r.ints(3)}, 'argument "context_rows": expected an integer.*got'),
    ("merge_attn_states", lambda r: {"context_rows": 2.5}, 'argument "context_rows": expected an integer.*got'),
    ("merge_attn_states", lambda r: {"lse_layout": "hN"}, "argument \"lse_layout\": expected 'hn' .* got 'hN'"),
    ("merge_attn_states", lambda r: {"base": 2}, "argument \"base\": expected 'e' or '2', or a tuple of them for .*, got 2"),
    ("merge_attn_states", lambda r: {"base": ("10", "e", "e")}, "argument \"base\": expected 'e' or '2', got '10'"),
    ("merge_attn_states", lambda r: {"out": r.rows(dtype=E4M3)}, 'expected dtype f8e4m3fn, as in argument "out", got f32'),
    ("merge_attn_states", lambda r: {"out_format": ops.Fp8(r.rows(2)), "out": r.rows(dtype=E4M3)}, 'argument "Fp8.scale": expected size 1 .*got 2'),
    ("merge_attn_states", lambda r: {"out_format": ops.Fp8(r.rows(1))}, 'argument "out": expected dtype f8e4m3fn.*got f32'),
    ("merge_attn_states", lambda r: {"stream": "main"}, 'argument "stream": expected .*got'),
    ("merge_state_in_place", lambda r: {"mask": r.ints(1, 0, 1)}, 'argument "mask": expected dtype u8.*got i32'),
    ("merge_state_in_place", lambda r: {"mask": r.ints(1, 0, 1, dtype=np.bool_)}, 'argument "mask": expected size 5 .*got 3'),
    ("merge_state_in_place", lambda r: {"v_other": None}, 'argument "v_other": expected .*got None'),
    ("merge_state_in_place", lambda r: {name: r.rows(dtype=E4M3) for name in ("v", "v_other")}, 'argument "v": expected dtype bf16 or f16 or f32, got f8e4m3fn'),
    ("merge_attn_stats", lambda r: {"prefix_stats": r.rows(N, H)}, 'argument "prefix_stats": expected 3 dims, got 2'),
    ("merge_attn_stats", lambda r: {"prefix_stats": r.rows(N, H, 3)}, 'argument "prefix_stats": expected size 2 .*got 3'),
    ("merge_attn_stats", lambda r: {"softmax_scale": "x"}, 'argument "softmax_scale": expected a number, got str'),
    ("merge_states", lambda r: {"v": r.rows(N, H, D)}, 'argument "v": expected 4 dims .*got 3'),
    ("merge_states", lambda r: {"s": r.rows(N, 2, H)}, 'argument "s": expected size 3 .*got 2'),
    ("merge_states_ragged", lambda r: {"indptr": r.ints(0, 7)}, 'argument "indptr": expected 6 entries .*got 2'),
    ("merge_states_ragged", lambda r: {"indptr": r.ints(0, 1, 2, 3, 4, 7, dtype=np.int64)}, 'argument "indptr": expected dtype i32.*got i64'),
    ("merge_states_ragged", lambda r: {"indptr": r.ints()}, 'argument "indptr": expected at least 1 entry, got 0'),
    ("merge_states_mapped", lambda r: {"out": None}, 'argument "out": expected .*got None'),
    ("merge_states_mapped", lambda r: {"parts": r.rows(7, H, D + 1)}, 'argument "(out|parts)": expected size .*got'),
    ("merge_states_mapped", lambda r: {"part_map": r.ints(0, dtype=np.int64)}, 'argument "part_map": expected dtype i32.*got i64'),
    ("merge_states_mapped", lambda r: {"row_map": r.rows(3)}, 'argument "row_map": expected dtype i32.*got f32'),
    ("merge_states_mapped", lambda r: {"min_parts": 1.5}, 'argument "min_parts": expected an integer.*got'),
    ("merge_states_mapped", lambda r: {"base": ("e", 2)}, "argument \"base\": expected 'e' or '2', got 2"),
    ("merge_states_list", lambda r: {"vs": []}, 'argument "vs": expected 1 to 8 arrays, got 0'),
    ("merge_states_list", lambda r: {"vs": [r.rows()] * 9, "ss": [r.rows(N, H)] * 9}, 'argument "vs": expected 1 to 8 arrays, got 9'),
    ("merge_states_list", lambda r: {"ss": [r.rows(N, H)]}, 'argument "ss": expected 2 arrays, as many as vs, got 1'),
    ("merge_states_list", lambda r: {"vs": [r.rows(), r.rows(N, H, D + 1)]}, r'argument "vs\[1\]": expected size 64 .*got 65'),
    ("combine_split_kv", lambda r: {"partial": r.rows()}, 'argument "partial": expected 5 dims .*got 3'),
    ("combine_split_kv", lambda r: {"out": None, "out_dtype": "int7"}, 'argument "out_dtype": expected one of .*got \'int7\''),
    ("fixup_zero_kv_rows", lambda r: {"kv_lens": r.ints(0, 1, dtype=np.int64)}, 'argument "kv_lens": expected dtype i32.*got i64'),
    ("fixup_zero_kv_rows", lambda r: {"lse": r.rows(N, H)}, 'argument "lse": expected size 4 .*got 5'),
    ("mask_empty_context_lse", lambda r: {"context_start_loc": r.ints(0)}, 'argument "context_start_loc": expected size 3 .*got 1'),
    ("mask_empty_context", lambda r: {"out": r.rows(N, H, D, dtype=np.int32)}, 'argument "out": expected dtype bf16 or f16 or f32, got i32'),
    ("zero_blocks_behind", lambda r: {"kept": r.ints(1, 2)}, 'argument "kept": expected size 3 .*got 2'),
    ("zero_blocks_behind", lambda r: {"kept": r.rows(3)}, 'argument "kept": expected dtype i64 or i32, got float32'),
    ("zero_blocks_behind", lambda r: {"cache": r.out(N, D)}, 'argument "cache": expected at least 3 dims'),
    ("store_rows", lambda r: {"slots": r.rows(N)}, 'argument "slots": expected dtype i64 or i32, got float32'),
    ("store_rows", lambda r: {"slots": r.ints(1, 2)}, 'argument "slots": expected size 5 .*got 2'),
    ("store_rows", lambda r: {"cache": r.out(6, H, D, dtype=E4M3)}, 'argument "cache": expected 4 dims .*got 3'),
    ("store_rows_as_they_are", lambda r: {"cache": r.out(3, 2, H, D, dtype=np.int32)}, 'argument "cache": expected dtype bf16 or f16 or f32, got int32'),
    ("store_rows_as_they_are", lambda r: {"rows": r.rows(N, H, D + 1)}, 'argument "rows": expected size .*got 65'),
    ("rmsnorm_of_sums", lambda r: {"out_format": None, "out": r.out(dtype=np.int32)}, 'argument "out": expected dtype bf16 or f16 or f32, got int32'),
    ("rmsnorm_of_sums", lambda r: {"residual": r.rows(N, D)}, 'argument "residual": expected 3 dims.*got 2'),
    ("rmsnorm_of_sums", lambda r: {"out_format": ops.Fp8Groups(r.ints(*range(N))[:, None])}, 'argument "Fp8Groups.scales": expected heads of 128, 256 or 512 elements for scales of int32'),
    ("combine_experts", lambda r: {"weights": r.ints(1, 2)}, 'argument "weights": expected dtype bf16 or f16 or f32, got int32'),
    ("combine_experts", lambda r: {"places": r.rows(N, 1)}, 'argument "places": expected dtype i64 or i32, got float32'),
    ("combine_experts", lambda r: {"shared": r.rows(N, D + 1)}, 'argument "shared": expected size 64'),
    ("blank_rows_without_indices", lambda r: {"indices": r.rows(N, 4)}, 'argument "indices": expected dtype i64 or i32, got float32'),
    ("blank_rows_without_indices", lambda r: {"indices": r.ints(*[0] * (N * 8193)).reshape(N, 8193)}, '"indices": expected at most 8192 for each token .dim 1., got 8193'),
    ("blank_rows_without_indices", lambda r: {"indices": r.ints(1, 2)}, 'argument "indices": expected 2 dims'),
    ("fill_pad_rows", lambda r: {"live_rows": 6}, 'argument "live_rows": expected a value from 0 to 5.*got 6'),
    ("expand_context_lens", lambda r: {"live_rows": -1}, 'argument "live_rows": expected a value from 0 to 3.*got -1'),
    ("expand_context_lens", lambda r: {"live_rows": 4}, 'argument "live_rows": expected a value from 0 to 3.*got 4'),
    ("pad_metadata", lambda r: {"live_rows": -1}, 'argument "live_rows": expected a value from 0 to 3.*got -1'),
    ("pad_metadata", lambda r: {"live_rows": 4}, 'argument "live_rows": expected a value from 0 to 3.*got 4'),
    ("pad_metadata", lambda r: {"live_tokens": -1}, 'argument "live_tokens": expected 0 or more, got -1'),
    ("pad_metadata", lambda r: {"live_tokens": 4}, 'argument "live_tokens": expected a value from 0 to 3, the number of slots, got 4'),
    ("pad_metadata", lambda r: {"live_tokens": "2"}, 'argument "live_tokens": expected an integer, got \'2\''),
    ("cumulate_lens", lambda r: {"live_rows": -1}, 'argument "live_rows": expected a value from 0 to 3.*got -1'),
    ("cumulate_lens", lambda r: {"live_rows": 4}, 'argument "live_rows": expected a value from 0 to 3.*got 4'),
    ("lens_of_rank", lambda r: {"live_rows": -1}, 'argument "live_rows": expected a value from 0 to 3.*got -1'),
    ("lens_of_rank", lambda r: {"live_rows": 4}, 'argument "live_rows": expected a value from 0 to 3.*got 4'),
    ("pages_of_rank", lambda r: {"live_rows": -1}, 'argument "live_rows": expected a value from 0 to 2.*got -1'),
    ("pages_of_rank", lambda r: {"live_rows": 3}, 'argument "live_rows": expected a value from 0 to 2.*got 3'),
    ("check_metadata", lambda r: {"live_rows": -1}, 'argument "live_rows": expected a value from 0 to 3.*got -1'),
    ("check_metadata", lambda r: {"live_rows": 4}, 'argument "live_rows": expected a value from 0 to 3.*got 4'),
    ("fill_pad_rows", lambda r: {"live_rows": r.ints(2, dtype=np.int64)}, 'argument "live_rows": expected dtype i32.*got i64'),
    ("expand_context_lens", lambda r: {"buffer": r.ints(*range(18))[::2]}, 'argument "buffer": expected contiguous memory'),
    ("merge_attn_states", lambda r: {"prefix": None}, 'argument "prefix": expected an array, got NoneType'),
    ("merge_attn_states", lambda r: {"prefix": [[[1.0]]], "context_rows": 1}, 'argument "prefix": expected .*got list'),
    ("merge_states_ragged", lambda r: {"indptr": [0, 1]}, 'argument "indptr": expected an array, got list'),
    ("merge_states", lambda r: {"v": 3.0}, 'argument "v": expected an array, got float'),
    ("softmax", lambda r: {"x": "x", "out": None}, 'argument "x": expected an array, got str'),
    ("fill_pad_rows", lambda r: {"live_rows": "2"}, 'argument "live_rows": expected .*got str'),
    ("clear_pad_flags", lambda r: {"flags": r.ints(1, 1)}, 'argument "flags": expected dtype bool.*got i32'),
    ("mark_prefilling", lambda r: {"prompt": r.ints(1, 1, dtype=np.int64)}, 'argument "prompt": expected dtype i32.*got i64'),
    ("expand_context_lens", lambda r: {"seq_lens": r.rows(3)}, 'argument "seq_lens": expected dtype i32.*got f32'),
    ("expand_context_lens", lambda r: {"num_decodes": 4}, 'argument "buffer": expected room for 4 x 3 = 12 lengths, got 9'),
    ("quantize_fp8_static", lambda r: {"x": r.rows(D), "out": None}, r'argument "x": expected 2 dims \[n, D\], got 1'),
    ("quantize_fp8_static", lambda r: {"out": r.rows(N, D)}, 'argument "out": expected dtype f8e4m3fn.*got f32'),
    ("rmsnorm", lambda r: {"out": r.rows(N + 1, D)}, 'argument "x": expected size 6 .*"out".*got 5'),
    ("rmsnorm", lambda r: {"weight": r.rows(D + 1)}, 'argument "weight": expected size 64 .*got 65'),
    ("softmax", lambda r: {"out": r.rows(N, D, dtype=BF16)}, 'argument "(x|out)": expected dtype .*got'),
    ("softmax", lambda r: {"scale": -1.0}, 'argument "scale": expected 0 or more, got -1.0'),
    ("softmax", lambda r: {"scale": math.nan}, 'argument "scale": expected 0 or more, got nan'),
    ("softmax", lambda r: {"x": r.rows(N, D, dtype=np.float64), "out": None}, 'argument "x": expected dtype bf16 or f16 or f32, got float64'),
    ("merge_attn_states", lambda r: {"prefix": r.rows(dtype=np.float64), "out": None}, 'argument "prefix": expected dtype bf16 or f16 or f32, got float64'),
    ("merge_attn_states", lambda r: {"out_format": "fp8"}, 'argument "out_format": expected an instance of Fp8, .*got str'),
    ("merge_attn_stats", lambda r: {"softmax_scale": 0.0}, 'argument "softmax_scale": expected more than 0, got 0.0'),
    ("merge_states", lambda r: {"out_format": ops.Fp8}, 'argument "out_format": expected an instance of Fp8, .*got type'),
    ("merge_states", lambda r: {"v": r.rows(N, 3, H, D, dtype=np.int32), "out": None}, 'argument "v": expected dtype bf16 or f16 or f32, got int32'),
    ("merge_states_ragged", lambda r: {"out_format": r.rows(N, H, 1)}, 'argument "out_format": expected an instance of Fp8, .*got'),
    ("merge_states_list", lambda r: {"vs": None}, 'argument "vs": expected a sequence of arrays, got NoneType'),
    ("merge_states_list", lambda r: {"ss": (lse for lse in ())}, 'argument "ss": expected a sequence of arrays, got generator'),
    ("merge_states_list", lambda r: {"out_format": r.rows(N, H, 1)}, 'argument "out_format": expected an instance of Fp8, .*got'),
    ("combine_split_kv", lambda r: {"out_format": r.rows(N, H, 1)}, 'argument "out_format": expected an instance of Fp8, .*got'),
    ("expand_context_lens", lambda r: {"num_decodes": None}, 'argument "num_decodes": expected an integer, got None'),
    ("expand_context_lens", lambda r: {"max_decode_len": 1.5}, 'argument "max_decode_len": expected an integer, got 1.5'),
    ("expand_context_lens", lambda r: {"buffer": r.rows(9)}, 'argument "buffer": expected dtype i32.*got f32'),
]
"""A kernel of CALLS, changes of its arguments that make the call wrong, and the text of the ArgumentError."""

# -- All ways to merge K states -----------------------------------------------------------------------------------------------------

Result = tuple[np.ndarray, np.ndarray]
Run = Callable[[Device, np.ndarray, np.ndarray, str, str], Result]


@dataclass(frozen=True)
class Variant:
    """A way to merge K states. `run(device, v [K, n, H, D], s [K, n, H], base, layout)` returns out [n, H, D] and lse
    [n, H]."""

    name: str
    run: Run
    counts: tuple[int, ...]
    bases: tuple[str, ...] = ("e", "2")

    def __repr__(self) -> str:
        return self.name


def _put(device: Device, array: np.ndarray, layout: str) -> Any:
    return device.put(lay_out(array, layout))


def _outputs(device: Device, v: np.ndarray, layout: str, transposed: bool = False) -> tuple[Any, Any]:
    shape = v.shape[-3:]
    rows = shape[1::-1] if transposed else shape[:2]
    return _put(device, poison(shape, v.dtype), layout), _put(device, poison(rows, F32), layout)


def _merge(lse_layout: str) -> Run:
    def run(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
        turn = (lambda x: x.T) if lse_layout == "hn" else (lambda x: x)
        out, lse = _outputs(device, v, layout, lse_layout == "hn")
        inputs = [_put(device, x, layout) for x in (v[0], turn(s[0]), v[1], turn(s[1]))]
        got = ops.merge_attn_states(*inputs, out=out, out_lse=lse, lse_layout=lse_layout, base=base)  # type: ignore[arg-type]
        assert got[0] is out and got[1] is lse
        return device.get(out), turn(device.get(lse))

    return run


def _merge_onto(side: int) -> Run:
    """Returns a `run` that merges in place: the output is the input of the given side (N11)."""

    def run(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
        vs = [_put(device, x, layout) for x in v]
        ss = [_put(device, np.ascontiguousarray(x.T), layout) for x in s]
        ops.merge_attn_states(vs[0], ss[0], vs[1], ss[1], out=vs[side], out_lse=ss[side], base=base)  # type: ignore[arg-type]
        return device.get(vs[side]), device.get(ss[side]).T

    return run


def _in_place(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    a, b = (_put(device, x, layout) for x in v)
    sa, sb = (_put(device, x, layout) for x in s)
    ops.merge_state_in_place(a, sa, b, sb, base=base)  # type: ignore[arg-type]
    return device.get(a), device.get(sa)


def _dense(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    out, lse = _outputs(device, v, layout)
    ops.merge_states(_put(device, v.transpose(1, 0, 2, 3), layout), _put(device, s.transpose(1, 0, 2), layout), out=out,
                     out_lse=lse, base=base)  # type: ignore[arg-type]
    return device.get(out), device.get(lse)


def _ragged(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    k, n, heads, dim = v.shape
    out, lse = _outputs(device, v, layout)
    flat_v = v.transpose(1, 0, 2, 3).reshape(n * k, heads, dim)
    flat_s = s.transpose(1, 0, 2).reshape(n * k, heads)
    indptr = device.put(np.arange(n + 1, dtype=np.int32) * k)
    ops.merge_states_ragged(_put(device, flat_v, layout), _put(device, flat_s, layout), indptr, out=out, out_lse=lse,
                            base=base)  # type: ignore[arg-type]
    return device.get(out), device.get(lse)


def _mapped(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    """Merges through a map of parts and a map of rows, each in reverse order."""
    k, n, heads, dim = v.shape
    out, lse = _outputs(device, v, layout)
    ints = [device.put(x.astype(np.int32)) for x in (np.arange(n + 1) * k, np.arange(n * k).reshape(n, k)[::-1].ravel(),
                                                     np.arange(n)[::-1])]
    parts = _put(device, v.transpose(1, 0, 2, 3).reshape(n * k, heads, dim), layout)
    ops.merge_states_mapped(out, parts, _put(device, s.transpose(1, 0, 2).reshape(n * k, heads), layout), *ints, out_lse=lse,
                            base=base)  # type: ignore[arg-type]
    return device.get(out), device.get(lse)


def _list(lse_layout: str) -> Run:
    def run(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
        turn = (lambda x: np.ascontiguousarray(x.T)) if lse_layout == "hn" else (lambda x: x)
        out, lse = _outputs(device, v, layout, lse_layout == "hn")
        ops.merge_states_list([_put(device, x, layout) for x in v], [_put(device, turn(x), layout) for x in s], out=out,
                              out_lse=lse, lse_layout=lse_layout, base=base)  # type: ignore[arg-type]
        return device.get(out), turn(device.get(lse))

    return run


def _split(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    out, lse = _outputs(device, v, layout)
    ops.combine_split_kv(_put(device, v[:, None], layout), _put(device, s[:, None], layout), out=out[None], out_lse=lse[None],
                         base=base)  # type: ignore[arg-type]
    return device.get(out), device.get(lse)


def _vllm(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    out, lse = _outputs(device, v, layout, True)
    inputs = [_put(device, x, layout) for x in (v[0], s[0].T, v[1], s[1].T)]
    assert vllm.merge_attn_states(out, *inputs, lse) is None  # type: ignore[func-returns-value]
    return device.get(out), device.get(lse).T


def _plain(function: Callable[..., Any]) -> Run:
    """Returns a `run` of a function that takes two states and returns a new one."""

    def run(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
        out, lse = function(*(_put(device, x, layout) for x in (v[0], s[0], v[1], s[1])))
        return device.get(out), device.get(lse)

    return run


def _flash_attn(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    lse = np.ascontiguousarray(s[:, None].swapaxes(2, 3))  # [S, B, H, L], passed as its transposed view
    out, got = flash_attn.flash_attn_combine(_put(device, v[:, None], layout), device.put(lse.swapaxes(2, 3)))
    return device.get(out)[0], device.get(got)[0]


PAIR = (2,)
MANY = (1, 2, 3, 5)
VARIANTS = [
    Variant("merge_attn_states-hn", _merge("hn"), PAIR),
    Variant("merge_attn_states-nh", _merge("nh"), PAIR),
    Variant("merge_attn_states-onto-prefix", _merge_onto(0), PAIR),
    Variant("merge_attn_states-onto-suffix", _merge_onto(1), PAIR),
    Variant("merge_state_in_place", _in_place, PAIR),
    Variant("merge_states", _dense, (*MANY, 11)),
    Variant("merge_states_ragged", _ragged, (*MANY, 11)),
    Variant("merge_states_mapped", _mapped, (*MANY, 11)),
    Variant("merge_states_list-nh", _list("nh"), (*MANY, 8)),
    Variant("merge_states_list-hn", _list("hn"), (3,)),
    Variant("combine_split_kv", _split, (*MANY, 11)),
    Variant("vllm.merge_attn_states", _vllm, PAIR, bases=("e",)),
    Variant("sglang.merge_state_v2", _plain(sglang.merge_state_v2), PAIR, bases=("e",)),
    Variant("sglang.merge_state_v1", _plain(sglang.merge_state_v1), PAIR, bases=("2",)),
    Variant("flashinfer.merge_state", _plain(flashinfer.merge_state), PAIR, bases=("2",)),
    Variant("flash_attn.flash_attn_combine", _flash_attn, MANY, bases=("e",)),
]
BASES = {"e": np.e, "2": 2.0}
