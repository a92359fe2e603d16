"""Tests each promise of the operations' pages: which inputs an output may be, and which strides are allowed. The
promises are read from the docstrings, from which the pages are generated."""

from __future__ import annotations

import inspect
import re
from typing import Any, Callable

import numpy as np
import pytest

from calls import CALLS, FUNCTION_OF, FUNCTIONS, H, N, D, Right
from devices import Device
from mlafix import ops
from mlafix.compat import sglang, vllm
from numerics import same_bits

Arguments = dict[str, Any]
ENTRY = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n     .*)*)", re.MULTILINE)
"""Matches the entry of an argument in a docstring."""

DROP_INS: dict[str, tuple[Callable[..., Any], Callable[[Right], Arguments]]] = {
    "vllm.merge_attn_states": (vllm.merge_attn_states, lambda r: dict(
        output=r.out(), output_lse=r.out(H, N), prefix_output=r.rows(), prefix_lse=r.rows(H, N), suffix_output=r.rows(), suffix_lse=r.rows(H, N))),
    "sglang.merge_state": (sglang.merge_state, lambda r: dict(
        prefix_output=r.rows(), prefix_lse=r.rows(N, H), suffix_output=r.rows(), suffix_lse=r.rows(N, H), output=r.out(), output_lse=r.out(N, H))),
    **{f"sglang.{name}": (getattr(sglang, name), lambda r: dict(
        v_a=r.rows(), s_a=r.rows(N, H), v_b=r.rows(), s_b=r.rows(N, H), v_merged=r.out(), s_merged=r.out(N, H)))
       for name in ("merge_state_v1", "merge_state_v2")},
}  # fmt: skip
"""Drop-ins whose pages promise that an output may be an input, with valid arguments in the form of calls.py."""

MAY_BE: dict[tuple[str, str], tuple[str, ...]] = {
    ("merge_attn_states", "out"): ("prefix", "suffix"),
    ("merge_attn_states", "out_lse"): ("prefix_lse", "suffix_lse"),
    ("merge_attn_stats", "out"): ("prefix", "suffix"),
    ("merge_attn_stats", "out_stats"): ("prefix_stats", "suffix_stats"),
    ("fixup_merge", "out"): ("prefix", "suffix"),
    ("fixup_merge", "out_lse"): ("prefix_lse", "suffix_lse"),
    ("apply_sink", "out"): ("v",),
    ("apply_sink", "out_lse"): ("s",),
    ("merge_states_list", "out"): ("vs[0]", "vs[1]"),
    ("merge_states_list", "out_lse"): ("ss[0]", "ss[1]"),
    ("lens_of_rank", "out"): ("seq_lens",),
    ("rmsnorm", "out"): ("x",),
    ("softmax", "out"): ("x",),
    ("combine_experts", "out"): ("shared",),
    ("vllm.merge_attn_states", "output"): ("prefix_output", "suffix_output"),
    ("vllm.merge_attn_states", "output_lse"): ("prefix_lse", "suffix_lse"),
    ("sglang.merge_state_v2", "v_merged"): ("v_a", "v_b"),
    ("sglang.merge_state_v2", "s_merged"): ("s_a", "s_b"),
    ("sglang.merge_state_v1", "v_merged"): ("v_a", "v_b"),
    ("sglang.merge_state_v1", "s_merged"): ("s_a", "s_b"),
    ("sglang.merge_state", "output"): ("prefix_output", "suffix_output"),
    ("sglang.merge_state", "output_lse"): ("prefix_lse", "suffix_lse"),
}
"""The inputs that an output may be, for each function and output."""

VARIANTS: dict[str, Callable[[Right], Arguments]] = {
    "plain": lambda r: {},
    "rope": lambda r: {"rope": ops.Rope(r.ints(*range(N)), r.rows(N, 16))},
    "gate": lambda r: {"gate": r.rows(N, H, D)},
    "base": lambda r: {"base": "2"},
    "format": lambda r: {"out_format": ops.Fp8(0.5), "out": None},
    "groups": lambda r: {"out_format": ops.Fp8Groups(r.out(N, H, 2)), "out": None},
}
"""Optional arguments, by name, with which the promises about outputs hold, too."""


def promises(function: Callable[..., Any], said: str) -> set[str]:
    """Returns the arguments of a function whose entry in the docstring matches `said`, or says "likewise" after such an
    entry."""
    text = inspect.getdoc(function) or ""
    found: set[str] = set()
    says = False
    for names, entry in ENTRY.findall(text.partition("\nArgs:\n")[2].partition("\n\n")[0]):
        says = re.search(said, " ".join(entry.split())) is not None or (says and "likewise" in entry)
        found |= set(names.split(", ")) if says else set()
    return found


def functions() -> dict[str, Callable[..., Any]]:
    drop_ins = {f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name) for module in mlafix_modules() for name in vars(module)
                if inspect.isfunction(getattr(module, name)) and getattr(module, name).__module__ == module.__name__ and name[0] != "_"}
    return {**{name: getattr(ops, name) for name in FUNCTIONS}, **drop_ins}


def mlafix_modules() -> list[Any]:
    from mlafix.compat import aiter, cache_dit, flash_attn, flash_mla, flashinfer, ring_attention, tensorrt_llm, tokenspeed

    return [aiter, cache_dit, flash_attn, flash_mla, flashinfer, ring_attention, sglang, tensorrt_llm, tokenspeed, vllm]


