"""Tests of merge_states_mapped in addition to test_ops_contract.py: groups, invalid maps, sinks, bases, and rows that
are not written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import contract
from devices import Device
from mlafix import ops
from numerics import BF16, F16, F32, garbage, same_bits
from states import LAYOUTS, buffer_of, lay_out, make_states, untouched_outside

HEADS, DIM = 3, 64


@dataclass
class Groups:
    """The arguments of a call. `members` has the valid parts of the group of each row that is written."""

    indptr: list[int]
    part_map: list[int] | None
    row_map: list[int] | None
    rows: int
    parts: int
    min_parts: int = 0
    members: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for g in range(len(self.indptr) - 1):
            first, last = self.indptr[g], self.indptr[g + 1]
            listed = list(range(first, last)) if 0 <= first <= last else []
            row = g if self.row_map is None else self.row_map[g] if g < len(self.row_map) else -1
            if not 0 <= row < self.rows or len(listed) < self.min_parts:
                continue
            named = listed if self.part_map is None else [self.part_map[j] if j < len(self.part_map) else -1 for j in listed]
            assert row not in self.members, "two groups of one row"
            self.members[row] = [i for i in named if 0 <= i < self.parts]


def want(groups: Groups, v: np.ndarray, s: np.ndarray, row: int, base: float, dtype: np.dtype, sinks: np.ndarray | None) -> Any:
    """Returns the expected `row` of out and of out_lse. `v` is [p, H, D], `s` is [p, H], and lses are in `base`."""
    at = groups.members[row]
    lse = contract.merge(v[at], s[at], base=base)[1]
    if sinks is None:
        return contract.merge(v[at], s[at], base=base, out_dtype=dtype)[0], lse
    payload = np.concatenate([v[at], np.zeros((1, *v.shape[1:]), v.dtype)])
    return contract.merge(payload, np.concatenate([s[at], (sinks / np.log(base))[None]]), base=base, out_dtype=dtype)[0], lse


def run(groups: Groups, device: Device, rng: np.random.Generator, *, parts_dtype: np.dtype = F32, dtype: np.dtype = BF16,
        layout: str = "contiguous", base: str = "e", out_base: str | None = None, with_sinks: bool = False,
        empty_lse: float = -np.inf, wants_lse: bool = True) -> None:
    """Calls the function and compares every row with f64. Rows that no group writes must be unchanged."""
    states = make_states(rng, 1, groups.parts, HEADS, DIM, parts_dtype)
    v, s = states.v[0], states.s[0]
    sinks = rng.normal(0, 3, HEADS).astype(np.float32) if with_sinks else None
    if sinks is not None:
        sinks[0] = -np.inf
    out = lay_out(garbage(rng, (groups.rows, HEADS, DIM), dtype), layout)
    lse = lay_out(garbage(rng, (groups.rows, HEADS), F32), layout)
    on_device, lse_on_device = device.put(out), device.put(lse)
    ints = [None if x is None else device.put(np.array(x, np.int32)) for x in (groups.indptr, groups.part_map, groups.row_map)]
    before = out.copy(), lse.copy(), buffer_of(out).copy()
    got = ops.merge_states_mapped(
        on_device, device.put(lay_out(v, layout)), device.put(lay_out(s, layout)), *ints,  # type: ignore[arg-type, func-returns-value]
        out_lse=lse_on_device if wants_lse else None, min_parts=groups.min_parts,
        sinks=None if sinks is None else device.put(sinks), empty_lse=empty_lse, base=(base, out_base or base))  # type: ignore[arg-type]
    assert got is None
    result, result_lse = device.get(on_device), device.get(lse_on_device)
    scale = np.log(2.0 if base == "2" else np.e) / np.log(2.0 if (out_base or base) == "2" else np.e)
    for row in range(groups.rows):
        if row not in groups.members:
            assert same_bits(result[row], before[0][row]) and same_bits(result_lse[row], before[1][row]), row
            continue
        payload, total = want(groups, v, s, row, 2.0 if base == "2" else np.e, dtype, sinks)
        payload.check(result[row], f"out[{row}]")
        if not wants_lse:
            assert same_bits(result_lse[row], before[1][row])
            continue
        value = np.where(np.isneginf(total.value), empty_lse, total.value * scale)
        contract.Expected(value, total.magnitude * max(scale, 1.0), total.exact & (scale == 1)).check(result_lse[row], f"lse[{row}]")
    if isinstance(on_device, np.ndarray):
        assert untouched_outside(out, before[2])


def some(rng: np.random.Generator, groups: int, most: int, *, min_parts: int = 0) -> Groups:
    """Returns random groups of 0 to `most` parts. Parts and rows are in random order, and half of the rows belong to no
    group."""
    sizes = rng.integers(0, most + 1, groups)
    indptr = [0, *np.cumsum(sizes).tolist()]
    total = indptr[-1] + 3
    return Groups(indptr, rng.permutation(total)[: indptr[-1]].tolist(), rng.permutation(2 * groups)[:groups].tolist(), 2 * groups,
                  total, min_parts)


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
@pytest.mark.parametrize("parts_dtype", [BF16, F16, F32], ids=str)
def test_groups_of_every_size_in_every_layout(parts_dtype: np.dtype, dtype: np.dtype, device: Device,
                                              rng: np.random.Generator) -> None:
    for layout in LAYOUTS:
        run(some(rng, 9, 6), device, rng, parts_dtype=parts_dtype, dtype=dtype, layout=layout)


@pytest.mark.parametrize("with_parts", [False, True])
@pytest.mark.parametrize("with_rows", [False, True])
def test_either_map_may_be_omitted(with_rows: bool, with_parts: bool, device: Device, rng: np.random.Generator) -> None:
    made = some(rng, 7, 5)
    made = Groups(made.indptr, made.part_map if with_parts else None, made.row_map if with_rows else None, 14, made.parts)
    run(made, device, rng)
    run(made, device, rng, wants_lse=False)


@pytest.mark.parametrize("min_parts", [-1, 0, 1, 2, 4])
def test_groups_of_fewer_parts_are_left_out(min_parts: int, device: Device, rng: np.random.Generator) -> None:
    run(some(rng, 24, 4, min_parts=min_parts), device, rng)
    # three groups of one part, and one without parts
    run(Groups([0, 1, 2, 3, 3], None, None, 4, 3, min_parts), device, rng)


BIG = 2**31 - 1


@pytest.mark.parametrize("made", [
    Groups([0, 2, 5], [4, 9, -1, 2, BIG], [1, 0], 3, 5),  # part numbers out of range
    Groups([0, 2, 3, 4], [0, 1, 2, 3], [3, -1, BIG], 3, 4),  # output rows out of range
    Groups([0, 2, 3, 4], [0, 1, 2, 3], [-2**31, -1, -1], 3, 4),
    Groups([0, 2, 4, 6], [0, 1, 2], [2, 0, 1], 3, 3),  # the last parts have no entry in part_map
    Groups([0, 2, 3, 4], [0, 1, 2, 3], [2], 3, 4),  # the last groups have no entry in row_map
    Groups([0, 2, 3, 4], None, None, 2, 4),  # more groups than rows
    Groups([0, 3, 9], None, None, 2, 4),  # a group that ends past all parts
    Groups([4, 1, 3, -5, 2], None, None, 4, 5),  # bounds that decrease or are negative
    Groups([-1, 2, 2], [0, 1, 2], None, 2, 5),
    Groups([0, 0, 0], [], [1, 0], 2, 3),  # groups without parts
    Groups([0, 1], [0], [0], 1, 0),  # no parts at all
    Groups([0], [], [], 2, 3),  # no groups
    Groups([], [], [], 2, 3),
    Groups([0, 2], [1, 0], [0], 0, 2),  # no rows
], ids=str)
@pytest.mark.parametrize("min_parts", [0, 2])
def test_no_map_leads_out_of_bounds(made: Groups, min_parts: int, device: Device, rng: np.random.Generator) -> None:
    run(Groups(made.indptr, made.part_map, made.row_map, made.rows, made.parts, min_parts), device, rng)


@pytest.mark.parametrize("part_map", [None, [1, 0]], ids=str)
def test_a_bound_past_all_parts_costs_no_iterations(part_map: list[int] | None, device: Device) -> None:
    """A group whose bound is past all parts takes no time for the parts that do not exist. Before a fix, two billion
    iterations took a minute and a half."""
    out, lse = device.put(np.full((2, 1, 8), 7, F32)), device.put(np.full((2, 1), 7, F32))
    parts, lses = np.stack([np.full((1, 8), x, F32) for x in (1, 3)]), np.zeros((2, 1), F32)
    indptr, maps = device.put(np.array([0, BIG, 2], np.int32)), None if part_map is None else device.put(np.array(part_map, np.int32))
    ops.merge_states_mapped(out, device.put(parts), device.put(lses), indptr, maps, out_lse=lse)  # type: ignore[arg-type]
    assert device.get(out)[:, 0].tolist() == [[2.0] * 8, [0.0] * 8]
    assert device.get(lse)[1, 0] == -np.inf


@pytest.mark.parametrize("base", ["e", "2"])
@pytest.mark.parametrize("out_base", ["e", "2", None])
def test_the_lse_may_be_stored_in_another_base(base: str, out_base: str | None, device: Device, rng: np.random.Generator) -> None:
    run(some(rng, 12, 4), device, rng, base=base, out_base=out_base)


@pytest.mark.parametrize("base", ["e", "2"])
def test_sinks_take_weight_and_stay_out_of_the_lse(base: str, device: Device, rng: np.random.Generator) -> None:
    """A sink has weight in the row but is not in the lse. It is in base e, whatever the base of the lses. A sink of
    -inf has no effect."""
    run(some(rng, 16, 4), device, rng, base=base, with_sinks=True)
    run(some(rng, 16, 4), device, rng, base=base, with_sinks=True, out_base="e", empty_lse=np.inf, dtype=F32)


def test_what_stands_for_an_empty_lse_replaces_no_other(device: Device, rng: np.random.Generator) -> None:
    """The replacement for the lse of an empty row replaces no other lse: a NaN of a live state stays NaN (N6)."""
    for value in (np.inf, 0.0):
        run(some(rng, 40, 2), device, rng, empty_lse=value)


def test_a_thousand_groups_of_1_to_8_parts(device: Device, rng: np.random.Generator) -> None:
    sizes = rng.integers(1, 9, 1000)
    indptr = [0, *np.cumsum(sizes).tolist()]
    run(Groups(indptr, rng.permutation(indptr[-1]).tolist(), rng.permutation(1000).tolist(), 1000, indptr[-1]), device, rng)
