"""Calls of drop-ins of `mlafix.compat` by ranks, in functions like those of rank_work.py."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import rank_work


def compat(group: Any, kind: str, module: str, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Calls a drop-in with the group as an engine's object. Arrays become tensors, and results become arrays."""
    function = getattr(importlib.import_module(f"mlafix.compat.{module}"), name)
    tensors = [rank_work.HOME.put(array) for array in arguments]
    named = {key: rank_work.HOME.put(value) if isinstance(value, np.ndarray) else value for key, value in options.items()}
    made = function(*tensors, rank_work.as_kind(group, kind), **named)
    return tuple(rank_work.HOME.get(array) for array in made) if isinstance(made, tuple) else rank_work.HOME.get(made)


def flashinfer_reduce(group: Any, sizes: tuple[int, int], partial: np.ndarray, lse: np.ndarray, dtype: str, *how: Any, **named: Any) -> np.ndarray:
    """Calls `mlafix.compat.flashinfer.decode_cp_a2a_lse_reduce` on partial [..., cp, D]. The workspace is made for
    `sizes`, the numbers of tokens and heads."""
    from mlafix.compat import flashinfer

    ranks, dim = partial.shape[-2:]
    workspace = flashinfer.decode_cp_a2a_lse_reduce_create_workspace(*sizes, ranks, dim, dtype, group)
    assert workspace.workspace_bytes == flashinfer.decode_cp_a2a_lse_reduce_workspace_size(*sizes, ranks, dim, dtype)
    tensors = rank_work.HOME.put(partial), rank_work.HOME.put(lse)
    return rank_work.HOME.get(flashinfer.decode_cp_a2a_lse_reduce(*tensors, workspace, dist.get_rank(group), ranks, *how, **named))


def flashinfer_mistaken(group: Any, changes: dict[str, Any]) -> str:
    """Calls `decode_cp_a2a_lse_reduce` on zeros with some arguments changed, then with valid ones. Returns the error of
    the first call, or "none"."""
    from mlafix.compat import flashinfer

    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    sizes = {"max_tokens": 2, "local_heads": 3, "cp_size": ranks, "head_dim": 8, "dtype": "f32", "group": group}
    right: dict[str, Any] = {"partial_o": torch.zeros(2, 3, ranks, 8), "partial_lse": torch.zeros(2, 3, ranks), "cp_rank": rank, "cp_size": ranks}
    of_workspace = changes.get("workspace", {})
    called = {name: torch.zeros(value) if isinstance(value, tuple) else value for name, value in changes.items() if name != "workspace"}
    try:
        right["workspace"] = flashinfer.decode_cp_a2a_lse_reduce_create_workspace(**{**sizes, **of_workspace})
        flashinfer.decode_cp_a2a_lse_reduce(**{**right, **called})
        error = "none"
    except Exception as found:
        error = f"{type(found).__name__}: {found}"
    workspace = flashinfer.decode_cp_a2a_lse_reduce_create_workspace(**sizes)
    assert flashinfer.decode_cp_a2a_lse_reduce(**{**right, "workspace": workspace}).shape == (2, 3, 8)
    return error


def vllm_workspace(group: Any, part: rank_work.Part, heads: int, base: str, ubatch: int) -> np.ndarray:
    """Calls `mlafix.compat.vllm.DirectDCPA2AWorkspace` while vLLM's worker seems to be in micro-batch `ubatch` of
    three. Asserts that only the reducer of this micro-batch is used."""
    from mlafix.compat.vllm import DirectDCPA2AWorkspace

    dim = part.partial.shape[2]
    workspace = DirectDCPA2AWorkspace(group, torch.device("cpu"), 16, heads, dim, torch.bfloat16, num_ubatches=3)
    # MLADCPManager of vLLM reads these attributes.
    assert (workspace.max_num_tokens, workspace.heads_per_rank, workspace.head_dim, workspace.num_ubatches) == (16, heads, dim, 3)
    assert (workspace.world_size, workspace.rank) == (dist.get_world_size(group), dist.get_rank(group)) and workspace.group is group
    assert (workspace.device, workspace.dtype) == (torch.device("cpu"), torch.bfloat16)
    partial, lse, seq_lens, starts = part.tensors()
    sys.modules["vllm.v1.worker.ubatching"] = SimpleNamespace(dbo_current_ubatch_id=lambda: ubatch)  # type: ignore[assignment]
    try:
        made = workspace.lse_reduce(partial, lse, base == "e", seq_lens, starts)
    finally:
        del sys.modules["vllm.v1.worker.ubatching"]
    others = [reducer for number, reducer in enumerate(workspace.reducers) if number != ubatch]
    assert all(reducer._backend._blocks.cache_info().currsize == 1 for reducer in others), "expected one micro-batch to be used"
    return rank_work.HOME.get(made)


def vllm_workspace_mistaken(group: Any, changes: dict[str, Any], ubatch: int) -> str:
    """Makes a `DirectDCPA2AWorkspace` with some arguments changed and calls it while vLLM's worker seems to be in
    micro-batch `ubatch`. Returns the error, or "none"."""
    from mlafix.compat.vllm import DirectDCPA2AWorkspace

    right = dict(group=group, device=torch.device("cpu"), max_num_tokens=4, heads_per_rank=3, head_dim=8, dtype="f32", num_ubatches=2)
    sys.modules["vllm.v1.worker.ubatching"] = SimpleNamespace(dbo_current_ubatch_id=lambda: ubatch)  # type: ignore[assignment]
    try:
        heads = 3 * dist.get_world_size(group)
        DirectDCPA2AWorkspace(**{**right, **changes}).lse_reduce(torch.zeros(2, heads, 8), torch.zeros(2, heads), True)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        del sys.modules["vllm.v1.worker.ubatching"]
    return "none"


