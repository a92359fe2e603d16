"""Programs for torch: every function of `mlafix.ops` and `mlafix.compat` as a function of tensors that returns
tensors."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import torch

from drop_in_calls import CALLS, CHUNKS, OVER_RANKS, Call, Sizes
from mlafix import compat, ops
from mlafix.compat import aiter, sglang, torch_context_parallel, vllm
from numerics import BF16

I32, BOOL, U8 = torch.int32, torch.bool, torch.uint8


def all_functions() -> set[str]:
    """Returns the names of the public functions and classes of both packages, such as "softmax" and
    "vllm.merge_attn_states"."""
    found = {name for name in ops.__all__ if inspect.isfunction(getattr(ops, name))}
    for info in pkgutil.iter_modules(compat.__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"mlafix.compat.{info.name}")
            own = (name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__)
            found |= {f"{info.name}.{name}" for name in own if not name.startswith("_")}
    return found


WITHOUT = {"offences", "chunks_with_zero_kv"} | OVER_RANKS
"""Functions for which there is no program: those that give lists on the host, and those of several ranks."""


@dataclass(frozen=True)
class Program:
    """A function of tensors, and how to make its tensors.

    Args:
        run: makes the call. Arguments that the call writes are cloned first, and the clones are returned.
        make: returns the tensors for n tokens, H heads and head dim D.
        waits: true if the function reads a length from the device, as in its engine.
    """

    run: Callable[..., Any]
    make: Callable[[int, int, int], tuple[torch.Tensor, ...]]
    waits: bool = False


r = torch.randn


def ints(*values: int, dtype: Any = I32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


class _updated:  # noqa: N801 (reads as the function that it makes)
    """Wraps a function that updates some of its arguments. The wrapper passes clones of these arguments, and returns
    the clones."""

    def __init__(self, function: Callable[..., Any], *which: int) -> None:
        self.function, self.which = function, which

    def __call__(self, *tensors: Any) -> Any:
        given = [tensor.clone() if i in self.which else tensor for i, tensor in enumerate(tensors)]
        self.function(*given)
        return tuple(given[i] for i in self.which)


def _two(n: int, H: int, D: int) -> tuple[torch.Tensor, ...]:
    return r(n, H, D), r(n, H), r(n, H, D), r(n, H)


def _two_hn(n: int, H: int, D: int) -> tuple[torch.Tensor, ...]:
    return r(n, H, D), r(H, n), r(n, H, D), r(H, n)


def _offsets(n: int) -> tuple[torch.Tensor, ...]:
    return ints(0, 2, n), ints(0, 0, 3)


def _statistics(n: int, H: int) -> torch.Tensor:
    return torch.rand(n, H, 2) + 0.5


def _grouped(x: torch.Tensor) -> Any:
    scales = x.new_empty((x.shape[0], x.shape[1], 1))
    return ops.quantize_groups(x, ops.Fp8Groups(scales)).view(U8), scales


def _combined_and_turned(partial: torch.Tensor, lse: torch.Tensor, positions: torch.Tensor, table: torch.Tensor) -> Any:
    """Returns combined rows four times: plain, rotated, rotated with one scale, and rotated with a scale per head."""
    rope = ops.Rope(positions, table)
    scales = partial.new_empty((*partial.shape[1:4], 1))
    static, _ = ops.combine_split_kv(partial, lse, rope=rope, out_format=ops.Fp8(0.1))
    grouped, _ = ops.combine_split_kv(partial, lse, rope=rope, out_format=ops.Fp8Groups(scales))
    turned = ops.combine_split_kv(partial, lse, rope=rope)
    return *ops.combine_split_kv(partial, lse), *turned, static.view(U8), grouped.view(U8), scales


def _merged_and_gated(*states: torch.Tensor) -> Any:
    """Returns merged rows without a gate, with a gate per element, and with a gate per head."""
    heads, elements = states[1].mT, states[2] * 2
    return *ops.merge_attn_states(*states), *ops.merge_attn_states(*states, gate=elements), *ops.merge_attn_states(*states, gate=heads)


def _in_tiles(x: torch.Tensor, scales: torch.Tensor) -> Any:
    memory = scales.clone()
    out, _ = ops.merge_states(x[:, None], x.new_zeros((x.shape[0], 1, x.shape[1])), out_format=ops.NvFp4(memory, 2.0, tiles="128x4"))
    return out, memory


def _found(shape: Callable[[int, int], tuple[int, int]], check: Callable[..., None]) -> Callable[..., Any]:
    """Wraps a check in a function that returns its record and its flags. `shape` computes the record's shape from the
    first two dims of the first tensor."""

    def run(*x: torch.Tensor) -> Any:
        record = x[0].new_zeros(shape(x[0].shape[0], x[0].shape[1]), dtype=torch.int64)
        flags = x[0].new_zeros(16, dtype=I32)
        check(*x, record=record, flags=flags)
        return record, flags

    return run


def _blank_state(out: torch.Tensor, lse: torch.Tensor) -> Any:
    """Returns only the rows that are blanked. The others may have any contents."""
    made, made_lse = vllm.init_mla_context_partial(CHUNKS, out, lse, 5)
    return made[2:4].clone(), made_lse[:, 2:4].clone()


def _merged_in_steps(whole: torch.Tensor, whole_lse: torch.Tensor, half: torch.Tensor, half_lse: torch.Tensor) -> Any:
    merger = torch_context_parallel.SDPAMerger(True, 2)
    merger.step(whole, whole_lse, False)
    merger.step(half, half_lse, True)
    return merger.results()


def _mapped(n: int, H: int, D: int) -> tuple[torch.Tensor, ...]:
    return r(n, H, D), r(7, H, D), r(7, H), ints(0, 2, 4, 7), ints(6, 5, 4, 3, 2, 1, 0), ints(4, 0, 2)


def _floats(shape: tuple[int, ...], dtype: np.dtype) -> torch.Tensor:
    return (torch.rand(shape) + 0.5).to(torch.bfloat16 if dtype == BF16 else torch.float32)


def _with_tensors(call: Call) -> Program:
    """Returns a drop-in's program: a call of it with tensors of random numbers."""
    arguments = call.arguments(Sizes(5, 4, 64))
    names = [name for name, spec in arguments.items() if isinstance(spec, (tuple, np.ndarray))]
    others = {name: spec for name, spec in arguments.items() if name not in names}

    def run(*tensors: torch.Tensor) -> Any:
        return call.function(**dict(zip(names, tensors)), **others)

    def make(n: int, H: int, D: int) -> tuple[torch.Tensor, ...]:
        specs = call.arguments(Sizes(n, H, D))
        return tuple(torch.from_numpy(specs[name].copy()) if isinstance(specs[name], np.ndarray) else _floats(*specs[name]) for name in names)

    written = [names.index(name) for name in call.written.split()]
    return Program(_updated(run, *written) if written else run, make, call.waits)


