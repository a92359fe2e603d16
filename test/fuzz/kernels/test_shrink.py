"""Tests the shrinker: its results still fail, and the generator could have made them."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools

import cases
import pytest
from edits import tidy
from generate import generate
from render import source
from rows import may_race, written
from shrink import Shrinker
from syntax import BOOL, F32, INDEX, Assign, Call, Case, Each, For, Grid, If, Kernel, Node, Store, Tensor, Type, lit, name
from wellformed import is_well_formed

T, H = name("t", INDEX), name("h", INDEX)
NO_END = float("inf")


def test_a_case_shrinks_to_what_fails() -> None:
    def fails(case: Case) -> bool:
        return any(node.op == "unary" and node.attrs["name"] == "rsqrt" for node in case.kernel.nodes())

    case = next(case for case in map(generate, range(1000)) if not case.kernel.inlines and fails(case) and len(case.kernel.body) > 3)
    small = Shrinker(fails, NO_END).shrink(case)
    assert fails(small) and len(source(small.kernel)) < len(source(case.kernel)) / 2 and len(small.kernel.body) == 1


def reads_what_it_writes(case: Case) -> bool:
    return any(node.op == "load" and node.attrs["tensor"] in written(case.kernel) for node in case.kernel.nodes())


def test_rows_of_a_small_case_keep_apart() -> None:
    """The shrinker keeps the grid's indices: with a constant index, all rows would access the same element."""
    two = list(itertools.islice(filter(reads_what_it_writes, map(generate, range(400))), 2))
    assert len(two) == 2
    for case in two:
        small = Shrinker(reads_what_it_writes, NO_END).shrink(case)
        assert reads_what_it_writes(small) and not may_race(small)
        assert len(source(small.kernel)) < len(source(case.kernel))


def load(tensor: str, *indices: Node) -> Node:
    return Node("load", F32, list(indices), {"tensor": tensor})


def kernel(*body: object) -> Kernel:
    tensors = [Tensor("z", "f32", ["n", "H"], "InOut"), Tensor("x", "f32", ["n", "H"], "In")]
    return Kernel(tensors, [], Grid(["t", "h"], ["n", "H"]), list(body))


@pytest.mark.parametrize(
    ("index", "races"),
    [([T, H], False), ([H, T], True), ([lit(1, INDEX), H], True), ([T, lit(0, INDEX)], True), ([T, name("r1", INDEX)], True)],
)
def test_rows_race_where_one_reads_what_another_may_write(index: list[Node], races: bool) -> None:
    assert may_race(Case(kernel(Store("z", [T, H], load("z", *index))), [])) == races
    assert may_race(Case(kernel(Store("z", index, lit(1.0, F32))), [])) == (races and index != [H, T])


def test_a_tensor_in_place_is_one_tensor() -> None:
    call = Call({"n": 2, "H": 2}, aliases={"z": "x"})
    across = kernel(Store("z", [T, H], load("x", T, lit(0, INDEX))))
    assert may_race(Case(across, [Call({"n": 2, "H": 2}), call])) and not may_race(Case(across, [dataclasses.replace(call, aliases={})]))
    looped = kernel(Each(["w"], [[Node("tensor", F32, [], {"name": "x"})]], [Store("z", [T, H], load("w", H, T))]))
    assert may_race(Case(looped, [call])) and not may_race(Case(looped, []))


def test_a_segment_has_rows_of_its_own() -> None:
    made = kernel(Store("z", [T, H], Node("convert", F32, [name("b", Type("scalar", "index"))])))
    made.grid = Grid(["b", "t", "h"], ["cu", "n", "H"], True)
    assert not may_race(Case(made, []))


def add(a: Node, b: Node) -> Node:
    return Node("binary", F32, [a, b], {"name": "add"})


V, ONE, GUARD = name("v1", F32), lit(1.0, F32), Node("compare", BOOL, [T, H], {"ops": ["lt"]})
READ, SET = Store("z", [T, H], V), Assign(["v1"], [load("x", T, H)])


