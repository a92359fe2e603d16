"""Lists the calls of `mlafix.ops` that a wheel serves without a compiler, for any number of heads. The list has one
call for each unit that such calls need.

A call here has arrays with one token and four heads, and fixed contents. `requests` yields the calls as requests for
`mlafix.compile_keys`; `calls` returns them for a test.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from mlafix import ops

H = 4
DIMS = (64, 80, 96, 112, 128, 192, 256, 512, 576)
DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16), "f32": np.dtype(np.float32)}

Request = tuple[Callable[..., Any], dict[str, Any]]

FAST = (64, 128, 256, 512)
"""The row lengths of most models."""
FORMATTED = (128, 512)
"""The row lengths whose results can have a format."""
GATED = (128, 256)
"""The row lengths of models with an output gate."""
BASES = ("e", "2")


def place(array: np.ndarray) -> Any:
    """Puts an array of a call on a device. It returns the array itself, unless a test replaces this function."""
    return array


def floats(*shape: int, of: Any = np.float32) -> Any:
    """Returns random numbers around 0 that depend only on the shape."""
    numbers = np.random.default_rng(shape).standard_normal(shape)
    return place(numbers.astype(np.float32).astype(of))


def zeros(*shape: int, of: Any = np.float32) -> Any:
    """Returns zeros, for outputs or flags."""
    return place(np.zeros(shape, of))


def ints(*values: int, of: Any = np.int32) -> Any:
    return place(np.array(values, of))


def states(dim: int, dtype: Any) -> dict[str, Callable[..., Request]]:
    """Returns the ways to merge states with rows of this length, as functions of further arguments."""

    def rows(*lead: int) -> Any:
        return floats(*lead, H, dim, of=dtype)

    two = {"prefix": rows(1), "prefix_lse": floats(H, 1), "suffix": -rows(1), "suffix_lse": -floats(H, 1)}

    def of(function: Callable[..., Any], **given: Any) -> Callable[..., Request]:
        return lambda **more: (function, {**given, **more})

    return {
        "merge_attn_states": of(ops.merge_attn_states, **two),
        "merge_attn_states, a copy past the context": of(ops.merge_attn_states, **two, context_rows=1, copy_past_context=True),
        "merge_states": of(ops.merge_states, v=rows(1, 3), s=floats(1, 3, H)),
        "merge_states_ragged": of(ops.merge_states_ragged, v=rows(3), s=floats(3, H), indptr=ints(0, 3)),
        "merge_states_list": of(ops.merge_states_list, vs=[rows(1), -rows(1)], ss=[floats(1, H), -floats(1, H)]),
        "combine_split_kv": of(ops.combine_split_kv, partial=rows(3, 1, 1), partial_lse=floats(3, 1, 1, H)),
        "merge_states_mapped": of(ops.merge_states_mapped, parts=rows(3), lses=floats(3, H), indptr=ints(0, 3)),
    }


def formats(dim: int) -> dict[str, Callable[..., Any]]:
    """Returns the formats for rows of this length, as functions of the leading dims."""
    found: dict[str, Callable[..., Any]] = {"Fp8": lambda *lead: ops.Fp8(1.0)}

    def scales(size: int, tiles: bool, *lead: int) -> Any:
        return zeros(128, -(-H * dim // size // 4) * 4, of=np.uint8) if tiles else zeros(*lead, H, dim // size, of=np.uint8)

    if dim % 128 == 0:
        found["Fp8Groups"] = lambda *lead: ops.Fp8Groups(zeros(*lead, H, dim // 128))
        found["Fp8Groups, powers of two"] = lambda *lead: ops.Fp8Groups(zeros(*lead, H, dim // 128), power_of_two=True)
    if dim % 32 == 0:
        found["MxFp8"] = lambda *lead: ops.MxFp8(scales(32, False, *lead))
        found["MxFp4"] = lambda *lead: ops.MxFp4(scales(32, False, *lead))
        found["MxFp8, tiles"] = lambda *lead: ops.MxFp8(scales(32, True), tiles="128x4")
        found["MxFp4, tiles"] = lambda *lead: ops.MxFp4(scales(32, True), tiles="128x4")
    if dim % 16 == 0:
        found["NvFp4"] = lambda *lead: ops.NvFp4(scales(16, False, *lead), 1.0)
        found["NvFp4, tiles"] = lambda *lead: ops.NvFp4(scales(16, True), 1.0, tiles="128x4")
    return found


def merges(dim: int, name: str, **bases: str) -> Iterator[Request]:
    """Yields merges of states into the inputs' own dtype."""
    dtype = DTYPES[name]
    for call, make in states(dim, dtype).items():
        yield make(**bases, **({"out": zeros(1, H, dim, of=dtype)} if call == "merge_states_mapped" else {}))


