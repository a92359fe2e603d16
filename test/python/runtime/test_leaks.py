"""100000 calls, valid and invalid, do not leak memory."""

from __future__ import annotations

import gc
import resource
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mlafix
from mlafix import _runtime

torch = pytest.importorskip("torch", reason="these calls come with torch tensors as well")

MakeDispatcher = Callable[..., _runtime.Dispatcher]
H, D = 4, 64
CALLS = 100_000
# True under AddressSanitizer. It keeps freed memory for a while, so the size of resident memory shows no leaks.
KEEPS_FREED = "libasan" in Path("/proc/self/maps").read_text()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def collect() -> None:
    """Frees unused objects, and the interpreter's cache of methods, which holds the names of up to 4096 attributes."""
    gc.collect()
    (getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache)()


def arguments(kind: str) -> tuple:
    def make(*shape: int) -> object:
        return torch.ones(shape) if kind == "torch" else np.ones(shape, np.float32)

    return (make(1, H, D), make(H, 1), make(1, H, D), make(H, 1), make(1, H, D), make(H, 1), 1)


def assert_leaves_nothing(work: Callable[[], None], calls: int) -> None:
    for _ in range(calls // 10):  # the first calls fill tables, caches and pools
        work()
    collect()
    tracemalloc.start()
    try:
        first = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            work()
        collect()
        traced = tracemalloc.get_traced_memory()[0] - first
    finally:
        tracemalloc.stop()
    before = resident_bytes()
    for _ in range(calls):
        work()
    collect()
    assert traced < 16 << 10, f"expected no Python memory kept, got {traced} bytes in 1000 calls"
    grown = resident_bytes() - before
    # A leak would lose at least 32 bytes per call. Up to 8 are allowed, since allocators may keep some pages.
    assert KEEPS_FREED or grown < max(calls * 8, 64 << 10), f"expected less than 8 bytes a call kept, got {grown} in {calls} calls"


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_calls(merge_dispatcher: MakeDispatcher, kind: str) -> None:
    dispatch, args = merge_dispatcher(), arguments(kind)
    assert_leaves_nothing(lambda: dispatch(args), CALLS)


def test_bound_calls(merge_dispatcher: MakeDispatcher) -> None:
    bound = merge_dispatcher().bind(arguments("torch"))
    assert_leaves_nothing(lambda: bound(), CALLS)


def test_binding(merge_dispatcher: MakeDispatcher) -> None:
    dispatch, args = merge_dispatcher(), arguments("torch")

    def bind() -> None:
        dispatch.bind(args).set_pointers(args)

    assert_leaves_nothing(bind, CALLS)


@pytest.mark.parametrize(
    "index, value, calls",
    # torch takes milliseconds to refuse a meta tensor, so the test makes only 500 calls with one.
    [(2, np.ones((1, H, D)), 10_000), (2, torch.ones(1, H, D, device="meta"), 500), (6, 7, 10_000)],
)
def test_wrong_calls(merge_dispatcher: MakeDispatcher, index: int, value: object, calls: int) -> None:
    dispatch, args = merge_dispatcher(), arguments("torch")
    wrong = (*args[:index], value, *args[index + 1 :])

    def call() -> None:
        with pytest.raises(mlafix.ArgumentError):
            dispatch(wrong)

    assert_leaves_nothing(call, calls)
