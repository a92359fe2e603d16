"""The calls of `mlafix.ops` that a wheel serves without a compiler, with any number of heads: one for each code that they need.

A call here has arrays of one token and four heads. `requests` is what `mlafix.compile_keys` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from mlafix import ops

H = 4
DIMS = (64, 80, 96, 112, 128, 192, 256, 512, 576)
DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16), "f32": np.dtype(np.float32)}
E8M0, E4M3 = np.dtype(ml_dtypes.float8_e8m0fnu), np.dtype(ml_dtypes.float8_e4m3fn)

Request = tuple[Callable[..., Any], dict[str, Any]]


FAST = (64, 128, 256, 512)
"""Lengths of rows of most models."""
FORMATTED = (128, 512)
"""Lengths of rows whose results may have a format."""
BASES = ("e", "2")


def f32(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def states(dim: int, dtype: Any) -> dict[str, Callable[..., Request]]:
    """Each way to merge states of rows of this length, as a function of further arguments."""

    def rows(*lead: int, of: Any = dtype) -> np.ndarray:
        return np.zeros((*lead, H, dim), of)

    two = {"prefix": rows(1), "prefix_lse": f32(H, 1), "suffix": rows(1), "suffix_lse": f32(H, 1)}

    def of(function: Callable[..., Any], **given: Any) -> Callable[..., Request]:
        return lambda **more: (function, {**given, **more})

    return {
        "merge_attn_states": of(ops.merge_attn_states, **two),
        "merge_attn_states, a copy past the context": of(ops.merge_attn_states, **two, context_rows=1, copy_past_context=True),
        "merge_states": of(ops.merge_states, v=rows(1, 3), s=f32(1, 3, H)),
        "merge_states_ragged": of(ops.merge_states_ragged, v=rows(3), s=f32(3, H), indptr=ints(0, 3)),
        "merge_states_list": of(ops.merge_states_list, vs=[rows(1), rows(1)], ss=[f32(1, H), f32(1, H)]),
        "combine_split_kv": of(ops.combine_split_kv, partial=rows(3, 1, 1), partial_lse=f32(3, 1, 1, H)),
        "merge_states_mapped": of(ops.merge_states_mapped, parts=rows(3), lses=f32(3, H), indptr=ints(0, 3)),
    }


def formats(dim: int) -> dict[str, Callable[..., Any]]:
    """Each format of rows of this length, as a function of the shape before them and the number of tokens."""
    found: dict[str, Callable[..., Any]] = {"Fp8": lambda *lead: ops.Fp8(1.0)}
    if dim % 128 == 0:
        found["Fp8Groups"] = lambda *lead: ops.Fp8Groups(f32(*lead, H, dim // 128))
        found["Fp8Groups, powers of two"] = lambda *lead: ops.Fp8Groups(f32(*lead, H, dim // 128), power_of_two=True)
    if dim % 32 == 0:
        found["MxFp8"] = lambda *lead: ops.MxFp8(np.zeros((*lead, H, dim // 32), np.uint8))
        found["MxFp4"] = lambda *lead: ops.MxFp4(np.zeros((*lead, H, dim // 32), np.uint8))
        found["MxFp8, tiles"] = lambda *lead: ops.MxFp8(np.zeros((128, -(-H * dim // 32 // 4) * 4), np.uint8), tiles="128x4")
        found["MxFp4, tiles"] = lambda *lead: ops.MxFp4(np.zeros((128, -(-H * dim // 32 // 4) * 4), np.uint8), tiles="128x4")
    if dim % 16 == 0:
        found["NvFp4"] = lambda *lead: ops.NvFp4(np.zeros((*lead, H, dim // 16), np.uint8), 1.0)
        found["NvFp4, tiles"] = lambda *lead: ops.NvFp4(np.zeros((128, -(-H * dim // 16 // 4) * 4), np.uint8), 1.0, tiles="128x4")
    return found


def merges(dim: int, name: str, base: str) -> Iterator[Request]:
    """Merges of states in one base, in the inputs' own dtype."""
    dtype = DTYPES[name]
    rows = np.zeros((1, H, dim), dtype)
    for call, make in states(dim, dtype).items():
        yield make(base=base, **({"out": rows.copy()} if call == "merge_states_mapped" else {}))
    yield ops.merge_state_in_place, {"v": rows.copy(), "s": f32(1, H), "v_other": rows, "s_other": f32(1, H), "base": base}


def splits(dim: int, name: str, parts: str, base: str) -> Iterator[Request]:
    """Merges of parts in another dtype than the result's, as splits of KV are."""
    made = states(dim, DTYPES[parts])
    yield made["combine_split_kv"](base=base, out_dtype=name)
    yield made["merge_states_mapped"](base=base, out=np.zeros((1, H, dim), DTYPES[name]))


def quantised(dim: int, name: str) -> Iterator[Request]:
    """Merges in base e whose result has a format, and rows that get one."""
    dtype = DTYPES[name]
    rows, lse = np.zeros((1, H, dim), dtype), f32(1, H)
    for kind, make in formats(dim).items():
        for call, with_more in states(dim, dtype).items():
            form = make(1, 1) if call == "combine_split_kv" else make(1)
            yield with_more(out_format=form, **({"out": form.empty(lse, (1, H, dim))} if call == "merge_states_mapped" else {}))
        yield ops.fixup_merge, {"prefix": rows, "prefix_lse": lse, "suffix": rows, "suffix_lse": lse, "kv_lens": ints(1), "cu_seqlens": ints(0, 1),
                                "out_format": make(1)}  # fmt: skip
        if kind != "Fp8":
            yield ops.quantize_groups, {"x": rows, "out_format": make(1)}