def in_place(dim: int, name: str, base: str) -> Request:
    rows = {"v": floats(1, H, dim, of=DTYPES[name]), "v_other": -floats(1, H, dim, of=DTYPES[name])}
    return ops.merge_state_in_place, {**rows, "s": floats(1, H), "s_other": -floats(1, H), "base": base}


def splits(dim: int, name: str, parts: str, base: str) -> Iterator[Request]:
    """Yields merges of parts whose dtype differs from the result's, as in split KV."""
    made = states(dim, DTYPES[parts])
    yield made["combine_split_kv"](base=base, out_dtype=name)
    yield made["merge_states_mapped"](base=base, out=zeros(1, H, dim, of=DTYPES[name]))


def mixed(dim: int, name: str) -> Iterator[Request]:
    """Yields merges whose lses have different bases."""
    made = states(dim, DTYPES[name])
    for prefix, suffix, result in itertools.product(BASES, repeat=3):
        if not prefix == suffix == result:
            yield made["merge_attn_states"](base=(prefix, suffix, result))
    for base, result in itertools.permutations(BASES):
        for call, make in made.items():
            if not call.startswith("merge_attn_states"):
                yield make(base=(base, result), **({"out": zeros(1, H, dim, of=DTYPES[name])} if call == "merge_states_mapped" else {}))


def quantised(dim: int, name: str) -> Iterator[Request]:
    """Yields merges in base e whose result has a format, and quantisations of existing rows."""
    dtype = DTYPES[name]
    rows, lse = floats(1, H, dim, of=dtype), floats(1, H)
    two = {"prefix": rows, "prefix_lse": lse, "suffix": -rows, "suffix_lse": -lse, "kv_lens": ints(1), "cu_seqlens": ints(0, 1)}
    for kind, make in formats(dim).items():
        for call, with_more in states(dim, dtype).items():
            form = make(1, 1) if call == "combine_split_kv" else make(1)
            yield with_more(out_format=form, **({"out": form.empty(lse, (1, H, dim))} if call == "merge_states_mapped" else {}))
        yield ops.fixup_merge, {**two, "out_format": make(1)}
        if kind != "Fp8":
            yield ops.quantize_groups, {"x": rows, "out_format": make(1)}


def turned(dim: int, name: str) -> Iterator[Request]:
    """Yields combines and merges that rotate 64 elements of each result row back, as in DeepSeek-V4. The results have
    no format, or one with power-of-two scales."""
    forms: list[Callable[..., Any]] = [lambda *lead: None, formats(dim)["Fp8Groups, powers of two"], formats(dim)["MxFp8"]]
    for interleaved, form in itertools.product((False, True), forms):
        rope = {"table": floats(1, 2, 32), "interleaved": interleaved, "inverse": True}
        for parts in (name, "f32"):
            more = {"out_format": form(1, 1), "rope": ops.Rope(ints(0, of=np.int64)[None], **rope)}
            yield states(dim, DTYPES[parts])["combine_split_kv"](out_dtype=name, **more)
        yield states(dim, DTYPES[name])["merge_attn_states"](out_format=form(1), rope=ops.Rope(ints(0, of=np.int64), **rope))


