"""Every kernel as an operator of torch: `torch.ops.mlafix.<kernel>`.

An operator takes the kernel's arguments in the kernel's order, and a string that names the variant: the layout of the lse
and its base, "hn,e", as `mlafix.ops` has them. Mutated arguments are declared, and since kernels only fill what they
are given, the fake implementations have nothing to do.

Nobody calls these by hand: the functions of `mlafix.ops` do where torch must see the call (torch.compile, export, fake and
functional tensors, dispatch modes, subclasses), and go straight to the kernel elsewhere. Importing this module imports
torch; `mlafix` does so when it meets the first tensor.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.utils._device import DeviceContext

from .ops._launch import FAMILIES, Key
from .ops._types import Bound, Launch
from .ops._wrong import wrong

_MERGE_INPUTS = "Tensor prefix, Tensor prefix_lse, Tensor suffix, Tensor suffix_lse, SymInt context_rows"
_LIST_INPUTS = "Tensor v0, Tensor s0, " + ", ".join(f"Tensor? v{i}, Tensor? s{i}" for i in range(1, 8))
_OUTPUTS = "Tensor(a!) out, Tensor(b!)? out_lse"

SCHEMAS: dict[str, str] = {
    "merge_attn_states": f"{_OUTPUTS}, {_MERGE_INPUTS}",
    "merge_attn_states_fp8": f"{_OUTPUTS}, Tensor out_scale, {_MERGE_INPUTS}",
    "merge_attn_states_copy": f"{_OUTPUTS}, {_MERGE_INPUTS}",
    "merge_attn_states_copy_fp8": f"{_OUTPUTS}, Tensor out_scale, {_MERGE_INPUTS}",
    "merge_state_in_place": "Tensor(a!) v, Tensor(b!) s, Tensor v_other, Tensor s_other, Tensor? mask",
    "merge_states": f"{_OUTPUTS}, Tensor v, Tensor s",
    "merge_states_ragged": f"{_OUTPUTS}, Tensor v, Tensor s, Tensor indptr",
    "merge_states_list": f"{_OUTPUTS}, {_LIST_INPUTS}",
    "combine_split_kv": f"{_OUTPUTS}, Tensor partial, Tensor partial_lse",
    "fixup_zero_kv_rows": "Tensor(a!) out, Tensor(b!) lse, Tensor kv_lens, Tensor cu_seqlens",
    "mask_empty_context_lse": "Tensor(a!) lse, Tensor query_start_loc, Tensor context_start_loc",
    "mask_empty_context": "Tensor(a!) out, Tensor(b!)? lse, Tensor query_start_loc, Tensor context_start_loc",
    "fill_pad_rows": "Tensor(a!) out, Tensor(b!)? lse, SymInt live_rows",
    "fill_pad_rows_device": "Tensor(a!) out, Tensor(b!)? lse, Tensor live_rows",
    "clear_pad_flags": "Tensor(a!) flags, SymInt live_rows",
    "clear_pad_flags_device": "Tensor(a!) flags, Tensor live_rows",
    "mark_prefilling": "Tensor(a!) flags, Tensor computed, Tensor prompt, SymInt live_rows",
    "mark_prefilling_device": "Tensor(a!) flags, Tensor computed, Tensor prompt, Tensor live_rows",
    "expand_context_lens": "Tensor(a!) out, Tensor seq_lens, SymInt live_rows",
    "expand_context_lens_device": "Tensor(a!) out, Tensor seq_lens, Tensor live_rows",
    "merge_attn_stats": "Tensor(a!) out, Tensor(b!)? out_stats, Tensor prefix, Tensor prefix_stats, Tensor suffix, "
                        "Tensor suffix_stats, float softmax_scale",
    "quantize_fp8_static": "Tensor(a!) out, Tensor x, Tensor scale",
    "rmsnorm": "Tensor(a!) y, Tensor x, Tensor weight, float epsilon",
    "softmax": "Tensor(a!) y, Tensor x, float scale",
}
"""The arguments of each operator, in the kernel's order; `str variant` follows."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)
# What may watch calls on plain tensors. torch.compile answers the first one itself, and so must meet it first. Each look-up
# of a name costs as much as some of these questions.
compiling: Callable[[], bool] = torch.compiler.is_compiling
dynamo_traces: Callable[[], bool] = torch.compiler.is_dynamo_compiling
dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
function_modes: Callable[[], int] = torch._C._len_torch_function_stack
tracing: Callable[[], Any] = torch._C._get_tracing_state


def intercepted() -> bool:
    """Whether something watches calls on plain tensors: a compiler, a tracer or a mode."""
    if compiling() or dispatch_modes() or tracing() is not None:
        return True
    return function_modes() > 0 and not _only_default_devices()


def _only_default_devices() -> bool:
    """torch.set_default_device is a mode too, but has nothing to say on tensors that are there."""
    return all(isinstance(mode, DeviceContext) for mode in torch.overrides._get_current_function_mode_stack())


def must_see(tensor: torch.Tensor) -> bool:
    """Whether torch must see a call on this tensor: it stands for another, or something watches."""
    return intercepted() or type(tensor) not in _PLAIN


class Through:
    """Launches a kernel through torch's dispatcher."""

    def __init__(self, kernel: str, variant: str) -> None:
        self.operator = getattr(torch.ops.mlafix, kernel).default
        self.variant = variant

    def __call__(self, args: tuple[Any, ...], stream: Any = None) -> None:
        if stream is not None:
            raise wrong("stream", "None, since torch picks the stream of a traced call", stream)
        self.operator(*args, self.variant)

    def bind(self, args: tuple[Any, ...]) -> Bound:
        raise wrong("bind", "plain tensors outside of torch.compile and modes", "a traced call")


def through(kernel: str, key: Key) -> Launch:
    """The way to launch `kernel` in variant `key` so that torch sees it."""
    return Through(kernel, ",".join(key))


def _implementation(kernel: str) -> Callable[..., None]:
    family = FAMILIES[kernel]
    launches: dict[str, Launch] = {}

    def run(*args: Any) -> None:
        variant = args[-1]
        launch = launches.get(variant)
        if launch is None:
            launch = launches[variant] = family[tuple(variant.split(","))]
        launch(args[:-1])

    return run


def _fake(*args: Any) -> None:
    """Nothing: the outputs are arguments."""


def _register() -> torch.library.Library:
    library = torch.library.Library("mlafix", "DEF")
    for kernel, arguments in SCHEMAS.items():
        library.define(f"{kernel}({arguments}, str variant) -> ()", tags=(torch.Tag.pt2_compliant_tag,))
        implementation = _implementation(kernel)
        for key in ("CPU", "CUDA"):
            library.impl(kernel, implementation, key)
        torch.library.register_fake(f"mlafix::{kernel}", _fake, lib=library)
    return library


# The operators live as long as this object does.
_library = _register()
