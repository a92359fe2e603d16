"""Computes facts about a launch: its sizes, its grid, the bytes that it moves, and the memory that a warp accesses at
once."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import _runtime
from ..errors import ArgumentError
from .facts import Facts

DEFAULT_SIZE = 1024
"""The size of a dynamic dim if the caller gives none."""
SECTOR = 32
"""The smallest number of bytes that a GPU's memory transfers (CUDA programming guide, device memory accesses)."""
WARP = 32
ELEMENT_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f8e4m3fn": 1, "f8e5m2": 1, "f8e8m0": 1, "f4e2m1": 0.5, "i32": 4, "i64": 8, "i8": 1, "u8": 1, "bool": 1}

_FORALL = re.compile(r"mlafix\.forall \(([^)]*)\) in")
_RAGGED = re.compile(r"mlafix\.ragged_forall .* in \(%([\w$.-]+)")
_ACCESS = re.compile(r"mlafix\.(load|store|load_into|store_members|load_state|store_state)\b(.*)")
_LOOP = re.compile(r"\b(scf\.for|scf\.while|mlafix\.merge_loop)\b")
_INDEXED = re.compile(r"%([\w$.-]+)\[([^\]]*)\]")


@dataclass(frozen=True)
class Access:
    """A load or store in the kernel's text."""

    argument: int
    indices: tuple[int | None, ...]
    """For each index, its position among the grid's indices; None if it is not one of the grid's indices."""
    text: str
    """The access as text, such as "prefix[i, j]"."""
    is_store: bool
    source: int
    whole_row: bool
    in_loop: bool = False
    """True if a row of the grid may execute the access several times."""


@dataclass(frozen=True)
class Coalescing:
    """The memory that the first warp of a launch touches at once by one access."""

    bytes: int
    """The number of different bytes that the lanes access."""
    sectors: int
    """The number of 32-byte sectors that contain these bytes."""
    rows: int
    """The number of rows to which the lanes belong; 1 if the position of a warp's rows in the tensor is unknown."""

    @property
    def share(self) -> float:
        """The share of the sectors' bytes that the lanes access, from 0 to 1."""
        return self.bytes / (self.sectors * SECTOR) if self.sectors else 0.0