def blanks(dim: int, name: str) -> Iterator[Request]:
    """Yields calls that blank rows without keys and padding rows."""

    def rows() -> dict[str, Any]:
        return {"out": floats(1, H, dim, of=DTYPES[name]), "lse": floats(H, 1)}

    yield ops.fixup_zero_kv_rows, {**rows(), "kv_lens": ints(0), "cu_seqlens": ints(0, 1)}
    yield ops.fixup_merge, {"prefix": floats(1, H, dim, of=DTYPES[name]), "prefix_lse": floats(1, H), "suffix": -floats(1, H, dim, of=DTYPES[name]),
                            "suffix_lse": -floats(1, H), "kv_lens": ints(1), "cu_seqlens": ints(0, 1)}  # fmt: skip
    yield ops.mask_empty_context, {**rows(), "query_start_loc": ints(0, 1), "context_start_loc": ints(0, 0)}
    yield ops.fill_pad_rows, {**rows(), "live_rows": 0}


def sink(dim: int, name: str, layout: str, base: str) -> Request:
    lse = floats(1, H) if layout == "nh" else floats(H, 1)
    return ops.apply_sink, {"v": floats(1, H, dim, of=DTYPES[name]), "s": lse, "sinks": floats(H), "lse_layout": layout, "base": base}