def blanks(dim: int, name: str) -> Iterator[Request]:
    """Rows without keys, and rows that pad a batch."""
    rows = np.zeros((1, H, dim), DTYPES[name])
    yield ops.fixup_zero_kv_rows, {"out": rows, "lse": f32(H, 1), "kv_lens": ints(1), "cu_seqlens": ints(0, 1)}
    yield ops.mask_empty_context, {"out": rows, "lse": f32(H, 1), "query_start_loc": ints(0, 1), "context_start_loc": ints(0, 1)}
    yield ops.fill_pad_rows, {"out": rows, "live_rows": 1, "lse": f32(H, 1)}


def others(dim: int, name: str) -> Iterator[Request]:
    """Sinks, softmax statistics, and what is done to rows by themselves."""
    rows, row = np.zeros((1, H, dim), DTYPES[name]), np.zeros((1, dim), DTYPES[name])
    for layout in ("nh", "hn"):
        yield ops.apply_sink, {"v": rows, "s": f32(1, H) if layout == "nh" else f32(H, 1), "sinks": f32(H), "lse_layout": layout}
    yield ops.merge_attn_stats, {"prefix": rows, "prefix_stats": f32(1, H, 2), "suffix": rows, "suffix_stats": f32(1, H, 2), "softmax_scale": 1.0}
    if dim not in FAST:
        return
    yield ops.quantize_fp8_static, {"x": row, "scale": 1.0}
    yield ops.rmsnorm, {"x": row, "weight": row[0]}
    yield ops.softmax, {"x": row}


def ranks(dim: int, name: str) -> Iterator[tuple[str, dict[str, object]]]:
    """The kernels of `mlafix.distributed`: rows that ranks exchange by collectives, read from each other (pull), or store (push)."""
    bound = {"H": H, "D": dim, "T": name, "O": name}
    for kernel in ("merge_blocks", "merge_peers", "push_and_merge", "push_and_merge_tokens"):
        yield kernel, bound
    yield "pack_blocks", {key: value for key, value in bound.items() if key != "O"}


def without_rows() -> Iterator[Request]:
    """Lengths, offsets and flags of a batch."""
    flags = np.zeros(1, np.bool_)
    yield ops.clear_pad_flags, {"flags": flags, "live_rows": 1}
    yield ops.mark_prefilling, {"flags": flags, "computed": ints(1), "prompt": ints(1), "live_rows": 1}
    yield ops.mark_prefilling, {"flags": flags, "computed": ints(1).astype(np.int64), "prompt": ints(1).astype(np.int64), "live_rows": 1}
    yield ops.expand_context_lens, {"buffer": ints(1), "seq_lens": ints(1), "num_decodes": 1, "max_decode_len": 1}
    yield ops.mask_empty_context_lse, {"lse": f32(H, 1), "query_start_loc": ints(0, 1), "context_start_loc": ints(0, 1)}
    for kind in (np.int32, np.int64):
        lens = ints(1).astype(kind)
        yield ops.pad_metadata, {"seq_lens": lens, "live_rows": 1, "cu_seqlens": ints(0, 1), "slots": ints(1).astype(np.int64), "block_table": ints(1)[:, None]}
        yield ops.cumulate_lens, {"lens": lens, "live_rows": 1}
        yield ops.lens_of_rank, {"seq_lens": lens, "rank": 0, "ranks": 2}
    yield ops.pages_of_rank, {"out": ints(1)[:, None], "token_table": ints(1)[None], "requests": ints(0), "local_lens": ints(1), "rank": 0, "ranks": 2,
                              "page_size": 1}  # fmt: skip


def served_fast(dims: Iterable[int], dtypes: Iterable[str]) -> Iterator[Any]:
    """The calls whose code is machine code of every GPU and CPU: those of most models, in bf16 and f16."""
    yield from without_rows()
    for dim in dims:
        for name in dtypes:
            if dim in FAST and name != "f32":
                for base in BASES if dim != 512 else BASES[:1]:
                    yield from merges(dim, name, base)
                    yield from splits(dim, name, "f32", base)
                yield from blanks(dim, name)


def served(dims: Iterable[int], dtypes: Iterable[str]) -> Iterator[Any]:
    """All others: of GPUs their code is PTX, which the driver compiles at the first call and keeps."""
    for dim in dims:
        for name in dtypes:
            for base in BASES if name != "f32" and dim not in (80, 112) else BASES[:1]:
                if name != "f32" or dim == 128:
                    yield from merges(dim, name, base)
                yield from splits(dim, name, "f32", base)
            if name == "f32":
                continue
            yield from blanks(dim, name)
            yield from others(dim, name)
            if dim in FORMATTED and name == "bf16":
                yield from quantised(dim, name)
            if dim in (128, 512):
                yield from ranks(dim, name)


def requests(dims: Iterable[int], dtypes: Iterable[str]) -> Iterator[Any]:
    """All calls, for `mlafix.compile_keys`."""
    dims, dtypes = list(dims), list(dtypes)
    yield from served_fast(dims, dtypes)
    yield from served(dims, dtypes)