@pytest.mark.parametrize(
    ("body", "good"),
    [
        ([SET, READ], True),
        ([READ, SET], False),
        ([If(GUARD, [SET], []), READ], False),
        ([If(GUARD, [SET], [Assign(["v1"], [ONE])]), READ], True),
        ([If(lit(True, BOOL), [SET], []), READ], True),
        ([For("r", lit(0, INDEX), T, 1, [SET]), READ], False),
        ([SET, For("r", lit(0, INDEX), T, 1, [Assign(["v1"], [add(V, Node("convert", F32, [name("r", INDEX)]))])]), READ], True),
        ([Assign(["v1"], [Node("list", Type("list"), [ONE], {"over": 2})]), Store("z", [T, H], name("v1[1]", F32))], True),
        ([Assign(["v1"], [Node("list", Type("list"), [ONE], {"over": 2})]), Store("z", [T, H], name("v1[2]", F32))], False),
        ([Store("z", [T, H], add(ONE, Node("convert", F32, [ONE])))], True),
        ([Store("z", [T, H], add(ONE, ONE))], False),
        ([Store("z", [T, H], Node("unary", F32, [ONE], {"name": "exp"}))], False),
        ([Store("z", [T, H], Node("ifexp", F32, [GUARD, load("x", T, H), ONE]))], True),
        ([Store("z", [T, H], Node("ifexp", F32, [lit(True, BOOL), load("x", T, H), ONE]))], False),
    ],
)  # fmt: skip
def test_names_have_values_and_numbers_alone_are_not_computed_with(body: list[object], good: bool) -> None:
    assert is_well_formed(Case(kernel(*body), [])) == good


def test_every_drawn_case_is_well_formed_and_so_is_every_smaller_one() -> None:
    """A drawn kernel is also Python, and its text gives the case again."""
    tried: list[Case] = []

    def fails(smaller: Case) -> bool:
        tried.append(smaller)
        if len(tried) % 200 == 0:
            raise InterruptedError
        return False

    for seed in range(60):
        case = generate(seed)
        assert is_well_formed(case), seed
        compile(source(case.kernel), "kernel", "exec")
        text = cases.write(case)
        assert cases.write(cases.read(text)) == text
        if seed % 4 == 0 and sum(1 for _ in case.kernel.nodes()) < 150:  # only small kernels, which are quick to edit
            with contextlib.suppress(InterruptedError):
                Shrinker(fails, NO_END).shrink(case)
    assert len(tried) > 600 and all(map(is_well_formed, tried))


def test_tensors_of_two_dtypes_are_not_one() -> None:
    """When the shrinker changes a tensor's dtype to f32, the tensor no longer aliases another one."""
    call = Call({"n": 2, "H": 2}, dtypes={"T": "f16"}, aliases={"z": "x"})
    made = kernel(Store("z", [T, H], load("x", T, H)))
    for tensor in made.tensors:
        tensor.dtype = "T"
    made.variables = {"T": ""}
    small = Shrinker(lambda case: len({t.dtype for t in case.kernel.tensors}) == 2, NO_END)._round(Case(made, [call]))
    assert small is not None and not small.calls[0].aliases


ROW = Type("row", "f32", "D")


@pytest.mark.parametrize("order", ["wy", "yw"])
@pytest.mark.parametrize("row", [Node("splat", ROW, [lit(1.0, F32)]), Node("iota", Type("row", "i32", "D")), Node("load", ROW, [T], {"tensor": "y"})],
                         ids=lambda row: row.op)  # fmt: skip
def test_a_tensor_that_gives_a_row_its_size_is_kept(row: Node, order: str) -> None:
    """The optional tensor `y` may be omitted, so it does not determine the size of "D"."""
    made = kernel(Store("z", [T, H], Node("reduce", F32, [row], {"kind": "add"})))
    made.tensors += [Tensor(tensor, "f32", ["n", "D"], "In", optional=tensor == "y") for tensor in order]
    tidy(Case(made, []))
    assert [tensor.name for tensor in made.tensors if tensor.name in ("x", "w")] == ["w"]
