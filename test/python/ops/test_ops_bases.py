"""Tests merges in which the lses of prefix, suffix and result have different bases."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import contract
from devices import Device
from mlafix import ops
from numerics import BF16, E4M3, F32, poison, same_bits
from states import EMPTY, EMPTY_FA2, NAN, ORDINARY, ZERO, States, make_states

N, H, D = 9, 4, 64
BASE = {"e": np.e, "2": 2.0}
SIDES = [("2", "e", "e"), ("e", "2", "2"), ("2", "2", "e")]
"""The bases of prefix, suffix and result. sglang#40903 and vllm#52796 have the first triple: FlashInfer's prefix with
FlashAttention's suffix."""


def states(rng: np.random.Generator, count: int, dtype: np.dtype = BF16) -> States:
    """Returns random states without faint rows. The lses of faint rows are near -600, so a conversion to another base
    would round off too much of them."""
    return make_states(rng, count, N, H, D, dtype, kinds=rng.choice([ORDINARY, EMPTY, EMPTY_FA2, NAN, ZERO], (count, N, H), p=[0.5, 0.15, 0.15, 0.05, 0.15]))


def in_base(lse: np.ndarray, base: str) -> np.ndarray:
    """Converts a natural lse to another base. The result is rounded once, to f32."""
    return (lse.astype(np.float64) / np.log(BASE[base])).astype(np.float32)


def check(got: Any, got_lse: Any, v: np.ndarray, lses: list[np.ndarray], bases: tuple[str, ...], out_base: str, dtype: np.dtype, **how: Any) -> None:
    """Compares a merge with f64. Rows are [n, H, D] and lses [n, H]; each side has its own base."""
    with np.errstate(invalid="ignore"):
        natural = np.stack([lse.astype(np.float64) * np.log(BASE[base]) for lse, base in zip(lses, bases)])
    want, total = contract.merge(v, natural, out_dtype=dtype, **how)
    want.check(got, "out")
    lse = total.value / np.log(BASE[out_base])
    contract.Expected(lse, np.maximum(1, np.nan_to_num(np.abs(lse), posinf=1, neginf=1)), ~np.isfinite(lse)).check(got_lse, "lse")


@pytest.mark.parametrize("bases", SIDES, ids="-".join)
@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_prefix_suffix_and_result_have_bases_of_their_own(dtype: np.dtype, bases: tuple[str, str, str], device: Device,
                                                          rng: np.random.Generator) -> None:
    made = states(rng, 2, dtype)
    lses = [in_base(made.s[i], bases[i]) for i in range(2)]
    inputs = [device.put(x) for x in (made.v[0], lses[0], made.v[1], lses[1])]
    out, lse = device.put(poison((N, H, D), dtype)), device.put(poison((N, H), F32))
    ops.merge_attn_states(*inputs, out=out, out_lse=lse, context_rows=7, lse_layout="nh", base=bases)  # type: ignore[arg-type]
    present = np.ones((2, N, H), bool)
    present[0, 7:] = False
    check(device.get(out), device.get(lse), made.v, lses, bases, bases[2], dtype, present=present)


@pytest.mark.parametrize("bases", SIDES, ids="-".join)
def test_rows_past_the_context_are_copies_in_the_base_of_the_result(bases: tuple[str, str, str], device: Device, rng: np.random.Generator) -> None:
    """Rows past the context keep the suffix's payload bit for bit, and its lses of +inf and NaN. Other lses are
    converted to the base of the result."""
    made = states(rng, 2)
    lses = [in_base(made.s[i], bases[i]) for i in range(2)]
    lses[1][0], lses[1][1, 0] = np.inf, np.nan
    inputs = [device.put(np.ascontiguousarray(x)) for x in (made.v[0], lses[0].T, made.v[1], lses[1].T)]
    out, lse = ops.merge_attn_states(*inputs, context_rows=0, copy_past_context=True, base=bases)  # type: ignore[arg-type]
    assert same_bits(device.get(out), made.v[1])
    want = lses[1].astype(np.float64) * (np.log(BASE[bases[1]]) / np.log(BASE[bases[2]]))
    np.testing.assert_allclose(device.get(lse).T, want, rtol=2e-7)