def gathered(group: Any, queries: list[np.ndarray], rows: list[np.ndarray], padded: int | None) -> tuple[Any, ...]:
    """Gathers the queries [T, h, D] and the KV [T, d] of the ranks with `mlafix.compat.vllm`'s workspaces. Inputs have
    gaps between elements. Each of two micro-batches runs after its output was poisoned."""
    from mlafix.compat.vllm import DirectDCPKVGatherWorkspace, DirectDCPQGatherWorkspace

    rank, size = dist.get_rank(group), dist.get_world_size(group)
    query, kv = (rank_work.HOME.put(np.repeat(array, 2, axis=-1))[..., ::2] for array in (queries[rank], rows[rank]))
    _, heads, dim = query.shape
    of_queries = DirectDCPQGatherWorkspace(group, torch.device("cpu"), 16, heads, dim, query.dtype, 2, padded)
    of_rows = DirectDCPKVGatherWorkspace(group, torch.device("cpu"), 64, kv.shape[1], kv.dtype)
    assert (of_queries.gathered_num_heads, of_queries.padded_num_heads) == (size * heads, padded or size * heads)
    everything = kv.new_full((size * kv.shape[0], kv.shape[1]), 7)
    made = []
    try:
        for ubatch in range(2):
            sys.modules["vllm.v1.worker.ubatching"] = SimpleNamespace(dbo_current_ubatch_id=lambda: ubatch)  # type: ignore[assignment]
            of_queries.final_query[ubatch].fill_(9)
            made.append(of_queries.gather(query))
            of_rows.gather(everything, kv)
    finally:
        del sys.modules["vllm.v1.worker.ubatching"]
    for ubatch, one in enumerate(made):
        # an array without elements has address 0
        assert one.is_contiguous() and one.data_ptr() in (of_queries.final_query[ubatch].data_ptr(), 0)
    assert torch.equal(*made)
    return rank_work.HOME.get(made[0]), rank_work.HOME.get(everything)


def gather_mistaken(group: Any, made: dict[str, Any], called: dict[str, Any]) -> str:
    """Makes a workspace that gathers KV, or queries if `made` says so, and calls it, with some arguments changed.
    Returns the error, or "none"."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    from mlafix.compat.vllm import DirectDCPKVGatherWorkspace, DirectDCPQGatherWorkspace

    size = dist.get_world_size(group)
    ubatch = called.pop("ubatch", None)
    requires_grad = called.pop("requires_grad", "")
    try:
        if made.pop("queries", False):
            of_queries = DirectDCPQGatherWorkspace(**{**dict(group=group, device="cpu", max_num_tokens=4, heads_per_rank=3, head_dim=8), **made})
            if ubatch is not None:
                sys.modules["vllm.v1.worker.ubatching"] = SimpleNamespace(dbo_current_ubatch_id=lambda: ubatch)  # type: ignore[assignment]
            of_queries.gather(torch.zeros(called.get("shape", (2, 3, 8)), dtype=torch.bfloat16))
        else:
            of_rows = DirectDCPKVGatherWorkspace(**{**dict(group=group, device="cpu", max_gathered_tokens=8, token_dim=8), **made})
            arrays = {"gathered_kv": torch.zeros(2 * size, 8, dtype=torch.bfloat16), "local_kv": torch.zeros(2, 8, dtype=torch.bfloat16)}
            if requires_grad:
                arrays[requires_grad].requires_grad_()
            if called.get("device"):  # the device of a fake tensor need not exist
                of_rows.device = torch.device("cuda:0")
                with FakeTensorMode():
                    arrays["local_kv"] = torch.zeros(2, 8, dtype=torch.bfloat16, device=called["device"])
            of_rows.gather(**arrays)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        sys.modules.pop("vllm.v1.worker.ubatching", None)
    return "none"


def single(group: Any) -> list[bool]:
    """Returns, for each drop-in, true if it returns its inputs for a group of this rank alone."""
    import mlafix.compat.sglang as sglang
    import mlafix.compat.vllm as vllm

    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    out, lse = torch.zeros(2, 4, 8)[..., ::2], torch.zeros(2, 4, dtype=torch.float64)
    pairs = [vllm.cp_lse_ag_out_rs(out, lse, alone, return_lse=True), sglang.cp_lse_ag_out_rs_mha(out, lse, alone, True)]
    plain = [vllm.dcp_a2a_lse_reduce(out, lse, alone), vllm.cp_lse_ag_out_ar(out, lse, alone), sglang.cp_lse_ag_out_rs_mla(out, lse, alone),
             sglang.dcp_a2a_lse_reduce(out, lse, alone)]
    return [*(pair[0] is out and pair[1] is lse for pair in pairs), *(one is out for one in plain)]


def converted(group: Any, module: str, name: str, dtype: str) -> bool:
    """Returns true if a drop-in gives equal results for converted inputs: an lse of another dtype, and a strided
    payload with a dim of size 1."""
    function = getattr(importlib.import_module(f"mlafix.compat.{module}"), name)
    seed = torch.Generator().manual_seed(dist.get_rank(group))
    heads = 2 * dist.get_world_size(group)
    out = torch.randn(3, 1, heads, 16, generator=seed)[..., ::2]
    lse = torch.randn(3, heads, generator=seed).to(getattr(torch, dtype))
    want = function(out[:, 0].contiguous(), lse.float(), group)
    return torch.equal(function(out, lse[..., None], group), want) and torch.equal(function(out, lse[:, None], group), want)


def with_names(group: Any, name: str, *arguments: Any) -> Any:
    """Calls a function of this module. The last two arguments are its positional and its named arguments."""
    *first, positional, named = arguments
    return globals()[name](group, *first, *positional, **named)