PROGRAMS = {
    **{call.name: _with_tensors(call) for call in reversed(CALLS)},
    "merge_attn_states": Program(_merged_and_gated, _two_hn),
    "merge_state_in_place": Program(_updated(lambda *x: ops.merge_state_in_place(*x), 0, 1), _two),
    "merge_attn_stats": Program(lambda *x: ops.merge_attn_stats(*x, 0.5),
                                lambda n, H, D: (r(n, H, D), _statistics(n, H), r(n, H, D), _statistics(n, H))),
    "fixup_merge": Program(
        lambda *x: [*ops.fixup_merge(*x), *(one.view(U8) for one in ops.fixup_merge(*x, out_format=ops.Fp8(0.1)))],
        lambda n, H, D: (*_two(n, H, D), ints(0, 1), ints(0, 2, n))),
    "apply_sink": Program(lambda *x: ops.apply_sink(*x), lambda n, H, D: (r(n, H, D), r(n, H), r(H))),
    "merge_states": Program(_in_tiles, lambda n, H, D: (r(n, H, D), torch.full((128, -(-H * D // 64) * 4), 255, dtype=U8).view(torch.float8_e4m3fn))),
    "merge_states_ragged": Program(lambda *x: ops.merge_states_ragged(*x), lambda n, H, D: (r(n, H, D), r(n, H), ints(0, 2, 2, n))),
    "merge_states_mapped": Program(_updated(lambda *x: ops.merge_states_mapped(*x), 0), _mapped),
    "merge_states_list": Program(lambda a, b, c, d: ops.merge_states_list([a, c], [b, d]), _two),
    "combine_split_kv": Program(_combined_and_turned, lambda n, H, D: (r(3, n, 1, H, D), r(3, n, 1, H), torch.arange(n)[:, None], r(9, 16))),
    "fixup_zero_kv_rows": Program(_updated(lambda *x: ops.fixup_zero_kv_rows(*x), 0, 1),
                                  lambda n, H, D: (r(n, H, D), r(H, n), ints(0, 1), ints(0, 2, n))),
    "mask_empty_context_lse": Program(_updated(lambda *x: ops.mask_empty_context_lse(*x), 0), lambda n, H, D: (r(H, n), *_offsets(n))),
    "mask_empty_context": Program(_updated(lambda *x: ops.mask_empty_context(*x), 0, 1),
                                  lambda n, H, D: (r(n, H, D), r(H, n), *_offsets(n))),
    "blank_rows_without_indices": Program(_updated(lambda x, i, lse: ops.blank_rows_without_indices(x, i[:, None], lse), 0, 2),
                                          lambda n, H, D: (r(n, H, D), ints(*range(-1, n - 1)), r(H, n))),
    "visible_keys": Program(_updated(lambda *x: ops.visible_keys(*x), 0), lambda n, H, D: (ints(*[7] * n), ints(4, 1), ints(0, 1, n))),
    "check_states": Program(_found(lambda n, H: (n, H), lambda out, lse, lens, **to: ops.check_states(out, lse, lens=lens, **to)),
                            lambda n, H, D: (torch.where(r(n, H, D) > 1, torch.nan, 0.0), r(H, n), ints(*(i % 2 for i in range(n))))),
    "check_merge": Program(_found(lambda n, H: (n, H), lambda a, la, b, lb, **to: ops.check_merge(a, la, [a, b], [la, lb], **to)), _two_hn),
    "check_attention": Program(
        _found(lambda n, H: (n, H), lambda x, lse, k, lens, starts, **to: ops.check_attention(x, lse, x, k, k, lens=lens, cu_seqlens=starts, scale=0.1, **to)),
        lambda n, H, D: (r(n, H, D), r(H, n), r(n, 1, H, D), ints(n), ints(0, n))),
    "check_blocks": Program(
        _found(lambda n, H: (1, 2), lambda x, table, lens, **to: ops.check_blocks(x, table[None], lens, **to)),
        lambda n, H, D: (torch.where(r(n, H, D) > 1, torch.nan, 0.0), ints(1, 0), ints(2 * H))),
    "check_metadata": Program(
        _found(lambda n, H: (n, 1), lambda table, slots, lens, **to: ops.check_metadata(lens, slots=slots, block_table=table, pages=2, page_size=1, **to)),
        lambda n, H, D: (torch.ones((n, 2), dtype=I32), torch.arange(n), ints(*range(-1, n - 1)))),
    "fill_pad_rows": Program(_updated(lambda x, lse: ops.fill_pad_rows(x, x.shape[0] - 1, lse), 0, 1), lambda n, H, D: (r(n, H, D), r(H, n))),
    "clear_pad_flags": Program(_updated(lambda *x: ops.clear_pad_flags(*x), 0), lambda n, H, D: (torch.ones(n, dtype=BOOL), ints(2))),
    "mark_prefilling": Program(_updated(lambda *x: ops.mark_prefilling(*x, 2), 0),
                               lambda n, H, D: (torch.ones(n, dtype=BOOL), ints(1, 2, 3), ints(2, 2, 4))),
    "is_prefilling": Program(lambda *x: ops.is_prefilling(*x, 2, padded=5), lambda n, H, D: (ints(*range(n)), ints(*[2] * n))),
    "expand_context_lens": Program(lambda b, s: ops.expand_context_lens(b.clone(), s, s.shape[0], 3).clone(),
                                   lambda n, H, D: (torch.zeros(4 * n, dtype=I32), ints(*range(n)))),
    "pad_metadata": Program(
        _updated(lambda lens, starts, slots, table: ops.pad_metadata(lens, 2, cu_seqlens=starts, slots=slots, block_table=table), 0, 1, 2, 3),
        lambda n, H, D: (ints(*range(n)), ints(*range(n + 1)), torch.arange(2 * n), torch.ones((n, H), dtype=I32))),
    "cumulate_lens": Program(lambda x: ops.cumulate_lens(x), lambda n, H, D: (ints(*range(n)),)),
    "lens_of_rank": Program(lambda x: ops.lens_of_rank(x, 1, 2), lambda n, H, D: (ints(*range(n)),)),
    "pages_of_rank": Program(
        _updated(lambda out, *x: ops.pages_of_rank(out, *x, 1, 2, 4), 0),
        lambda n, H, D: (torch.ones((n, H), dtype=I32), torch.arange(64).view(1, -1), ints(*[0] * n), ints(*range(n)))),
    "quantize_fp8_static": Program(lambda x: ops.quantize_fp8_static(x, 0.5).view(U8), lambda n, H, D: (r(n, H, D),)),
    "quantize_groups": Program(_grouped, lambda n, H, D: (r(n, H, D),)),
    "rmsnorm": Program(lambda *x: ops.rmsnorm(*x), lambda n, H, D: (r(n, D), r(D))),
    "rmsnorm_of_sums": Program(_updated(lambda x, weight, residual: ops.rmsnorm(x, weight, residual=residual, out_format=ops.Fp8(0.1)).view(U8), 2),
                               lambda n, H, D: (r(n, H, D), r(D), r(n, H, D))),
    "combine_experts": Program(lambda *x: ops.combine_experts(x[0], x[1][:, None], x[2], shared=x[3]),
                               lambda n, H, D: (r(H, D), ints(*range(-1, n - 1)), r(n, 1), r(n, D))),
    "softmax": Program(lambda x: ops.softmax(x, 0.5), lambda n, H, D: (r(n, D),)),
    "mix_depth": Program(lambda *x: ops.mix_depth(*x), lambda n, H, D: (r(n, D), r(n, 3, D), r(D))),
    "store_rows": Program(_updated(lambda *x: ops.store_rows(*x), 0), lambda n, H, D: (r(n, 2, H, D), r(n, H, D), ints(*range(1, n), -1))),
    "zero_blocks": Program(_updated(lambda *x: ops.zero_blocks(*x), 0), lambda n, H, D: (r(n, 2, 3, H, D), ints(1, -1, 3))),
    "pack_rows": Program(lambda x, s: ops.pack_rows(x, s, 3, pad=0.5), lambda n, H, D: (r(n, H, D), ints(0, 2, n))),
    "unpack_rows": Program(lambda p, s: ops.unpack_rows(p, s, out=p.new_zeros((4, *p.shape[2:]))), lambda n, H, D: (r(2, 3, H, D), ints(0, 2, 4))),
    "apply_rope": Program(_updated(lambda *x: ops.apply_rope(*x), 0), lambda n, H, D: (r(n, H, D), torch.arange(n), r(9, D))),
    "aiter.mla_reduce_v1": Program(
        _updated(lambda out, lse, parts, lses, starts, rows, named: aiter.mla_reduce_v1(parts, lses, starts, rows, named, 2, 4, out, lse), 0, 1),
        lambda n, H, D: (r(4, H, D), r(4, H), r(8, 1, H, D), r(8, 1, H, 1), ints(0, 2, 4), ints(0, 2, 2, 4).view(2, 2), ints(0, 2, 4, 6))),
    "sglang.correct_attn_out": Program(lambda *x: sglang.correct_attn_out(*x, 1, None), lambda n, H, D: (r(n, H, D), r(3, n, H))),
    "vllm.init_mla_context_partial": Program(_blank_state, lambda n, H, D: (r(3, H, D), r(H, 3))),
    "torch_context_parallel.SDPAMerger": Program(_merged_in_steps, lambda n, H, D: (r(2, H, 2 * n, D), r(2, H, 2 * n), r(2, H, n, D), r(2, H, n))),
    "vllm.correct_attn_out": Program(lambda out, lses: vllm.correct_attn_out(out.clone(), lses, 1, None), lambda n, H, D: (r(n, H, D), r(3, n, H))),
}  # fmt: skip
"""The program of each function that is not in WITHOUT, by the function's name. A drop-in's program makes its first call
in CALLS, unless the program is here."""
