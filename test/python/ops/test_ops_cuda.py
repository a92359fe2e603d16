"""Tests that need a GPU: every function in a captured graph, and tensors with more than 2^31 elements."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import contract  # noqa: E402
from calls import FUNCTIONS, Right, arrays  # noqa: E402
from devices import TorchDevice, has_cuda  # noqa: E402
from mlafix import ops  # noqa: E402
from numerics import BF16, same_bits  # noqa: E402

pytestmark = pytest.mark.skipif(not has_cuda(), reason="needs a GPU")


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("how", ["called", "bound"])
def test_every_function_in_a_captured_graph_does_what_it_does_outside(function: str, how: str) -> None:
    """The first call of a function is captured in a graph, which is replayed with other contents. The outputs have the
    bits of a plain call, also if the call allocates them."""
    device = TorchDevice("cuda")
    right = Right(device)
    arguments = right.arguments(function)
    bindable = how == "bound" and hasattr(getattr(ops, function), "bind")
    if how == "bound":
        for flag in ("return_lse", "return_stats"):
            if flag in getattr(ops, function).__annotations__:
                arguments[flag] = False
    elif "out" in arguments and inspect.signature(getattr(ops, function)).parameters["out"].default is None:
        del arguments["out"]
    call = getattr(ops, function).bind(**arguments) if bindable else lambda: getattr(ops, function)(**arguments)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = call()
    for _ in range(2):
        for tensor in arrays(arguments):
            if tensor.is_floating_point() and tensor.element_size() > 1:
                tensor.uniform_(0.5, 2)
        before = [t.clone() for t in arrays(arguments)]
        graph.replay()
        torch.cuda.synchronize()
        after = [t.clone() for t in arrays(arguments)]
        results = [r.clone() for r in (captured if isinstance(captured, tuple) else (captured,)) if r is not None]
        for tensor, old in zip(arrays(arguments), before):
            tensor.copy_(old)
        plain = getattr(ops, function)(**arguments)
        torch.cuda.synchronize()
        for got, want in zip(after, arrays(arguments)):
            assert same_bits(device.get(got), device.get(want))
        for got, want in zip(results, plain if isinstance(plain, tuple) else (plain,)):
            assert same_bits(device.get(got), device.get(want))


@pytest.mark.skipif(not has_cuda() or torch.cuda.get_device_properties(0).total_memory < 60 << 30,
                    reason="needs a GPU with 60 GiB of memory")
def test_n13_offsets_past_2_31_elements(rng: np.random.Generator) -> None:
    """Tensors have 270000 x 128 x 128 elements. `merge_attn_states`, and `fixup_zero_kv_rows` of its result, are right
    for rows at both ends and around element 2^31."""
    device = TorchDevice("cuda")
    n, heads, dim = 270_000, 128, 128
    generator = torch.Generator("cuda").manual_seed(1)
    prefix, suffix = (torch.empty(n, heads, dim, dtype=torch.bfloat16, device="cuda").normal_(generator=generator) for _ in range(2))
    prefix_lse, suffix_lse = (torch.empty(heads, n, device="cuda").normal_(0, 3, generator=generator) for _ in range(2))
    out, lse = ops.merge_attn_states(prefix, prefix_lse, suffix, suffix_lse, context_rows=n - 3)
    rows = torch.tensor(sorted({0, 1, 131_071, 131_072, 131_073, 262_143, 262_144, n - 4, n - 3, n - 1}), device="cuda")
    v = [device.get(x[rows]) for x in (prefix, suffix)]
    s = [device.get(x[:, rows]).T for x in (prefix_lse, suffix_lse)]
    want, want_lse = contract.merge_attn_states(v[0], s[0], v[1], s[1], len(rows) - 2, out_dtype=BF16)
    want.check(device.get(out[rows]), "out")
    want_lse.check(device.get(lse[:, rows]).T, "lse")
    lens, starts = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in ([1, 0, 1, 0], [0, 131_070, 131_074, n - 2, n]))
    kept = out[[131_069, 131_074, n - 3]].clone()
    ops.fixup_zero_kv_rows(out, lse, lens, starts)
    assert torch.equal(out[[131_069, 131_074, n - 3]], kept)
    for dead in (slice(131_070, 131_074), slice(n - 2, n)):
        assert not out[dead].any() and lse[:, dead].isneginf().all()
