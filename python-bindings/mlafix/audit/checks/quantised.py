"""A16 and A17 check fp8 caches with scales: attention that reads them, and stores that write them."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..cases import Adapter, Case, Fault, draw, make_values, stored
from ..forms import Memory, keys_and_values, made, poisoned_memory, scales, tables
from .check import PAGED, Check, Groups, base
from .lse import check_lse


def scaled(adapter: Adapter) -> Groups:
    pairs = [(k, v) for k, v in ((1.0, 1.0), (0.5, 2.0), (0.37, 1.9)) if "k_scale" in adapter.takes or k == 1]
    k, v = pairs[-1]
    scales = {"k_scale": k, "v_scale": v}
    lengths = [((1, 1), (40, 7)), ((33, 2), (70, 2)), ((1, 2), (129, 1025)), ((3, 1, 4), (5, 0, 4))]
    return {
        "scales": [base(adapter, k_scale=k, v_scale=v, magnitude=magnitude) for k, v in pairs for magnitude in (1.0, 4.0)],
        "paths": [base(adapter, **scales, q_lens=q_lens, kv_lens=kv_lens, causal=causal) for q_lens, kv_lens in lengths for causal in (False, True)],
        "NaN beside the keys": [base(adapter, **scales, beyond="nan")],
        "options": [base(adapter, **scales, kv_lens=(40, 70, 5), **fields) for fields in ({"num_splits": 2}, {"sinks": True}, {"window": (2, 2)}, {"softcap": 2.0})],
    }


def not_quantised(adapter: Adapter) -> str:
    return "" if adapter.kv_dtype else "keys and values have the dtype of q"


def write(case: Case, adapter: Adapter) -> list[Fault]:
    """Checks the backend's `store` of new keys and values. Each must be in its slot, rounded to nearest even,
    saturated, with NaN kept. No other slot may change."""
    memory, size = Memory(case, adapter), adapter.page_size
    table, pages = tables(case, adapter)
    values = make_values(case, replace(adapter, kv_dtype=""))
    rows = [torch.cat(values.k), torch.cat(values.v)][: 1 if adapter.values_in_keys else 2]
    slots = [int(table[request, i // size]) * size + i % size for request, length in enumerate(case.kv_lens) for i in range(length)]
    slots += [-1] * case.pad_requests
    rows = [torch.cat([one, draw((case.pad_requests, *one.shape[1:]), 9).to(one.dtype)]) for one in rows]
    if adapter.kv_dtype:
        rows[-1][0, 0, :8] = torch.tensor([float("nan"), 1e6, -1e6, 0.0, 1e-3, 1.99, 0.99, -447.0]).to(rows[-1].dtype)
    given = [memory.rows(tuple(one.shape), one.dtype, 0.0).copy_(one) for one in rows]
    caches = keys_and_values(case, replace(adapter, values_in_keys=False), memory, (pages, size, case.kv_heads))[: len(rows)]
    held = [cache.clone() for cache in caches]
    with poisoned_memory():
        shaped = [[one[..., 0, :] for one in tensors] if adapter.latent else tensors for tensors in (given, caches)]
        made(adapter.call).store(*shaped[0], *shaped[1], slot_mapping=memory.integers(slots, torch.int64), **scales(case, adapter))
    faults = []
    for what, one, cache, before, scale in zip(("k", "v"), rows, caches, held, (case.k_scale, case.v_scale)):
        faults += stored_rows(what, one, cache.cpu(), before.cpu(), slots, scale, adapter)
    return faults + [Fault(f"{what} was written", "no change", "other bits") for what in memory.touched()]


def stored_rows(what: str, rows: torch.Tensor, cache: torch.Tensor, before: torch.Tensor, slots: list[int], scale: float, adapter: Adapter) -> list[Fault]:
    """Compares the slots of a cache [pages, page_size, Hk, D] with rows [n, Hk, D]. Allows for an f32 rounding error of
    the quotient before it is rounded to fp8."""
    flat, live = cache.flatten(0, 1), [i for i, slot in enumerate(slots) if slot >= 0]
    got = flat[torch.tensor([slots[i] for i in live], dtype=torch.long)].float()
    exact = rows[live].float()
    ends = [stored(exact * (1 + sign * 2.0**-21), adapter, scale).float() for sign in (-1, 1)] if adapter.kv_dtype and scale != 1 else [stored(exact, adapter, scale).float()]
    low, high = torch.stack(ends).amin(0), torch.stack(ends).amax(0)
    bad = ~((got >= low) & (got <= high) | got.isnan() & low.isnan())
    faults = []
    if bad.any():
        at = tuple(int(i) for i in bad.nonzero()[0])
        kind = f"a NaN in {what} is not kept" if low[at].isnan() else f"{what} is not rounded to nearest" if adapter.kv_dtype else f"{what} is not what was stored"
        shrunk = (got.abs() < low.abs().minimum(high.abs()))[bad].double().mean()
        faults.append(Fault(kind, f"{float(exact[at]):.9g} / {scale:g} as {float(low[at]):.9g}", f"{float(got[at]):.9g}, in {int(bad.sum())} of {bad.numel()} elements, "
                            f"{100 * shrunk:.0f} % of them too small"))  # fmt: skip
    others = torch.ones(flat.shape[0], dtype=torch.bool)
    others[[slots[i] for i in live]] = False
    if not torch.equal(flat[others].contiguous().view(torch.uint8), before.flatten(0, 1)[others].contiguous().view(torch.uint8)):
        faults.append(Fault(f"another slot of the {what} cache was written", "no change", "other bits"))
    return faults


def written(adapter: Adapter) -> Groups:
    lengths = {"q_lens": (1, 1, 1), "kv_lens": (2 * adapter.page_size + 3, adapter.page_size, 5)}
    pairs = [(k, v) for k, v in ((1.0, 1.0), (0.5, 2.0), (0.37, 1.9)) if "k_scale" in adapter.takes or k == 1]
    return {
        "scales": [base(adapter, **lengths, k_scale=k, v_scale=v) for k, v in pairs],
        "order of pages, slots of -1": [base(adapter, **lengths, pages="shuffled"), base(adapter, **lengths, pad_requests=3, beyond="nan")],
        "strides": [base(adapter, **lengths, layout="heads")],
        "offsets past 2^31": [base(adapter, q_lens=(1, 1), kv_lens=(adapter.page_size + 3, 2), layout="far")],
    }


def no_store(adapter: Adapter) -> str:
    if adapter.form not in PAGED:
        return "no cache in this form"
    return "" if hasattr(adapter.call, "store") else "the backend does not write caches"


CHECKS = [
    Check("A16", "caches of fp8 with scales", ("C17",), scaled, check_lse, lacks=not_quantised),
    Check("A17", "what a backend writes into its cache", ("C9", "C17"), written, write, lacks=no_store),
]