def others(dim: int, name: str) -> Iterator[Request]:
    """Yields calls with sinks, calls with softmax statistics, and calls of functions that compute single rows."""
    dtype = DTYPES[name]
    rows, row = floats(1, H, dim, of=dtype), floats(1, dim, of=dtype)
    for layout in ("nh", "hn"):
        yield sink(dim, name, layout, "e")
    stats = abs(floats(1, H, 2))
    yield ops.merge_attn_stats, {"prefix": rows, "prefix_stats": stats, "suffix": -rows, "suffix_stats": stats, "softmax_scale": 1.0}
    if dim not in FAST:
        return
    yield ops.blank_rows_without_indices, {"out": rows, "lse": floats(H, 1), "indices": ints(-1)[:, None]}
    yield ops.quantize_fp8_static, {"x": row, "scale": 1.0}
    yield ops.rmsnorm, {"x": row, "weight": row[0]}
    yield ops.softmax, {"x": row}
    for interleaved, of in itertools.product((False, True), (np.float32, dtype)):
        given = {"positions": ints(0, of=np.int64), "table": floats(1, 2, dim // 2, of=of), "interleaved": interleaved}
        yield ops.apply_rope, {"x": floats(1, H, dim, of=dtype), **given}


def checked(dim: int, name: str) -> Iterator[Request]:
    """Yields the launches of `mlafix.watch` in an engine on a GPU, except recomputed attention.

    They cover rows of a backend's forward, of attention and of a merge's sides, in batches of one token and of more
    than 2^20 elements; two-way merges; pages of 4 and 8 heads; and MLA's pages, of 576 elements per token, for rows of
    512.
    """
    dtype = DTYPES[name]
    found = {"flags": zeros(16, of=np.int32), "live_rows": ints(1), "step": ints(3)}

    def places(n: int) -> dict[str, Any]:
        return {**found, "record": zeros(n, H, of=np.int64), "values": zeros(n, H, 4)}

    for n in (1, (1 << 20) // (H * dim) + 1):
        rows, lse, keys = floats(n, H, dim, of=dtype), {"lse": floats(H, n)}, {"lens": ints(*[1] * n)}
        for given in ({}, keys, lse, {**lse, **keys}):
            yield ops.check_states, {"out": rows, **given, **places(n)}
        yield ops.check_merge, {"out": rows, **lse, "sides": [rows, rows], "side_lses": [lse["lse"]] * 2, **places(n)}
    blocks = {"flags": found["flags"], "live_rows": ints(1), "step": ints(3), "record": zeros(1, 1, of=np.int64)}
    for size in (4 * dim, 8 * dim) if dim < 512 else (576,):
        yield ops.check_blocks, {"cache": floats(2, 4, size, of=dtype), "block_table": ints(1)[None], "lens": ints(1), **blocks}


def depths(dim: int, name: str) -> Iterator[Request]:
    """Yields attention residuals over the layers."""
    dtype = DTYPES[name]
    for of in (np.float32, dtype):
        rows = {"prefix": floats(1, dim, of=dtype), "bank": floats(1, 3, dim, of=dtype)}
        yield ops.mix_depth, {**rows, "score_weight": floats(dim, of=of), "out_weight": -floats(dim, of=of)}


def paged(dim: int, name: str) -> Iterator[Request]:
    """Yields calls that store rows into a paged cache: as they are, with one scale, and in each format with scales."""
    dtype = DTYPES[name]
    cached = {"rows": floats(1, H, dim, of=dtype), "slots": ints(0, of=np.int64)}
    yield ops.store_rows, {**cached, "cache": zeros(1, 1, H, dim, of=dtype)}
    yield ops.store_rows, {**cached, "cache": ops.Fp8(1.0).empty(cached["rows"], (1, 1, H, dim)), "out_format": ops.Fp8(1.0)}
    if dim in FORMATTED:
        for kind, make in formats(dim).items():
            if "tiles" not in kind and kind != "Fp8":
                form = make(1, 1)
                yield ops.store_rows, {**cached, "cache": form.empty(cached["rows"], (1, 1, H, dim)), "out_format": form}


def norms(dim: int, name: str) -> Iterator[Request]:
    """Yields norms of the sum of a row and its residual, in each format. A row has a model's whole width."""
    rows = {"x": floats(1, dim, of=DTYPES[name]), "residual": -floats(1, dim, of=DTYPES[name])}
    groups = {"Fp8Groups": zeros(1, dim // 128), "MxFp8": zeros(1, dim // 32, of=np.uint8)}
    forms = [None, ops.Fp8(1.0), ops.Fp8Groups(groups["Fp8Groups"]), ops.Fp8Groups(groups["Fp8Groups"], power_of_two=True), ops.MxFp8(groups["MxFp8"]),
             ops.MxFp4(groups["MxFp8"]), ops.NvFp4(zeros(1, dim // 16, of=np.uint8), 1.0),
             ops.NvFp4(zeros(128, dim // 16, of=np.uint8), 1.0, tiles="128x4"), ops.MxFp4(zeros(128, dim // 32, of=np.uint8), tiles="128x4")]  # fmt: skip
    for form in forms:
        yield ops.rmsnorm, {**rows, "weight": floats(dim, of=DTYPES[name]), "out_format": form}


def experts(dim: int, name: str) -> Iterator[Request]:
    """Yields weighted sums of experts' rows. A row has a model's whole width."""
    rows = floats(1, dim, of=DTYPES[name])
    for more in ({}, {"shared": -rows}):
        yield ops.combine_experts, {"rows": rows, "places": ints(0)[:, None], "weights": floats(1, 1), **more}


def ranks(dim: int, name: str, base: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields the kernels of `mlafix.distributed`: ranks exchange rows by collectives, by reads (pull) or by stores
    (push)."""
    bound = {"H": H, "D": dim, "T": name}
    for kernel in ("merge_blocks", "merge_peers", "push_and_merge", "push_and_merge_tokens"):
        yield kernel, {**bound, "O": name, "B": base}
    if base == "e":
        yield "pack_blocks", bound


def ranks_in_fp8(dim: int, name: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields the kernels of `mlafix.distributed` whose rows travel in fp8."""
    bound = {"H": H, "D": dim, "T": name}
    yield "pack_blocks_fp8", bound
    for kernel in ("merge_blocks_fp8", "merge_peers_fp8", "push_and_merge_rounded"):
        yield kernel, {**bound, "O": name, "B": "e"}
    for cut, many in itertools.product(("", "_tokens"), ("", "_of_two")):
        yield f"push_and_merge{cut}_fp8{many}", {**bound, "O": name, "B": "e"}


def chunks() -> Iterator[tuple[str, dict[str, object]]]:
    """Yields the kernels that move rows of any length in chunks. They are used when nothing can compile a kernel for
    that length."""
    bits = [{"E": of} for of in ("u8", "f16", "i32", "i64")]
    bound: dict[str, list[dict[str, str]]] = {
        "zero_chunks": [{**of, "I": ids} for of in bits for ids in ("i32", "i64")],
        "zero_tails": [{**of, "I": ids, "L": "i32"} for of in bits for ids in ("i32", "i64")],
        "pack_chunks": [{"T": of} for of in ("bf16", "f16", "f32", "f8e4m3fn", "f8e5m2")],
        "pack_chunks_of_integers": [{"E": of} for of in ("u8", "i8", "i32", "i64")],
        "pack_chunks_of_bits": bits,
        "unpack_chunks": bits,
    }
    for kernel, kinds in bound.items():
        for kind, size in itertools.product(kinds, ops.tokens.CHUNKS):
            yield kernel, {"K": size, **kind}


def moved() -> Iterator[Request]:
    """Yields calls that use the kernels of `chunks`. With a compiler, they would ask for kernels compiled for the row
    length."""

    def rows(*shape: int) -> Any:
        return place((np.arange(np.prod(shape)) % 99).reshape(shape).astype(of))

    of: Any
    kinds = [*DTYPES.values(), *(np.dtype(kind) for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, "u1", "i1", "i4", "i8"))]
    for of, length in itertools.product(kinds, (128, 24, 33)):
        starts = ints(0, 2, 3)
        for pad in (0, 3):
            yield ops.pack_rows, {"x": rows(3, length), "starts": starts, "length": 2, "pad": pad}
        yield ops.unpack_rows, {"padded": rows(2, 2, length), "starts": starts, "out": rows(4, length)}
        for ids in (np.int32, np.int64):
            yield ops.zero_blocks, {"cache": rows(3, 2, length), "ids": ints(1, of=ids)}
        yield ops.zero_blocks, {"cache": [rows(3, 2, length), rows(3, 2, length)], "ids": ints(2, -1, of=np.int64)}
        yield ops.zero_blocks, {"cache": [rows(3, 2, length), rows(2, 4, 2 * length)], "ids": ints(1, of=np.int64)}


def counted(dim: int, name: str, base: str) -> Iterator[Request]:
    """Yields the other combines of splits: of splits that are not normalised and whose number depends on the sequences'
    lengths, of splits and one further state, and of splits and sinks. Unified attention, speculation and GPT-OSS use
    them."""
    partial, lse = floats(3, 1, 1, H, dim), floats(3, 1, 1, H)
    given = {"partial": partial, "partial_lse": lse, "base": base}
    segments = {**given, "partial_sum": abs(lse), "seq_lens": ints(2), "tile_len": 1}
    yield ops.combine_split_kv, {**segments, "out_dtype": name}
    yield ops.combine_split_kv, {**segments, "out_dtype": name, "cu_seqlens": ints(0, 1)}
    yield ops.combine_split_kv, {**given, "out_dtype": name, "beside": floats(1, 1, H, dim, of=DTYPES[name]), "beside_lse": floats(1, 1, H)}
    if base == "e":
        yield ops.combine_split_kv, {**given, "out_dtype": name, "sinks": floats(H)}
        yield ops.combine_split_kv, {**segments, "out_format": ops.Fp8(1.0)}


def gated(dim: int, name: str) -> Iterator[Request]:
    """Yields merges followed by an output gate per head or per element, and combines followed by one per element."""
    row, head = floats(1, H, dim, of=DTYPES[name]), floats(1, H, of=DTYPES[name])
    for gate in (row, head):
        yield states(dim, DTYPES[name])["merge_attn_states"](gate=gate)
    for base in BASES:
        yield states(dim, DTYPES["f32"])["combine_split_kv"](gate=row[None], out_dtype=name, base=base)


def in_fp8(dim: int, name: str, base: str) -> Iterator[Request]:
    """Yields merges of two states whose result is fp8 with one scale."""
    made = states(dim, DTYPES[name])
    for call in ("merge_attn_states", "merge_attn_states, a copy past the context"):
        yield made[call](out_format=ops.Fp8(1.0), base=base)


def drop_ins(dim: int, name: str) -> Iterator[Request]:
    """Yields the launches of `mlafix.compat` that no function of `mlafix.ops` makes."""
    dtype, lse = DTYPES[name], floats(1, H)
    for base in BASES:
        yield ops.drop_ins.weight_of_rank, {"out": floats(1, H, dim, of=dtype), "out_lse": zeros(1, H), "lses": floats(2, 1, H), "rank": 1, "base": base}
    heads = {"rows": zeros(1, 1, H, dim, of=dtype), "lses": zeros(1, 1, H)}
    yield ops.drop_ins.pack_heads, {**heads, "out": floats(1, H, dim, of=dtype), "lse": lse}
    yield ops.drop_ins.fold_state, {"out": floats(1, 1, H, dim), "lse": floats(1, 1, H, 1), "block": floats(1, 1, H, dim, of=dtype), "block_lse": -floats(1, H, 1)}
    stats = {"rows": floats(2, 1, H, dim, of=dtype), "stats": abs(floats(2, 1, H, 2))}
    yield ops.drop_ins.merge_stats_blocks, {"out": zeros(1, H, dim, of=dtype), **stats, "scale": 1.0}


def without_rows() -> Iterator[Request]:
    """Yields calls on lengths, offsets and flags of a batch."""
    yield ops.clear_pad_flags, {"flags": zeros(1, of=np.bool_), "live_rows": 1}
    for kind in (np.int32, np.int64):
        given = {"computed": ints(1, of=kind), "prompt": ints(1, of=kind)}
        yield ops.mark_prefilling, {"flags": zeros(1, of=np.bool_), **given, "live_rows": 1}
    yield ops.expand_context_lens, {"buffer": ints(1), "seq_lens": ints(1), "num_decodes": 1, "max_decode_len": 1}
    yield ops.mask_empty_context_lse, {"lse": floats(H, 1), "query_start_loc": ints(0, 1), "context_start_loc": ints(0, 0)}
    for kind in (np.int32, np.int64):
        table = {"slots": ints(1, of=np.int64), "block_table": ints(1)[:, None]}
        yield ops.pad_metadata, {"seq_lens": ints(1, of=kind), "live_rows": 1, "cu_seqlens": ints(0, 1), **table}
        yield ops.cumulate_lens, {"lens": ints(1, of=kind), "live_rows": 1}
        yield ops.lens_of_rank, {"seq_lens": ints(1, of=kind), "rank": 0, "ranks": 2}
    yield ops.pages_of_rank, {"out": ints(1)[:, None], "token_table": ints(1)[None], "requests": ints(0), "local_lens": ints(1), "rank": 0, "ranks": 2,
                              "page_size": 1}  # fmt: skip


def rare_without_rows() -> Iterator[Request]:
    """Yields calls on lses in context parallelism, on contexts with i64 bounds, and the checks of a batch by
    `mlafix.watch`."""
    yield ops.visible_keys, {"out": ints(0), "lens": ints(1), "cu_seqlens": ints(0, 1)}
    found = {"record": zeros(1, 1, of=np.int64), "flags": zeros(16, of=np.int32), "live_rows": ints(1), "step": ints(3)}
    batch = {"lens": ints(1), "cu_seqlens": ints(0, 1), "slots": ints(0, of=np.int64), "block_table": ints(1)[None]}
    for expected in ({}, {"expected_lens": ints(1)}):
        yield ops.check_metadata, {**batch, **expected, "pages": 2, "page_size": 4, **found}
    for kind in (np.int32, np.int64):
        yield ops.drop_ins.mask_rows_without_keys, {"lse": floats(1, H), "seq_lens": ints(1), "query_start_loc": ints(0, 1, of=kind)}
        yield ops.drop_ins.requests_of_tokens, {"out": ints(0), "query_start_loc": ints(0, 1, of=kind), "mapped": 1, "count": 1}
        yield ops.drop_ins.localize_indices, {"out": ints(0, of=kind), "indices": ints(1, of=kind), "rank": 0, "ranks": 2, "interleave": 1}
        for starts in (None, ints(1, of=kind)):
            yield ops.drop_ins.lens_of_rank_between, {"out": ints(0, of=kind), "lens": ints(1, of=kind), "starts": starts, "rank": 0, "ranks": 2,
                                                      "interleave": 1}  # fmt: skip
    yield ops.mask_empty_context_lse, {"lse": floats(H, 1), "query_start_loc": ints(0, 1), "context_start_loc": ints(0, 0, of=np.int64)}


def of_most_models(dims: Iterable[int], dtypes: Iterable[str]) -> Iterator[Any]:
    """Yields the calls of most models in bf16 and f16. The wheel has machine code for each generation of GPUs and each
    level of CPUs."""
    yield from without_rows()
    for dim in dims:
        for name in dtypes:
            if dim in FAST and name != "f32":
                for base in BASES if dim != 512 else BASES[:1]:
                    yield from merges(dim, name, base=base)
                    yield in_place(dim, name, base)
                    yield from splits(dim, name, "f32", base)
                yield from blanks(dim, name)


def with_formats(dims: Iterable[int], dtypes: Iterable[str]) -> Iterator[Any]:
    """Yields the calls whose result has a format or is rotated. The wheel has machine code for GPUs with fp8, from
    Hopper on."""
    if "bf16" in dtypes:
        for dim in dims:
            if dim in FORMATTED:
                yield from quantised(dim, "bf16")
        if 512 in dims:
            yield from turned(512, "bf16")


def rare_in_bf16(dim: int) -> Iterator[Any]:
    """Yields the rare calls that a wheel has in bf16 only."""
    if dim in FAST:
        for layout in ("nh", "hn"):
            yield sink(dim, "bf16", layout, "2")
        yield from counted(dim, "bf16", "2")
        yield from in_fp8(dim, "bf16", "2")
        yield from drop_ins(dim, "bf16")
    if dim in FORMATTED:
        yield from ranks(dim, "bf16", "2")
        yield from mixed(dim, "bf16")
    if dim in GATED:
        yield from gated(dim, "bf16")
    if dim == 512:  # for MLA, whose states ranks exchange
        yield from ranks_in_fp8(dim, "bf16")


def rare(dims: Iterable[int], dtypes: Iterable[str]) -> Iterator[Any]:
    """Yields all other calls. The wheel has PTX, which a GPU's driver compiles and caches at the first call, and code
    for the baseline of CPUs."""
    for dim in dims:
        for name in dtypes:
            for base in BASES if name != "f32" and dim not in (80, 112) else BASES[:1]:
                yield from merges(dim, name, base=base)
                yield in_place(dim, name, base)
                yield from splits(dim, name, "f32", base)
            yield from blanks(dim, name)
            yield from others(dim, name)
            if dim in FAST and name != "f32":
                yield from checked(dim, name)
            if dim in (*FAST, 576) and name != "f32":
                yield from paged(dim, name)
            if name == "f32":
                continue
            yield from counted(dim, name, "e")
            yield from in_fp8(dim, name, "e")
            if dim in FAST:
                yield from ranks(dim, name, "e")
            if name == "bf16":
                yield from rare_in_bf16(dim)
            elif dim == 128:
                yield from drop_ins(dim, name)
    if 512 in dims and "bf16" in dtypes:
        yield from depths(7168, "bf16")
        for width in (2048, 4096, 5120, 7168):
            yield from experts(width, "bf16")
            yield from norms(width, "bf16")
    yield from rare_without_rows()
    yield from chunks()


def requests(dims: Iterable[int], dtypes: Iterable[str]) -> Iterator[Any]:
    """Yields all calls, for `mlafix.compile_keys`."""
    dims, dtypes = list(dims), list(dtypes)
    for calls in (of_most_models, with_formats, rare):
        yield from calls(dims, dtypes)


def calls(dims: Iterable[int], dtypes: Iterable[str]) -> list[Request]:
    """Returns all calls of functions, for a test to make."""
    return [*(call for call in requests(dims, dtypes) if callable(call[0])), *moved()]