class Sizes:
    """The sizes in a launch: given sizes and sizes that were compiled in; DEFAULT_SIZE for all others."""

    def __init__(self, facts: Facts, given: Mapping[str, int]) -> None:
        self.facts = facts
        self.given = dict(given)

    def dim(self, argument: int, dim: int) -> int:
        arg = self.facts.args[argument]
        known: int = arg["shape"][dim]
        return known if known >= 0 else self.given.get(arg["dims"][dim], DEFAULT_SIZE)

    def shape(self, argument: int) -> list[int]:
        return [self.dim(argument, dim) for dim in range(len(self.facts.args[argument]["shape"]))]

    def extent(self, extent: Mapping[str, int]) -> int:
        if "value" in extent:
            return extent["value"]
        arg = self.facts.args[extent["arg"]]
        if "dim" in extent:
            size = self.dim(extent["arg"], extent["dim"])
            return max(1, -(-size // extent["per"])) if "per" in extent else size
        return self.given.get(arg["name"], self.given.get(arg.get("at_most", ""), DEFAULT_SIZE))

    def tensor_bytes(self, argument: int) -> int:
        return int(math.prod(self.shape(argument)) * ELEMENT_BYTES[self.facts.args[argument]["dtype"]])

    def strides(self, argument: int) -> list[int]:
        """Returns the strides of the tensor in elements, as if it had no gaps."""
        shape = self.shape(argument)
        return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


def check_names(facts: Facts, given: Mapping[str, int]) -> None:
    """Raises ArgumentError if `given` has a name that is neither a dim nor a scalar."""
    known = {name: None for arg in facts.args for name in (*arg.get("dims", ()), arg.get("at_most", "")) if name}
    known.update({arg["name"]: None for arg in facts.args if arg["kind"] == "scalar"})
    for name in given:
        if name not in known:
            raise ArgumentError(f'argument "sizes": expected one of {", ".join(known)}, got "{name}"')


@dataclass(frozen=True)
class Grid:
    """The blocks and threads of a launch. On a CPU a block is a range of rows."""

    rows: int
    blocks: int
    threads: int


def count_rows(sizes: Sizes, geometry: Mapping[str, Any]) -> int:
    """Returns the number of rows of the grid. For a ragged grid this is an upper bound, all rows of the tensor."""
    if geometry["kind"] == "ragged":
        return sizes.extent(geometry["rows"]) * math.prod(map(sizes.extent, geometry["inner"]))
    return math.prod(map(sizes.extent, geometry["extents"]))


def choose_version(sizes: Sizes) -> Mapping[str, Any]:
    """Returns the first code version whose guards about sizes hold. All other guards are taken to hold: tensors are
    aligned and have no gaps, and outputs are not inputs."""

    def holds(guard: Mapping[str, Any], version: Mapping[str, Any]) -> bool:
        if guard["kind"] == "max_rows":
            return count_rows(sizes, version["geometry"]) <= guard["value"]
        if guard["kind"] == "at_most":
            return sizes.dim(guard["arg"], guard["dim"]) <= guard["value"]
        return guard["kind"] != "multiple" or sizes.dim(guard["arg"], guard["dim"]) % guard["value"] == 0

    fitting = (version for version in sizes.facts.versions if all(holds(guard, version) for guard in version["guards"]))
    return next(fitting, sizes.facts.main)


def plan_grid(sizes: Sizes, geometry: Mapping[str, Any]) -> Grid:
    """Computes the grid for the target's chip, as docs/UnitFormat.md describes it under "geometry"."""
    rows = count_rows(sizes, geometry)
    multiprocessors = sizes.facts.chip.get("multiprocessors", 1)
    threads = geometry["threads"]
    if geometry["kind"] == "groups":
        of = dict(geometry["groups"])
        pieces = sizes.extent(of.pop("pieces"))
        groups, group, blocks = _runtime.share_lanes(rows * geometry["lanes"], pieces, threads, multiprocessors, **of)
        return Grid(rows, blocks, group * groups)
    per_block = geometry["rows_per_block"]
    least = geometry.get("least_threads", threads)
    while threads // 2 >= least and per_block % 2 == 0 and -(-rows // per_block) < 32 * multiprocessors:
        threads, per_block = threads // 2, per_block // 2
    blocks = -(-rows // per_block)
    if geometry["kind"] == "ragged":
        blocks = max(1, min(geometry["blocks_per_sm"] * multiprocessors, blocks))
    of_row = sizes.extent(geometry["parts"]) if "parts" in geometry else geometry.get("cluster", 1)
    return Grid(rows, blocks * of_row, threads)


def find_accesses(facts: Facts) -> list[Access]:
    """Returns the loads and stores in the kernel's text, in their order."""
    names = {arg["name"]: index for index, arg in enumerate(facts.args)}
    grid: dict[str, int] = {}
    loops: list[int] = []  # the column of each enclosing loop
    found = []
    for line in facts.canonical:
        column = len(line.text) - len(line.text.lstrip())
        while loops and column <= loops[-1]:
            loops.pop()
        if _LOOP.search(line.text):
            loops.append(column)
        if match := _FORALL.search(line.text):
            grid = {name.strip(): position for position, name in enumerate(match[1].split(","))}
        if (match := _RAGGED.search(line.text)) and match[1] in names:
            found.append(Access(names[match[1]], (None,), f"{match[1]}[…]", False, line.source, False))
        if not (match := _ACCESS.search(line.text)):
            continue
        for name, inside in _INDEXED.findall(match[2]):
            if name not in names:
                continue
            indices = [index.strip() for index in inside.split(",") if index.strip()]
            positions = tuple(grid.get(index) for index in indices)
            letters = [_letter(position) for position in positions]
            whole = len(indices) < len(facts.args[names[name]]["shape"])
            text = f"{name}[{', '.join([*letters, *([':'] if whole else [])])}]"
            found.append(Access(names[name], positions, text, match[1].startswith("store"), line.source, whole, bool(loops)))
    return found


def _letter(position: int | None) -> str:
    return "…" if position is None else "ijklmnop"[position]


def bytes_moved(sizes: Sizes, accesses: list[Access]) -> tuple[int, int]:
    """Returns the bytes read and the bytes written, if each element of the accessed arguments is moved once.

    If other tensors index a tensor, such as a cache of pages, only the rows that the grid accesses count.
    """
    read, written = ([access for access in accesses if access.is_store == is_store] for is_store in (False, True))
    return _moved(sizes, read), _moved(sizes, written)


def _moved(sizes: Sizes, accesses: list[Access]) -> int:
    geometry = sizes.facts.main["geometry"]
    rows = None if geometry["kind"] == "ragged" else count_rows(sizes, geometry)
    total = 0
    for argument in dict.fromkeys(access.argument for access in accesses):
        mine = [access for access in accesses if access.argument == argument]
        whole = sizes.tensor_bytes(argument)
        if rows is not None and all(None in access.indices and not access.in_loop for access in mine):
            width = ELEMENT_BYTES[sizes.facts.args[argument]["dtype"]]
            whole = min(whole, int(sum(rows * width * (sizes.shape(argument)[-1] if access.whole_row else 1) for access in mine)))
        total += whole
    return total


def pack_of(layout: Mapping[str, int], size: int) -> int:
    """Returns the number of elements in a pack, for a row of `size` elements."""
    return min(layout["pack"], size & -size) if size else 1


def coalescing(sizes: Sizes, access: Access, version: Mapping[str, Any]) -> Coalescing | None:
    """Returns the memory that the first warp touches by this access, for tensors without gaps. Returns None if the
    access is to a single element whose place is unknown.

    Considers only one row if an index does not come from the grid, if the grid is ragged, or if lane groups share a
    row.
    """
    layout, geometry = version["layout"], version["geometry"]
    known = None not in access.indices and geometry["kind"] == "rows"
    if not known and not access.whole_row:
        return None
    extents = [sizes.extent(extent) for extent in geometry["extents"]] if known else [1]
    arg = sizes.facts.args[access.argument]
    width, strides = ELEMENT_BYTES[arg["dtype"]], sizes.strides(access.argument)
    row_size = sizes.shape(access.argument)[-1] if access.whole_row else 1
    pack = pack_of(layout, row_size) if access.whole_row else 1
    touched: set[int] = set()
    for thread in range(min(WARP, layout["lanes"] * layout["rows"])):
        row, lane = divmod(thread, layout["lanes"])
        if row >= math.prod(extents) or (access.whole_row and lane * pack >= row_size):
            continue
        index = [row // math.prod(extents[dim + 1 :]) % extents[dim] for dim in range(len(extents))]
        places = enumerate(access.indices if known else ())
        first = sum(index[position] * strides[dim] for dim, position in places if position is not None)
        begin = int((first + (lane * pack if access.whole_row else 0)) * width)
        touched.update(range(begin, begin + int(pack * width)))
    rows = max(1, min(math.prod(extents), WARP // layout["lanes"]))
    return Coalescing(len(touched), len({byte // SECTOR for byte in touched}), rows)
