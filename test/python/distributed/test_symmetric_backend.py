"""Tests the reducer's backend over symmetric memory: the rows that it reads, copies and masks. All ranks are in one
process on the CPU."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

from devices import TorchDevice
from mlafix._runtime import GROUP_BYTES
from mlafix.distributed._backends import Call
from mlafix.distributed._cut import Cut
from mlafix.distributed._symmetric import SymmetricBackend, SymmetricPlan
from numerics import poison
from rank_cases import FORMS, Case, Form, check, make_case
from states import LAYOUTS

CPU = TorchDevice("cpu")
MOST = 16
PULL = (1, 0)
WIRES = {"f8e4m3fn": torch.float8_e4m3fn}


def backends_of(form: Form, cut: str, ranks: int, sink: np.ndarray | None) -> list[SymmetricBackend]:
    """Returns the backend of each rank. Their buffers contain bytes that must not reach any result."""
    heads = form.heads * ranks
    wire = WIRES.get(form.wire or "", CPU.put(np.zeros(1, form.dtype)).dtype)
    size = SymmetricPlan.of(Cut(cut, ranks, heads), MOST, form.head_dim, wire, PULL).total
    buffers = [torch.full((size,), 0xFF, dtype=torch.uint8) for _ in range(ranks)]
    made = []
    for rank in range(ranks):
        memory: Any = SimpleNamespace(own=buffers[rank], buffers=buffers, failure=torch.zeros(1, dtype=torch.int64))
        # On a GPU, workspaces must begin at multiples of 128 bytes. Here they need not.
        made.append(SymmetricBackend(SimpleNamespace(rank=rank, size=ranks), memory, Cut(cut, ranks, heads),  # type: ignore[arg-type]
                                     None if sink is None else CPU.put(sink), head_dim=form.head_dim, wire_dtype=wire,
                                     max_tokens=MOST, timeout=1.0, pushed=PULL))
    return made


def calls_of(case: Case, backends: list[SymmetricBackend], base: str) -> list[tuple[Call, tuple[slice, slice]]]:
    """Returns the call of each rank, and the part of the result that the rank owns."""
    made = []
    for part, backend in zip(case.parts, backends):
        tokens, _, dim = part.partial.shape
        mine, heads = backend.cut.owned(backend.ranks.rank, tokens)
        shape = (mine.stop - mine.start, heads.stop - heads.start)
        out, out_lse = CPU.put(poison((*shape, dim), part.partial.dtype)), CPU.put(poison(shape, np.dtype(np.float32)))
        made.append((Call(*part.tensors(), out, out_lse, None, base), (mine, heads)))
    return made


def results_of(calls: list[tuple[Call, tuple[slice, slice]]]) -> list[dict[str, Any]]:
    return [{"out": CPU.get(call.out), "lse": CPU.get(call.out_lse), "owned": owned} for call, owned in calls]


@pytest.mark.parametrize("masks", ["none", "tokens", "requests", "padding"])
@pytest.mark.parametrize("cut", ["heads", "tokens", "none"])
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("ranks", [2, 3])
def test_merges_like_f64(ranks: int, form: Form, cut: str, masks: str, rng: np.random.Generator) -> None:
    for tokens, layout in zip((1, 7, 16), LAYOUTS):
        case = make_case(rng, form, ranks, tokens, masks, layout, cut)
        backends = backends_of(form, cut, ranks, case.sink)
        calls = calls_of(case, backends, form.base)
        # The ranks do not wait for each other here, so all rows are copied before the first merge.
        for backend, (call, _) in zip(backends, calls):
            backend._copy(call)
        for backend, (call, _) in zip(backends, calls):
            backend.reduce(call)
        check(case, results_of(calls))
        for flags in (backend._memory.own[:GROUP_BYTES] for backend in backends):
            assert (flags == 0xFF).all()  # no row overlaps the flags of the ranks


@pytest.mark.parametrize("masks", ["none", "requests"])
@pytest.mark.parametrize("cut", ["heads", "tokens", "none"])
def test_states_that_are_there_are_not_copied(cut: str, masks: str, rng: np.random.Generator) -> None:
    form = FORMS[0]
    case = make_case(rng, form, 3, 7, masks)
    backends = backends_of(form, cut, 3, case.sink)
    calls = []
    for backend, (call, owned) in zip(backends, calls_of(case, backends, form.base)):
        partial, lse = backend.inputs(7)  # type: ignore[misc]
        partial.copy_(call.partial)
        lse.copy_(call.lse)
        backend._copy = None  # type: ignore[assignment, method-assign]
        calls.append((call._replace(partial=partial, lse=lse), owned))
    # Each call masks only its own rank's lses, and the calls of a round run one after the other. So the first round
    # merges lses of other ranks that are not masked yet. Only the results of the second round are checked.
    for backend, (call, _) in [*zip(backends, calls)] * 2:
        backend.reduce(call)
    check(case, results_of(calls))


def test_memory_is_freed_with_the_backend(rng: np.random.Generator) -> None:
    """Memory is freed with the backend, and not by a later garbage collection. A collection may run during a capture,
    and torch ends the process if memory is freed during a capture."""
    form = FORMS[0]
    case = make_case(rng, form, 2, 7, "none")
    backends = backends_of(form, "heads", 2, case.sink)
    for backend, (call, _) in zip(backends, calls_of(case, backends, form.base)):
        backend._copy(call)
        backend.reduce(call)
    gone = [weakref.ref(backend) for backend in backends]
    gc.disable()
    try:
        del backends, backend, call, _
        assert [backend() for backend in gone] == [None, None]
    finally:
        gc.enable()


def test_fp8_rows_are_always_copied(rng: np.random.Generator) -> None:
    backend = backends_of(next(form for form in FORMS if form.wire), "heads", 2, None)[0]
    assert backend.inputs(4) is None


def test_memory_is_for_the_tokens_that_are_pushed() -> None:
    """Memory for pushed rows suffices for calls whose blocks have up to 5 MiB. With 128 heads of 512 elements, these
    are calls of up to 79 tokens. The reducer takes up to 4096 tokens."""
    cut = Cut("heads", 2, 128)
    plan = SymmetricPlan.of(cut, 4096, 512, torch.bfloat16, (0, 5 << 20))
    pull, push = (SymmetricPlan.of(cut, 4096, 512, torch.bfloat16, pushed) for pushed in ((1, 0), (0, 1 << 62)))
    assert plan.pushed_tokens == 79 and plan.slots == 79 * 64 and plan.state == pull.state and not push.state
    assert 4 * (4 << 20) < plan.staged <= 4 * (5 << 20) < push.staged
