"""Every way to merge K states, behind one face: what the contract says of one holds for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from devices import Device
from mlafix import ops
from mlafix.compat import flash_attn, flashinfer, sglang, vllm
from numerics import F32, poison
from states import lay_out

Result = tuple[np.ndarray, np.ndarray]
Run = Callable[[Device, np.ndarray, np.ndarray, str, str], Result]


@dataclass(frozen=True)
class Variant:
    """`run(device, v [K, n, H, D], s [K, n, H], base, layout)` gives out [n, H, D] and lse [n, H]."""

    name: str
    run: Run
    counts: tuple[int, ...]
    bases: tuple[str, ...] = ("e", "2")
    dtypes: tuple[str, ...] = ("bfloat16", "float16", "float32")

    def __repr__(self) -> str:
        return self.name


def _put(device: Device, array: np.ndarray, layout: str) -> Any:
    return device.put(lay_out(array, layout))


def _outputs(device: Device, v: np.ndarray, layout: str, transposed: bool = False) -> tuple[Any, Any]:
    shape = v.shape[-3:]
    rows = shape[1::-1] if transposed else shape[:2]
    return _put(device, poison(shape, v.dtype), layout), _put(device, poison(rows, F32), layout)


def _merge(lse_layout: str) -> Run:
    def run(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
        turn = (lambda x: x.T) if lse_layout == "hn" else (lambda x: x)
        out, lse = _outputs(device, v, layout, lse_layout == "hn")
        inputs = [_put(device, x, layout) for x in (v[0], turn(s[0]), v[1], turn(s[1]))]
        got = ops.merge_attn_states(*inputs, out=out, out_lse=lse, lse_layout=lse_layout, base=base)  # type: ignore[arg-type]
        assert got[0] is out and got[1] is lse
        return device.get(out), turn(device.get(lse))

    return run


def _merge_onto(side: int) -> Run:
    """In place: the output is one of the inputs (N11)."""

    def run(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
        vs = [_put(device, x, layout) for x in v]
        ss = [_put(device, np.ascontiguousarray(x.T), layout) for x in s]
        ops.merge_attn_states(vs[0], ss[0], vs[1], ss[1], out=vs[side], out_lse=ss[side], base=base)  # type: ignore[arg-type]
        return device.get(vs[side]), device.get(ss[side]).T

    return run


def _in_place(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    a, b = (_put(device, x, layout) for x in v)
    sa, sb = (_put(device, x, layout) for x in s)
    ops.merge_state_in_place(a, sa, b, sb, base=base)  # type: ignore[arg-type]
    return device.get(a), device.get(sa)


def _dense(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    out, lse = _outputs(device, v, layout)
    ops.merge_states(_put(device, v.transpose(1, 0, 2, 3), layout), _put(device, s.transpose(1, 0, 2), layout), out=out,
                     out_lse=lse, base=base)  # type: ignore[arg-type]
    return device.get(out), device.get(lse)


def _ragged(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    k, n, heads, dim = v.shape
    out, lse = _outputs(device, v, layout)
    flat_v = v.transpose(1, 0, 2, 3).reshape(n * k, heads, dim)
    flat_s = s.transpose(1, 0, 2).reshape(n * k, heads)
    indptr = device.put(np.arange(n + 1, dtype=np.int32) * k)
    ops.merge_states_ragged(_put(device, flat_v, layout), _put(device, flat_s, layout), indptr, out=out, out_lse=lse,
                            base=base)  # type: ignore[arg-type]
    return device.get(out), device.get(lse)


def _list(lse_layout: str) -> Run:
    def run(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
        turn = (lambda x: np.ascontiguousarray(x.T)) if lse_layout == "hn" else (lambda x: x)
        out, lse = _outputs(device, v, layout, lse_layout == "hn")
        ops.merge_states_list([_put(device, x, layout) for x in v], [_put(device, turn(x), layout) for x in s], out=out,
                              out_lse=lse, lse_layout=lse_layout, base=base)  # type: ignore[arg-type]
        return device.get(out), turn(device.get(lse))

    return run


def _split(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    out, lse = _outputs(device, v, layout)
    ops.combine_split_kv(_put(device, v[:, None], layout), _put(device, s[:, None], layout), out=out[None], out_lse=lse[None],
                         base=base)  # type: ignore[arg-type]
    return device.get(out), device.get(lse)


def _vllm(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    out, lse = _outputs(device, v, layout, True)
    inputs = [_put(device, x, layout) for x in (v[0], s[0].T, v[1], s[1].T)]
    assert vllm.merge_attn_states(out, *inputs, lse) is None  # type: ignore[func-returns-value]
    return device.get(out), device.get(lse).T


def _sglang(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    out, lse = sglang.merge_state_v2(*(_put(device, x, layout) for x in (v[0], s[0], v[1], s[1])))
    return device.get(out), device.get(lse)


def _flashinfer(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    out, lse = flashinfer.merge_state(*(_put(device, x, layout) for x in (v[0], s[0], v[1], s[1])))
    return device.get(out), device.get(lse)


def _flash_attn(device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str) -> Result:
    lse = np.ascontiguousarray(s[:, None].swapaxes(2, 3))  # [S, B, H, L], passed as its transposed view
    out, got = flash_attn.flash_attn_combine(_put(device, v[:, None], layout), device.put(lse.swapaxes(2, 3)))
    return device.get(out)[0], device.get(got)[0]


PAIR = (2,)
MANY = (1, 2, 3, 5)
VARIANTS = [
    Variant("merge_attn_states-hn", _merge("hn"), PAIR),
    Variant("merge_attn_states-nh", _merge("nh"), PAIR),
    Variant("merge_attn_states-onto-prefix", _merge_onto(0), PAIR),
    Variant("merge_attn_states-onto-suffix", _merge_onto(1), PAIR),
    Variant("merge_state_in_place", _in_place, PAIR),
    Variant("merge_states", _dense, (*MANY, 11)),
    Variant("merge_states_ragged", _ragged, (*MANY, 11)),
    Variant("merge_states_list-nh", _list("nh"), (*MANY, 8)),
    Variant("merge_states_list-hn", _list("hn"), (3,)),
    Variant("combine_split_kv", _split, (*MANY, 11)),
    Variant("vllm.merge_attn_states", _vllm, PAIR, bases=("e",)),
    Variant("sglang.merge_state_v2", _sglang, PAIR, bases=("e",)),
    Variant("flashinfer.merge_state", _flashinfer, PAIR, bases=("2",)),
    Variant("flash_attn.flash_attn_combine", _flash_attn, MANY, bases=("e",)),
]
BASES = {"e": np.e, "2": 2.0}
