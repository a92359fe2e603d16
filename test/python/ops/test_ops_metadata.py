"""Tests the functions for flags and lengths of padded batches, and those for rows that are not attention states:
quantize_fp8_static, rmsnorm and softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contract
import mlafix
from devices import Device
from mlafix import ops
from numerics import BF16, E4M3, F16, F32, garbage, same_bits, widen
from states import LAYOUTS, lay_out

DTYPES = [BF16, F16, F32]


@pytest.mark.parametrize("where", ["host", "device"])
def test_clear_pad_flags(where: str, device: Device, rng: np.random.Generator) -> None:
    for n, live in [(10, 4), (10, 0), (10, 10), (0, 0), (1000, 999)]:
        flags = rng.random(n) < 0.7
        on_device = device.put(flags.copy())
        ops.clear_pad_flags(on_device, live if where == "host" else device.scalar(live))
        assert device.get(on_device).tolist() == (flags & (np.arange(n) < live)).tolist()


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_mark_prefilling_writes_every_flag(dtype: type, where: str, device: Device, rng: np.random.Generator) -> None:
    for n, m, live in [(8, 8, 8), (8, 8, 5), (8, 5, 5), (8, 5, 7), (8, 0, 0), (0, 3, 0), (1024, 1024, 1)]:
        computed, prompt = (rng.integers(0, 4, m).astype(dtype) for _ in range(2))
        flags = device.put(np.full(n, 0xFF, np.uint8).view(np.bool_) | True)
        ops.mark_prefilling(flags, device.put(computed), device.put(prompt), live if where == "host" else device.scalar(live))
        assert device.get(flags).tolist() == contract.prefilling(computed, prompt, n, live).tolist()


def test_is_prefilling_allocates_beside_its_inputs(device: Device) -> None:
    computed, prompt = (device.put(np.array(x, np.int64)) for x in ([0, 5, 2], [4, 5, 3]))
    for flags, expected in [(ops.is_prefilling(computed, prompt), [True, False, True]),
                            (ops.is_prefilling(computed, prompt, 1, padded=5), [True, False, False, False, False]),
                            (ops.is_prefilling(computed, prompt, padded=2), [True, False]),
                            (ops.is_prefilling(computed, prompt, device.scalar(3)), [True, False, True])]:
        assert type(flags) is type(computed) and device.get(flags).tolist() == expected
    for padded, message in ((-1, "expected 0 or more, got -1"), (2.0, "expected an integer, got 2.0")):
        with pytest.raises(mlafix.ArgumentError, match=f'argument "padded": {message}'):
            ops.is_prefilling(computed, prompt, padded=padded)  # type: ignore[arg-type]
    with pytest.raises(mlafix.ArgumentError, match='argument "live_rows": expected a value from 0 to 2.*got 3'):
        ops.is_prefilling(computed, prompt, 3, padded=2)


@pytest.mark.parametrize("where", ["host", "device"])
def test_expand_context_lens_fills_the_front_of_the_buffer(where: str, device: Device, rng: np.random.Generator) -> None:
    for decodes, longest, requests, live in [(4, 3, 4, 4), (4, 3, 4, 2), (4, 1, 4, 4), (5, 4, 3, 5), (0, 4, 3, 0), (300, 2, 300, 1)]:
        lens = rng.integers(0, 6, requests).astype(np.int32)
        buffer = device.put(np.full(decodes * longest + 7, -77, np.int32))
        out = ops.expand_context_lens(buffer, device.put(lens), decodes, longest,
                                      live_rows=live if where == "host" else device.scalar(live))
        got = device.get(out)
        assert got.tolist() == contract.context_lens(lens, decodes, longest, live).tolist() and got.dtype == np.int32
        assert got.flags.c_contiguous and (device.get(buffer)[decodes * longest :] == -77).all()
        if device.is_torch:
            # a tensor without elements has address 0
            assert out.is_contiguous() and out.data_ptr() in (buffer.data_ptr(), 0)
        else:
            assert np.shares_memory(out, buffer) or decodes == 0


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_expand_context_lens_of_any_lengths(data: st.DataObject) -> None:
    decodes, longest, requests = (data.draw(st.integers(low, 9)) for low in (0, 1, 0))
    lens = np.array(data.draw(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=requests, max_size=requests)), np.int32)
    live = data.draw(st.integers(-2, 12))
    buffer = np.full(decodes * longest, -77, np.int32)
    count = live if 0 <= live <= decodes else np.array([live], np.int32)
    out = ops.expand_context_lens(buffer, lens, decodes, longest, live_rows=count)
    # Lengths near the limits of i32 may wrap around before they are clamped, as they do in torch. They are not
    # compared.
    ordinary = np.abs(lens.astype(np.int64)) < 2**31 - 16
    rows = np.arange(decodes)
    checked = [i for i in rows if i >= requests or ordinary[i]]
    assert out[checked].tolist() == contract.context_lens(lens, decodes, longest, live)[checked].tolist()


@pytest.mark.parametrize("arguments, message", [
    (dict(num_decodes=4, max_decode_len=3), 'argument "buffer": expected room for 4 x 3 = 12 lengths, got 10'),
    (dict(num_decodes=-1, max_decode_len=3), 'argument "num_decodes": expected 0 or more, got -1'),
    (dict(num_decodes=2, max_decode_len=0), 'argument "max_decode_len": expected 1 or more, got 0'),
])
def test_expand_context_lens_checks_the_capacity(arguments: dict[str, int], message: str, device: Device) -> None:
    buffer = device.put(np.full(10, -77, np.int32))
    with pytest.raises(mlafix.ArgumentError, match=message):
        ops.expand_context_lens(buffer, device.put(np.ones(4, np.int32)), **arguments)
    with pytest.raises(mlafix.ArgumentError, match=r'argument "buffer": expected 1 dim \[capacity\], got 2'):
        ops.expand_context_lens(buffer.reshape(2, 5), device.put(np.ones(4, np.int32)), 1, 1)
    assert (device.get(buffer) == -77).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_quantize_fp8_rounds_once(dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    """The reciprocal of the scale is rounded to f32, and its product with an element is rounded to fp8 once. Results
    are compared bit for bit."""
    for dim, scale in [(64, 1.0), (33, 0.37), (7168, 0.0021)]:
        x = np.concatenate([rng.normal(0, 1, (5, dim)).astype(np.float32).astype(dtype), garbage(rng, (3, dim), dtype)])
        given = ops.quantize_fp8_static(device.put(x), device.put(np.full(1, scale, np.float32)))
        got = device.get(given)
        assert got.dtype == E4M3
        contract.quantize_fp8(x, scale).check(got, "out")
        assert same_bits(got, device.get(ops.quantize_fp8_static(device.put(x), scale)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [1, 33, 128, 4096])
def test_rmsnorm_and_softmax(dim: int, dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    x = rng.normal(0, 3, (6, dim)).astype(np.float32).astype(dtype)
    weight = rng.normal(1, 0.3, dim).astype(np.float32).astype(dtype)
    on_device = device.put(x.copy())
    got = ops.rmsnorm(on_device, device.put(weight), 1e-5)
    loose(contract.rmsnorm(x, weight, 1e-5)).check(device.get(got), "rmsnorm")
    loose(contract.softmax(x, 0.7)).check(device.get(ops.softmax(on_device, 0.7)), "softmax")
    assert ops.softmax(on_device, 0.7, out=on_device) is on_device  # The input is also the output.
    loose(contract.softmax(x, 0.7)).check(device.get(on_device), "softmax in place")


def loose(expected: contract.Expected) -> contract.Expected:
    """Widens the tolerance: an f32 sum of thousands of elements has a few more units of error than one product."""
    return contract.Expected(expected.value, expected.magnitude * 5, expected.exact)


@pytest.mark.parametrize("dim", [3, 576, 4096])
def test_rows_bits_do_not_depend_on_their_batch(dim: int, device: Device, rng: np.random.Generator) -> None:
    """N9: the bits of a row depend neither on the other rows of its batch nor on its place in memory."""
    x = rng.normal(0, 3, (19, dim)).astype(np.float32).astype(BF16)
    weight = device.put(rng.normal(1, 0.3, dim).astype(np.float32).astype(BF16))
    calls: list[Any] = [lambda a, **to: ops.rmsnorm(a, weight, **to), ops.softmax, lambda a: ops.quantize_fp8_static(a, 0.1)]
    for call in calls:
        everything = device.get(call(device.put(x)))
        assert same_bits(device.get(call(device.put(x[7:8]))), everything[7:8])
        for layout in LAYOUTS:
            laid_out = device.put(lay_out(x[:, None], layout)[:, 0])
            assert same_bits(device.get(call(laid_out)), everything), layout
            if call != calls[-1]:
                assert same_bits(device.get(call(laid_out, out=laid_out)), everything), f"in place, {layout}"
        assert not np.isnan(widen(everything)).any()


def test_outputs_given_are_returned(device: Device) -> None:
    x = device.put(np.ones((2, 128), np.float32))
    out = device.poisoned((2, 128), F32)
    assert ops.softmax(x, out=out) is out
    fp8 = device.poisoned((2, 128), E4M3)
    assert ops.quantize_fp8_static(x, 2.0, out=fp8) is fp8 and (widen(device.get(fp8)) == 0.5).all()
