"""Calls a library of TVM-FFI functions from JAX, through jax-tvm-ffi."""

from __future__ import annotations

import os

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jax_tvm_ffi = pytest.importorskip("jax_tvm_ffi")
tvm_ffi = pytest.importorskip("tvm_ffi")

N, HEADS, DIM = 5, 2, 8


def test_a_jitted_function_calls_a_kernel() -> None:
    merge = tvm_ffi.load_module(os.environ["MLAFIX_TEST_MERGE"]).merge_attn_states
    jax_tvm_ffi.register_ffi_target("mlafix.merge_attn_states", merge, ["rets", "args", "attrs.context_rows"], platform="cpu")

    @jax.jit
    def merged(*states: jax.Array) -> tuple[jax.Array, jax.Array]:
        results = (jax.ShapeDtypeStruct((N, HEADS, DIM), np.float32), jax.ShapeDtypeStruct((HEADS, N), np.float32))
        out, lse = jax.ffi.ffi_call("mlafix.merge_attn_states", results)(*states, context_rows=np.int64(3))
        return out + 1, lse

    states = (np.full((N, HEADS, DIM), 1, np.float32), np.zeros((HEADS, N), np.float32),
              np.full((N, HEADS, DIM), 4, np.float32), np.full((HEADS, N), np.log(2), np.float32))  # weights: 1 of the prefix, 2 of the suffix
    out, lse = merged(*states)
    assert (np.asarray(out)[:3] == 4).all() and (np.asarray(out)[3:] == 5).all()
    np.testing.assert_allclose(np.asarray(lse)[:, :3], np.log(3), rtol=1e-6)

    with pytest.raises(Exception, match='argument "prefix_lse"'):
        jax.block_until_ready(merged(states[0], states[1][:, :4], *states[2:]))