@pytest.mark.parametrize(("form", "bases"), [("static", SIDES[0]), ("groups", SIDES[1])], ids=["static", "groups"])
def test_results_in_a_format_have_bases_of_their_own(form: str, bases: tuple[str, str, str], device: Device, rng: np.random.Generator) -> None:
    """A merge into a format may have different bases. It gives the bits of the same merge without the format, followed
    by a quantiser."""
    v, s = rng.normal(0, 1, (2, N, H, D)).astype(np.float32), rng.normal(0, 2, (2, N, H)).astype(np.float32)
    inputs = [device.put(x) for x in (v[0], s[0], v[1], s[1])]
    lens, starts = device.put(np.array([1, 0], np.int32)), device.put(np.array([0, 4, N], np.int32))
    sides: Any = {"base": bases}
    for merge, more, context in ((ops.merge_attn_states, (), N), (ops.fixup_merge, (lens, starts), 4)):
        plain, total = ops.merge_attn_states(*inputs, context_rows=context, lse_layout="nh", **sides)
        scales, others = (device.put(poison((N, H, 2), F32)) for _ in range(2))
        scale = device.put(np.full(1, 0.5, np.float32))
        out, lse = merge(*inputs, *more, out_format=ops.Fp8(scale) if form == "static" else ops.Fp8Groups(scales), lse_layout="nh", **sides)  # type: ignore[operator]
        if form == "static":
            want = ops.quantize_fp8_static(plain.reshape((N, H * D)), scale).reshape((N, H, D))
        else:
            want = ops.quantize_groups(plain, ops.Fp8Groups(others))
            assert same_bits(device.get(scales), device.get(others))
        assert same_bits(device.get(out), device.get(want)) and device.get(out).dtype == E4M3
        assert same_bits(device.get(lse), device.get(total))


MANY: dict[str, Callable[..., Any]] = {
    "merge_states": lambda d, v, s, **how: ops.merge_states(d.put(v.transpose(1, 0, 2, 3)), d.put(s.transpose(1, 0, 2)), **how),
    "merge_states_list": lambda d, v, s, **how: ops.merge_states_list([d.put(x) for x in v], [d.put(x) for x in s], **how),
    "merge_states_ragged": lambda d, v, s, **how: ops.merge_states_ragged(
        d.put(np.ascontiguousarray(v.transpose(1, 0, 2, 3)).reshape(-1, H, D)), d.put(np.ascontiguousarray(s.transpose(1, 0, 2)).reshape(-1, H)),
        d.put(np.arange(N + 1, dtype=np.int32) * len(v)), **how),
    "combine_split_kv": lambda d, v, s, **how: [x[0] for x in ops.combine_split_kv(d.put(v[:, None]), d.put(s[:, None]), **how)],
}


@pytest.mark.parametrize("base", ["2", "e"])
@pytest.mark.parametrize("function", MANY)
def test_many_states_merge_into_a_result_in_another_base(function: str, base: str, device: Device, rng: np.random.Generator) -> None:
    made, other = states(rng, 3), "e" if base == "2" else "2"
    lses = [in_base(lse, base) for lse in made.s]
    out, lse = MANY[function](device, made.v, np.stack(lses), base=(base, other))
    check(device.get(out), device.get(lse), made.v, lses, (base,) * 3, other, BF16)
    quantised, again = MANY[function](device, made.v, np.stack(lses), base=(base, other), out_format=ops.Fp8(device.put(np.ones(1, np.float32))))
    assert device.get(quantised).dtype == E4M3 and same_bits(device.get(again), device.get(lse))


def test_in_place_the_other_state_has_a_base_of_its_own(device: Device, rng: np.random.Generator) -> None:
    made = states(rng, 2)
    lses = [made.s[0], in_base(made.s[1], "2")]
    v, s = device.put(made.v[0].copy()), device.put(lses[0].copy())
    ops.merge_state_in_place(v, s, device.put(made.v[1]), device.put(lses[1]), base=("e", "2"))
    check(device.get(v), device.get(s), made.v, lses, ("e", "2"), "e", BF16)


def test_a_sink_joins_a_state_whose_result_is_in_another_base(device: Device, rng: np.random.Generator) -> None:
    made = states(rng, 1)
    sinks, lse = rng.normal(0, 2, H).astype(np.float32), in_base(made.s[0], "2")
    out, total = ops.apply_sink(device.put(made.v[0]), device.put(lse), device.put(sinks), base=("2", "e"))
    payloads = np.stack([made.v[0], np.zeros_like(made.v[0])])
    check(device.get(out), device.get(total), payloads, [lse, np.broadcast_to(sinks, (N, H))], ("2", "e"), "e", BF16)


