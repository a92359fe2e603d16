"""Tests every function of `mlafix.ops` and `mlafix.compat` in each way in which torch may handle a call.

For each way, all functions are in one graph. `test_torch_programs.py` tests them one by one, for several shapes, under
torch.compile with the backends eager and aot_eager.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Callable, Sequence

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

from torch._higher_order_ops.while_loop import while_loop  # noqa: E402
from torch._subclasses.functional_tensor import dispatch_functionalize  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten  # noqa: E402

from programs_of_torch import PROGRAMS, _updated  # noqa: E402
from test_torch_programs import SHAPES, same  # noqa: E402
from watching import export  # noqa: E402

Groups = Sequence[tuple[Any, ...]]
"""The tensors of several programs, one tuple per program."""
Run = Callable[[Groups], list[Any]]

MARGIN = 3  # the number of rows before and after the written ones


def all_of(names: Sequence[str]) -> Run:
    def run(groups: Groups) -> list[Any]:
        return tree_leaves([PROGRAMS[name].run(*tensors) for name, tensors in zip(names, groups)])

    return run


def in_branches(run: Run, groups: Groups) -> Any:
    flat, spec = tree_flatten(groups)

    def branch(*tensors: Any) -> Any:
        return run(tree_unflatten(list(tensors), spec))

    def step(which: Any, *tensors: Any) -> Any:
        return torch.cond(which, branch, branch, tensors)

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        return torch.compile(step, fullgraph=True, backend="aot_eager")(torch.tensor(True), *flat)


def in_loop(run: Run, groups: Groups) -> Any:
    begin = [torch.zeros_like(leaf) for leaf in run(groups)]

    def step(groups: Groups, *carried: Any) -> Any:
        return while_loop(lambda i, *_: i < 2, lambda i, *_: (i + 1, *run(groups)), (torch.tensor(0), *carried))[1:]

    return torch.compile(step, fullgraph=True, backend="aot_eager")(groups, *begin)


WAYS: dict[str, Callable[[Run, Groups], Any]] = {
    "inductor": lambda run, groups: torch.compile(run, fullgraph=True)(groups),
    "export": lambda run, groups: export(run, (groups,)).run_decompositions().module()(groups),
    "cond": in_branches,
    "while_loop": in_loop,
    "functional tensors": lambda run, groups: dispatch_functionalize(run)(groups),
    "functionalize": lambda run, groups: torch.func.functionalize(run)(groups),
}

WAITS = {name for name, program in PROGRAMS.items() if program.waits}


class _Writes(TorchDispatchMode):
    """A mode that records whether a call passes an output array to any operator."""

    found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = zip(func._schema.arguments, args)
        self.found |= func.namespace == "mlafix" and any(one.alias_info is not None and value is not None for one, value in given)
        return func(*args, **(kwargs or {}))


def writes(name: str) -> bool:
    with _Writes() as mode:
        PROGRAMS[name].run(*PROGRAMS[name].make(*SHAPES[0]))
    return mode.found


REFUSED: dict[str, tuple[Callable[[str], bool], str]] = {
    "export": (WAITS.__contains__, "data-dependent"),
    "cond": ("zero_blocks".__eq__, "Expected arg_val to be a Tensor"),
    "while_loop": ((WAITS | {"zero_blocks"}).__contains__, "Expected arg_val to be a Tensor|to have same metadata"),
    "functionalize": (writes, "Found a custom .non-ATen. operator whose output has alias annotations"),
}
"""For each way, whether torch itself refuses a program, and a part of its message (docs/Limits.md)."""



@functools.lru_cache(maxsize=None)
def refused_by(way: str) -> set[str]:
    return {name for name in PROGRAMS if way in REFUSED and REFUSED[way][0](name)}


DEPENDS_ON_RELEASE: dict[str, tuple[set[str], str]] = {
    "cond": (WAITS, "data-dependent"),  # torch 2.11 asks for the sizes of vllm.pack_seq_triton
}
"""For each way, the programs that only some releases of torch accept, and a part of the message of the other
releases."""


@pytest.mark.filterwarnings("default")  # Inductor warns about its own code
@pytest.mark.parametrize("way", WAYS)
def test_every_function_gives_the_eager_bits(way: str) -> None:
    torch.manual_seed(0)
    refused = refused_by(way)
    depends, said = DEPENDS_ON_RELEASE.get(way, (set(), ""))
    names = [name for name in PROGRAMS if name not in refused | depends]
    groups = [PROGRAMS[name].make(*SHAPES[0]) for name in names]
    torch._dynamo.reset()
    try:
        is_right = same(WAYS[way](all_of(names), groups), all_of(names)(groups))
    except Exception:
        is_right = False
    if not is_right:  # runs each program again to find the wrong one
        wrong = [f"{name}: {fault}" for name, tensors in zip(names, groups) if (fault := fault_of(way, name, tensors))]
        pytest.fail("\n".join(wrong) or "each by itself is right, and all together are not")
    for name in sorted(depends - refused):
        fault = fault_of(way, name, PROGRAMS[name].make(*SHAPES[0]))
        assert not fault or re.search(said, fault), f"{name}: {fault}"


def fault_of(way: str, name: str, tensors: Any) -> str:
    torch._dynamo.reset()
    try:
        return "" if same(WAYS[way](all_of([name]), [tensors]), all_of([name])([tensors])) else "other values"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip()[:300]}"


@pytest.mark.parametrize("way", REFUSED)
def test_torch_says_what_it_does_not_take(way: str) -> None:
    """torch refuses each function that test_every_function_gives_the_eager_bits omits, with the listed message."""
    names, said = refused_by(way), REFUSED[way][1]
    assert names
    for name in sorted(names):
        fault = fault_of(way, name, PROGRAMS[name].make(*SHAPES[0]))
        assert re.search(said, fault), f"{name}: {fault}"


VIEWS = {name: program for name, program in PROGRAMS.items() if isinstance(program.run, _updated)}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_what_is_written_may_be_a_part_of_more_memory(backend: str) -> None:
    """An output may be a view that begins after other rows. Thus no function may slice an output before torch gets the
    call: torch would rebuild the slice in the wrong place."""
    torch.manual_seed(0)

    def behind_others(tensor: torch.Tensor) -> torch.Tensor:
        whole = tensor.new_zeros((tensor.shape[0] + 2 * MARGIN, *tensor.shape[1:]))
        whole[MARGIN:-MARGIN] = tensor
        return whole[MARGIN:-MARGIN]

    def run(groups: Groups) -> None:
        for program, tensors in zip(VIEWS.values(), groups):
            program.run.function(*tensors)  # type: ignore[attr-defined]

    made = [program.make(*SHAPES[0]) for program in VIEWS.values()]
    eager, compiled = ([tuple(behind_others(tensor) if i in program.run.which else tensor for i, tensor in enumerate(tensors))  # type: ignore[attr-defined]
                        for program, tensors in zip(VIEWS.values(), made)] for _ in range(2))
    run(eager)
    torch._dynamo.reset()
    torch.compile(run, fullgraph=True, backend=backend)(compiled)
    bits = [[[tensor.untyped_storage().tolist() for tensor in tensors] for tensors in groups] for groups in (eager, compiled)]
    wrong = [f"{name}, tensor {i}: bytes {[at for at, (x, y) in enumerate(zip(a, b)) if x != y][:9]} from {made[i].storage_offset() * made[i].itemsize} on"
             for name, want, got, made in zip(VIEWS, *bits, compiled) for i, (a, b) in enumerate(zip(want, got)) if a != b]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("way", ["compile", "dynamic", "export"])
def test_ring_attention_updates_a_half_where_torch_traces(way: str) -> None:
    """A traced call updates half of an accumulator that is a part of a larger tensor, as in zigzag attention
    (zhuzilin/ring-flash-attention)."""
    from mlafix.compat.ring_attention import update_out_and_lse

    def half(out: Any, lse: Any, block: Any, block_lse: Any) -> Any:
        return update_out_and_lse(out, lse, block, block_lse, slice_=(slice(None), slice(2, None)))

    def made() -> list[Any]:
        torch.manual_seed(0)
        return [torch.randn(2, 9, 4, 64)[:, 3:], torch.randn(2, 9, 4, 1)[:, 3:], torch.randn(2, 4, 4, 64), torch.randn(2, 4, 4)]

    want, given = half(*made()), made()
    torch._dynamo.reset()
    if way == "export":
        got = export(lambda *tensors: [one * 1 for one in half(*tensors)], tuple(given)).module()(*given)
    else:
        got = torch.compile(half, fullgraph=True, backend="aot_eager", dynamic=way == "dynamic")(*given)
    assert all(map(torch.equal, got, want)) and torch.equal(given[0], want[0])