def test_the_table_has_every_promise_of_the_pages() -> None:
    said = {(name, argument) for name, function in functions().items() for argument in promises(function, "may be .*(itself|an input)")}
    # `promises` does not find these outputs, since their entries only say "as of `merge_state_v2`"
    as_of_another = {("sglang.merge_state_v1", "v_merged"), ("sglang.merge_state_v1", "s_merged")}
    assert said | as_of_another == set(MAY_BE)


def varied(array: Any, device: Device, rng: np.random.Generator) -> Any:
    """Returns an array of the same shape and dtype. Floats are replaced by other positive numbers; integers are
    kept."""
    if isinstance(array, list):
        return [varied(one, device, rng) for one in array]
    if not hasattr(array, "shape") or device.get(array).dtype.kind in "iub":
        return array
    got = device.get(array)
    return device.put(rng.uniform(0.5, 2, got.shape).astype(np.float32).astype(got.dtype))


def right_call(name: str, device: Device, rng: np.random.Generator) -> tuple[Callable[..., Any], Arguments]:
    right = Right(device)
    function, arguments = DROP_INS[name] if name in DROP_INS else (getattr(ops, name), lambda r: r.arguments(name))
    return function, {key: varied(value, device, rng) for key, value in arguments(right).items()}


def copied(value: Any, device: Device) -> Any:
    if isinstance(value, list):
        return [copied(one, device) for one in value]
    return device.put(device.get(value).copy()) if hasattr(value, "shape") else value


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("name", "output"), MAY_BE)
def test_an_output_may_be_an_input(name: str, output: str, variant: str, device: Device, rng: np.random.Generator) -> None:
    function, arguments = right_call(name, device, rng)
    more = VARIANTS[variant](Right(device))
    if not set(more) <= set(inspect.signature(function).parameters) or ("out" in more and output == "out"):
        pytest.skip("the function has no such arguments, or its result is of another dtype")
    for given in MAY_BE[name, output]:
        apart, onto = ({key: copied(value, device) for key, value in {**arguments, **more}.items()} for _ in range(2))
        first, _, index = given.partition("[")
        onto[output] = onto[first][int(index[:-1])] if index else onto[first]
        if output not in inspect.signature(function).parameters or apart.get(output) is None:
            apart[output] = copied(onto[output], device)
        function(**apart)
        function(**onto)
        for key in ("out", "out_lse", "out_stats", output):
            if hasattr(apart.get(key), "shape"):
                assert same_bits(device.get(apart[key]), device.get(onto[key])), (given, key)


CONTIGUOUS = {("expand_context_lens", "buffer"): 1, ("pack_rows", "x"): 2, ("pack_rows", "out"): 2, ("unpack_rows", "padded"): 2,
              ("unpack_rows", "out"): 2}  # fmt: skip
"""The number of last dims that must be contiguous, for arrays that differ from the default: 1 for payloads, else 0."""


def strided(array: np.ndarray, way: str, kept: int) -> np.ndarray:
    """Returns a copy in another layout: at an offset, with gaps, or with permuted dims. The last `kept` dims stay
    contiguous."""
    dims = array.ndim - kept
    if way == "offset":
        whole = np.full((array.shape[0] + 5, *array.shape[1:]), 77).astype(array.dtype)
        view = whole[3 : 3 + array.shape[0]]
    elif way == "gaps":
        wide = [2 * size + 1 if i < dims else size + 3 * (i == dims) for i, size in enumerate(array.shape)]
        view = np.full(wide, 77).astype(array.dtype)[tuple(slice(1, 2 * size + 1, 2) if i < dims else slice(size) for i, size in enumerate(array.shape))]
    else:
        order = (*reversed(range(dims)), *range(dims, array.ndim))
        view = np.full([array.shape[i] for i in order], 77).astype(array.dtype).transpose(np.argsort(order))
    view[...] = array
    return view


@pytest.mark.parametrize("way", ["offset", "gaps", "transposed"])
@pytest.mark.parametrize("kernel", CALLS)
def test_arrays_have_any_strides(kernel: str, way: str, device: Device, rng: np.random.Generator) -> None:
    """Arrays may have any strides. Only the last dim of payloads and the dims in CONTIGUOUS stay contiguous, since
    kernels have code for contiguous rows only."""
    function = getattr(ops, FUNCTION_OF[kernel])
    arguments = {key: varied(value, device, rng) for key, value in Right(device).arguments(kernel).items()}
    payloads = {key for key, value in arguments.items() for one in (value if isinstance(value, list) else [value])
                if hasattr(one, "shape") and one.shape and one.shape[-1] in (D, D // 2)}  # fmt: skip

    def moved(key: str, value: Any) -> Any:
        if isinstance(value, list):
            return [moved(key, one) for one in value]
        if not hasattr(value, "shape"):
            return value
        return device.put(strided(device.get(value), way, CONTIGUOUS.get((FUNCTION_OF[kernel], key), int(key in payloads))))

    plain, other = {key: copied(value, device) for key, value in arguments.items()}, {key: moved(key, value) for key, value in arguments.items()}
    function(**plain)
    function(**other)
    for key, value in plain.items():
        for one, two in zip(value, other[key]) if isinstance(value, list) else [(value, other[key])]:
            if hasattr(one, "shape"):
                assert same_bits(device.get(one), device.get(two)), key


def test_any_strides_are_promised_of_arrays_that_are_tried() -> None:
    tried = {(FUNCTION_OF[kernel], argument) for kernel, make in CALLS.items() for argument in make(Right(Device()))}
    said = {(name, argument) for name in FUNCTIONS for argument in promises(getattr(ops, name), "any strides")}
    assert said <= tried | {("combine_split_kv", "out_lse")} | {(name, "out_lse") for name in FUNCTIONS}, said - tried