def test_sglang_40903_a_prefix_in_base_2_is_not_weighed_as_one_in_base_e(device: Device, rng: np.random.Generator) -> None:
    """The merge of a cached prefix of 4096 keys with new tokens is right. FlashInfer's lse of the prefix is in base 2,
    and the lse of the new tokens in base e (also vllm#52796)."""
    logits = rng.normal(0, 1, (H, N, 4096 + 64))
    values = rng.normal(0, 1, (4096 + 64, D))
    parts = slice(0, 4096), slice(4096, None)

    def attention(keys: slice) -> tuple[np.ndarray, np.ndarray]:
        weights = np.exp(logits[..., keys])
        total = weights.sum(axis=-1, keepdims=True)
        return (weights / total @ values[keys]).transpose(1, 0, 2), np.log(total[..., 0])

    (prefix, prefix_lse), (suffix, suffix_lse) = (attention(keys) for keys in parts)
    inputs = [device.put(x.astype(np.float32)) for x in (np.ascontiguousarray(prefix), prefix_lse / np.log(2), np.ascontiguousarray(suffix), suffix_lse)]
    whole, whole_lse = attention(slice(None))
    out, lse = ops.merge_attn_states(*inputs, base=("2", "e", "e"), lse_layout="hn")
    np.testing.assert_allclose(device.get(out), whole, rtol=0, atol=2e-6)
    np.testing.assert_allclose(device.get(lse), whole_lse, rtol=1e-6)
    wrong, _ = ops.merge_attn_states(*inputs, lse_layout="hn")
    # if the call does not pass the bases, the result is as wrong as in the reports
    assert np.abs(device.get(wrong) - whole).mean() > 0.05 * np.abs(whole).mean()


def test_one_base_and_a_tuple_say_the_same(device: Device, rng: np.random.Generator) -> None:
    made = states(rng, 2)
    s = [np.ascontiguousarray(x.T) for x in made.s]
    pair = [device.put(x) for x in (made.v[0], s[0], made.v[1], s[1])]
    want = ops.merge_attn_states(*pair, base="2")
    for how in ("2", ("2", "2", "2")):
        for _ in range(2):  # a second call with the same tensors takes another path
            got = ops.merge_attn_states(*pair, base=how)  # type: ignore[arg-type]
            assert all(same_bits(device.get(a), device.get(b)) for a, b in zip(got, want)), how


def test_both_layouts_say_the_same(device: Device, rng: np.random.Generator) -> None:
    made = states(rng, 2)
    parts, lses = device.put(np.ascontiguousarray(made.v.transpose(1, 0, 2, 3)).reshape(-1, H, D)), np.ascontiguousarray(made.s.transpose(1, 0, 2)).reshape(-1, H)
    indptr = device.put(np.arange(N + 1, dtype=np.int32) * 2)
    turned = device.put(np.ascontiguousarray(lses.T))
    nh = ops.merge_states_ragged(parts, device.put(lses), indptr)
    hn = ops.merge_states_ragged(parts, turned, indptr, lse_layout="hn")
    assert same_bits(device.get(hn[0]), device.get(nh[0])) and same_bits(np.ascontiguousarray(device.get(hn[1]).T), device.get(nh[1]))
    mapped, mapped_lse = device.put(poison((N, H, D), BF16)), device.put(poison((H, N), F32))
    ops.merge_states_mapped(mapped, parts, turned, indptr, out_lse=mapped_lse, lse_layout="hn")
    assert same_bits(device.get(mapped), device.get(nh[0])) and same_bits(device.get(mapped_lse), device.get(hn[1]))
    split = [device.put(x) for x in (np.ascontiguousarray(made.v[:, None]), np.ascontiguousarray(made.s[:, None].swapaxes(2, 3)))]
    out, lse = ops.combine_split_kv(*split, lse_layout="hn")
    assert tuple(lse.shape) == (1, H, N) and same_bits(np.ascontiguousarray(device.get(lse)[0].T), device.get(nh[1]))
