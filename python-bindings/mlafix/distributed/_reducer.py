"""Merges partial states over the ranks of a group, with a workspace that calls reuse."""

from __future__ import annotations

import re
from typing import Any, Literal, NoReturn, cast

import torch

from .._launcher.arguments import renames, wrong
from ..errors import ArgumentError
from ..ops import Base, Fp8
from ._backends import Backend, Call, ExchangeBackend
from ._cut import Cut, CutName
from ._push import ExchangeName, pushed_on
from ._symmetric import DEFAULT_TIMEOUT, SymmetricBackend, SymmetricPlan, connect
from .agreement import agree, agreeing
from .blocks import block_size
from .checks import Expected, check_sizes, first_problem, lengths, payload_dtype, wire_dtype_of
from .ranks import CollectiveRanks, GlooRanks, default_device, meeting_of, ranks_of

OverflowName = Literal["error", "exchange"]

# The largest timeout in seconds. The runtime's groups have the same limit.
_MOST_SECONDS = 1e9

# Matches messages of torch's allocators and of the driver about lack of memory, but not "illegal memory access".
_SHORT_OF_MEMORY = re.compile(r"out.of.memory|(allocate|enough) memory", re.IGNORECASE)

# Keeps backends alive whose workspace a captured graph uses, since the graph may be replayed after its reducer is gone.
_CAPTURED: dict[int, Backend] = {}


class Reducer:
    """Merges the partial states of all ranks of a group, each over its own keys. Every rank receives its cut of the result.

        out_lse = log(sum_r exp(lse_r));  out = sum_r exp(lse_r - out_lse) * partial_r    over the ranks r, in their order

    The merge is that of `mlafix.ops.merge_states`: sums are f32 (N7), empty states and rows without keys contribute
    nothing, whatever their payload holds (N1, N2, N5), and a row that is empty on all ranks is 0, -inf (N3). A row's
    bits are the same on every rank and for every backend on the same kind of device.

    All ranks must create the reducer with the same arguments, and call `reduce` in the same order with equal numbers of
    tokens. The constructor allocates and connects everything, so later calls may be captured in CUDA graphs. It also
    compiles the kernels for calls without lengths and scale. Kernels for calls with them are compiled at the first such
    call, which may be a captured one. A reducer may be used in one stream at a time. Reducers may run in different
    streams if all ranks that share two reducers call them in the same order. Graphs that contain calls must not run
    concurrently.

    Args:
        group: a process group of torch's (None is the default group), an engine's group object whose `device_group` is
            a process group, or any object with `world_size`, `rank_in_group`, `all_gather(tensor, dim)` and, better,
            `all_to_all_single(output, input)`.
        max_tokens: the maximum number of tokens per call, at least 1. It determines the size of the workspace.
        heads: the number of heads of a partial state; a multiple of the number of ranks for cut="heads".
        head_dim: D, the number of elements in a payload row.
        dtype: the dtype of the payloads: bf16, f16 or f32 (a torch dtype or a name).
        wire_dtype: the dtype of the payloads between ranks. None is `dtype`. "f8e4m3fn": each row is scaled by its largest
            magnitude and rounded to fp8. The error of an element is at most 2^-4 of its value or 2^-18 of the row's
            largest magnitude, whichever is larger. A row with NaN or infinity becomes NaN. A rank's own rows do not
            travel, and are not rounded unless cut="none".
        cut: the part of the result that a rank receives. "heads": heads / ranks heads of all tokens. "tokens": all
            heads of ceil(tokens / ranks) tokens (fewer on the last ranks). "none": everything.
        base: the base of the lses, "e" or "2" (N8). A call may choose another.
        sink: `[heads] f32`, a logit in base e for each head. A state of zeros with this lse joins the merge of each row
            once, after all ranks. It counts in the merged lse, too. Every call reads the array.
        backend: "symmetric": the GPUs of one node address each other's memory, and one kernel moves the rows, merges
            and writes. "nccl", "gloo": the group's own backend for the device. "auto": symmetric if the group supports
            it, else the group's own.
        exchange: how the symmetric backend moves rows; other backends ignore it. "pull": the kernel reads the other ranks' rows. "push":
            it stores its own rows in the memory of the ranks that merge them, directly from the caller's arrays.
            "auto": the faster one on this kind of GPU, by the size of a call.
        device: the device of the tensors. None is the current CUDA device if the group has a backend other than gloo
            for it, else the CPU.
        timeout: for gloo and symmetric, the seconds to wait for each rank. None is the group's timeout for gloo, and 10
            for symmetric, where the kernels wait.
        check_calls: if True, each call compares numbers of tokens and errors across ranks before rows are sent. The
            host then waits for all ranks, so this is not legal in capture. None: True for gloo, whose calls wait on the
            host anyway.
        overflow: the treatment of a call with more than max_tokens: "error", or "exchange", which uses the group's own
            collectives (such as NCCL) with buffers that the call allocates.

    Raises:
        ArgumentError: an argument is wrong on any rank, or differs between ranks; raised on every rank.
        RankError: with gloo, a rank did not come.
    """

    def __init__(self, group: Any = None, *, max_tokens: int, heads: int, head_dim: int, dtype: Any = "bf16",
                 wire_dtype: Any = None, cut: CutName = "heads", base: Base = "e", sink: torch.Tensor | None = None, backend: str = "auto",
                 exchange: ExchangeName = "auto", device: torch.device | str | None = None, timeout: float | None = None, check_calls: bool | None = None,
                 overflow: OverflowName = "error") -> None:
        self.device, problem = _device_for(group, device)
        if wrong_timeout := _wrong_timeout(timeout):
            problem, timeout = problem or wrong_timeout, None
        self._meeting = meeting_of(group, self.device, timeout if default_device(group).type == "cpu" else None)
        self.rank, self.size = self._meeting[0].rank, self._meeting[0].size
        self.max_tokens, self.heads, self.head_dim, self.base = max_tokens, heads, head_dim, base
        facts: dict[str, Any] = {}
        with agreeing(*self._meeting, facts):
            if problem is not None:
                raise problem
            self._ranks = ranks_of(group, self.device, backend, timeout)
            self.dtype = payload_dtype(dtype)
            self.wire_dtype = self.dtype if wire_dtype is None else wire_dtype_of(wire_dtype, self.dtype)
            check_sizes(max_tokens=max_tokens, heads=heads, head_dim=head_dim)
            if wrong_base := _wrong_base(base):
                raise wrong_base
            _check_names("exchange", exchange, ("auto", "pull", "push"))
            _check_names("overflow", overflow, ("error", "exchange"))
            self.cut = Cut(cut, self.size, heads)
            if sink is not None and (found := first_problem([Expected("sink", sink, (heads,), (torch.float32,))], self.device)):
                raise found
            self._check_calls = self._ranks.name == "gloo" if check_calls is None else bool(check_calls)
            facts |= {"device": self.device.type, "max_tokens": max_tokens, "heads": heads, "head_dim": head_dim, "dtype": str(self.dtype),
                     "wire_dtype": str(self.wire_dtype), "cut": cut, "base": self.base, "sink": "absent" if sink is None else "present", "backend": backend,
                     "exchange": exchange, "check_calls": self._check_calls, "overflow": overflow}
        if isinstance(self._ranks, GlooRanks):
            self._meeting = self._ranks, self.device
        self._sink, self._overflow = sink, overflow
        # Allocates the workspace outside of inference mode, so that collectives may write to it in any mode.
        with torch.inference_mode(False):
            failed: Exception | None = None
            try:
                self._backend = self._backend_of(backend, exchange, sink, timeout)
            except (RuntimeError, MemoryError) as error:
                failed = _workspace_problem(max_tokens, error)
            agree(*self._meeting, {}, failed)
            self._prepare()

    def _backend_of(self, backend: str, exchange: ExchangeName, sink: torch.Tensor | None, timeout: float | None) -> Backend:
        form = {"head_dim": self.head_dim, "wire_dtype": self.wire_dtype, "max_tokens": self.max_tokens}
        if backend in ("auto", "symmetric"):
            pushed = pushed_on(self.device, exchange, self.cut.name)
            size = SymmetricPlan.of(self.cut, **form, pushed=pushed).total
            memory = connect(self._ranks, size, self.device, required=backend == "symmetric")
            if memory is not None:
                return SymmetricBackend(cast(CollectiveRanks, self._ranks), memory, self.cut, sink, **form,
                                        timeout=DEFAULT_TIMEOUT if timeout is None else timeout, pushed=pushed)
        return ExchangeBackend(self._ranks, self.cut, sink, **form, device=self.device)

    def _backend_for(self, tokens: int) -> Backend:
        """Returns the backend for a call. Calls of more than max_tokens use the group's collectives, with buffers that
        each call allocates."""
        if tokens <= self.max_tokens:
            return self._backend
        return ExchangeBackend(self._ranks, self.cut, self._sink, head_dim=self.head_dim, wire_dtype=self.wire_dtype, max_tokens=tokens,
                               device=self.device)

    def _prepare(self) -> None:
        """Makes a call with a single token, which compiles the kernels."""
        partial = torch.zeros(1, self.heads, self.head_dim, dtype=self.dtype, device=self.device)
        lse = torch.zeros(1, self.heads, device=self.device)
        rows, heads = self._owned_shape(1)
        out, out_lse = partial.new_empty((rows, heads, self.head_dim)), lse.new_empty((rows, heads))
        self._backend.prepare(Call(partial, lse, None, None, out, out_lse, None, self.base))

    @property
    def backend(self) -> str:
        """The name of the backend that moves the rows: "symmetric", "nccl", "gloo", another name that torch gives a backend, or
        "engine"."""
        return self._backend.name

    @property
    def workspace_bytes(self) -> int:
        """The number of bytes on the device that the reducer holds."""
        return self._backend.workspace_bytes

    def bytes_in(self, tokens: int) -> int:
        """Returns the number of bytes received from other ranks in a call of `tokens` tokens. The number of bytes sent
        is the same."""
        size = block_size(self.cut.block_tokens(tokens), self.cut.block_heads, self.head_dim, self.wire_dtype)
        return (self.size - 1) * size.total if tokens else 0

    def inputs(self, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns memory for attention to write a call's partial state to, so that the call need not copy it.

        The symmetric backend returns the same memory of the reducer each time. The caller may write it between two calls of
        `reduce`. A `reduce` with both `seq_lens` and `query_start_loc` sets lses in this memory to -inf. With another
        backend, with fp8 on the wire and for a call that pushes, rows may be anywhere, so new tensors are returned.

        Args:
            tokens: the number of tokens of the next call, from 0 to max_tokens, or more with overflow="exchange".

        Returns:
            `[tokens, heads, D]` of the reducer's dtype and `[tokens, heads] f32`, contiguous, not initialised.

        Raises:
            ArgumentError: `tokens` is too large or not valid.
        """
        if not isinstance(tokens, int) or not 0 <= tokens or tokens > self.max_tokens and self._overflow == "error":
            raise wrong("tokens", f"an int from 0 to the reducer's {self.max_tokens}", repr(tokens))
        found = self._backend.inputs(tokens) if tokens <= self.max_tokens else None
        if found is not None:
            return found
        return (torch.empty(tokens, self.heads, self.head_dim, dtype=self.dtype, device=self.device),
                torch.empty(tokens, self.heads, device=self.device))

    def check(self) -> None:
        """Raises RankError if a rank did not take part in a call that is complete on the device (backend symmetric).

        Every call of `reduce` checks this first. Call `check` after a replay of a graph; it waits for nothing. If a rank
        did not come to a call, each output row of the call is NaN, or right if the rank came before the row was read.
        """
        self._backend.check()

    def owned(self, tokens: int) -> tuple[slice, slice]:
        """Returns the tokens and the heads of the whole state that this rank receives, as slices."""
        return self.cut.owned(self.rank, tokens)

    @renames(out_scale="Fp8.scale")
    def reduce(self, partial: torch.Tensor, lse: torch.Tensor, seq_lens: torch.Tensor | None = None,
               query_start_loc: torch.Tensor | None = None, out: torch.Tensor | None = None, out_lse: torch.Tensor | None = None,
               out_format: Fp8 | None = None, *, return_lse: bool = True,
               base: Base | None = None) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Merges the partial states of all ranks. On a GPU everything is enqueued on the current stream.

        If all outputs are given, no tensor is allocated, except by overflow="exchange" and, on a GPU, by `check_calls` if
        the group has no gloo backend. A wrong argument raises before anything is sent. It raises on every rank if the
        arguments are wrong on every rank, or if `check_calls` compares them.

        Args:
            partial: `[tokens, heads, D]` of the reducer's dtype: attention over the keys of this rank only. All strides but the
                last may be arbitrary. The number of tokens is equal on all ranks, from 0 to max_tokens, or more with
                overflow="exchange". For cut="heads" it may also be `[tokens, ranks, heads / ranks, D]`.
            lse: `[tokens, heads] f32` with any strides, or `[tokens, ranks, heads / ranks] f32` beside a partial of that form.
            seq_lens: `[requests]` i32 or i64: the number of keys of each request on this rank. Rows of a request without keys
                count for nothing and are not read. Without `query_start_loc` each request has one token, and tokens past the last request
                are padding.
            query_start_loc: `[requests + 1]` i32 or i64: the first token of each request, then the end of the last request.
                Tokens at or past this end are padding.
            out: `[tokens, heads, D]` for the tokens and heads that this rank owns, bf16, f16 or f32 (f8e4m3fn with
                `out_format`). Allocated if None.
            out_lse: `[tokens, heads] f32` for the same tokens and heads. Allocated if None and `return_lse`.
            out_format: `mlafix.ops.Fp8` with a scale `[1] f32` on the device. It makes the output fp8, as it does in
                `ops.merge_attn_states`.
            return_lse: if False, no merged lse is computed unless `out_lse` is given.
            base: the base of `lse` and `out_lse`; None is the reducer's base.

        Returns:
            `(out, out_lse)`: the arrays given, or new ones.

        Raises:
            ArgumentError: an argument does not fit; nothing was sent then.
            RankError: with gloo, a rank did not come to this call. With symmetric, a rank did not come to an earlier call.
        """
        base = self.base if base is None else base
        problem: Exception | None = self._problem(partial, lse, seq_lens, query_start_loc, out, out_lse, out_format, base)
        backend = call = None
        if problem is None:
            tokens = partial.shape[0]
            rows, heads = self._owned_shape(tokens)
            if out is None:
                out = partial.new_empty((rows, heads, self.head_dim), dtype=self.dtype if out_format is None else torch.float8_e4m3fn)
            if out_lse is None and return_lse:
                out_lse = lse.new_empty((rows, heads))
            scale: Any = None if out_format is None else out_format.scale
            backend, call = self._backend_for(tokens), Call(partial, lse, seq_lens, query_start_loc, out, out_lse, scale, base)
        if self._check_calls:
            self._compare(backend, call, problem)
        if problem is not None:
            raise problem
        assert backend is not None and call is not None
        if call.partial.shape[0]:
            if self.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
                _CAPTURED[id(backend)] = backend
            backend.reduce(call)
        return call.out, call.out_lse

    def refuse(self, problem: ArgumentError) -> NoReturn:
        """Raises an error that the caller found in a call. With `check_calls`, tells the other ranks first."""
        if self._check_calls:
            self._compare(None, None, problem)
        raise problem

    def _compare(self, backend: Backend | None, call: Call | None, problem: Exception | None) -> None:
        """Compares a call with the calls of the other ranks. Raises an error before anything is sent if one of them is
        wrong or they differ."""
        facts = {}
        if problem is None and backend is not None and call is not None:
            tokens = call.partial.shape[0]
            facts = {"partial": f"{tokens} tokens", "base": call.base}
            try:
                if tokens:
                    backend.verify(call)
            except Exception as error:  # catches any exception, since the other ranks must not wait for this one
                problem = error
        agree(*self._meeting, facts, problem)

    def _owned_shape(self, tokens: int) -> tuple[int, int]:
        mine, heads = self.cut.owned(self.rank, tokens)
        return mine.stop - mine.start, heads.stop - heads.start

    def _problem(self, partial: Any, lse: Any, seq_lens: Any, query_start_loc: Any, out: Any, out_lse: Any,
                 out_format: Any, base: str) -> ArgumentError | None:
        """Returns the error for the first invalid argument of a call. Returns None if all are valid."""
        shape = getattr(partial, "shape", ())
        split = len(shape) == 4 and self.cut.name == "heads"
        if len(shape) != 3 and not split:
            return wrong("partial", "3 dims [tokens, heads, D]", len(shape))
        tokens = shape[0]
        if tokens > self.max_tokens and self._overflow == "error":
            return wrong("partial", f"at most the reducer's {self.max_tokens} tokens", tokens)
        if out_format is not None and type(out_format) is not Fp8:
            return wrong("out_format", "an instance of Fp8, or None", type(out_format).__qualname__)
        rows, heads = self._owned_shape(tokens)
        floats = (torch.bfloat16, torch.float16, torch.float32) if out_format is None else (torch.float8_e4m3fn,)
        whole = (tokens, self.size, self.cut.block_heads) if split else (tokens, self.heads)
        expected = [
            Expected("partial", partial, (*whole, self.head_dim), (self.dtype,), row=True),
            Expected("lse", lse, whole, (torch.float32,)),
            *lengths(seq_lens, query_start_loc),
            Expected("out", out, (rows, heads, self.head_dim), floats, row=True),
            Expected("out_lse", out_lse, (rows, heads), (torch.float32,)),
            Expected("Fp8.scale", None if out_format is None else out_format.scale, (1,), (torch.float32,)),
        ]
        if found := first_problem(expected, self.device):
            return found
        return _wrong_base(base)


def _device_for(group: Any, device: torch.device | str | None) -> tuple[torch.device, ArgumentError | None]:
    """Returns the device of a reducer's tensors; a CUDA device has an index. If no reducer can be on `device`, returns
    the group's default device and the error."""
    group_own = default_device(group)
    if device is None:
        return group_own, None
    try:
        made = torch.device(device)
    except (RuntimeError, TypeError):
        return group_own, wrong("device", "a device of type cpu or cuda", repr(device))
    if made.type not in ("cpu", "cuda"):
        return group_own, wrong("device", "a device of type cpu or cuda", repr(str(made)))
    count = torch.cuda.device_count() if made.type == "cuda" else 1
    if made.type == "cuda" and (made.index or 0) >= count:
        return group_own, wrong("device", f"one of this process's {count} CUDA devices", repr(str(made)))
    return torch.device("cuda", torch.cuda.current_device()) if made.type == "cuda" and made.index is None else made, None


def _workspace_problem(max_tokens: int, error: Exception) -> Exception:
    """Returns an error about "max_tokens" if `error` is a lack of memory; otherwise returns `error` itself."""
    if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and not _SHORT_OF_MEMORY.search(str(error)):
        return error
    problem = wrong("max_tokens", f"memory for a workspace of {max_tokens} tokens", f"{type(error).__name__}: {error}")
    problem.__cause__ = error
    return problem


def _wrong_timeout(timeout: Any) -> ArgumentError | None:
    if timeout is None or isinstance(timeout, (int, float)) and 0 < timeout <= _MOST_SECONDS:
        return None
    return wrong("timeout", f"a number of seconds above 0 and at most {_MOST_SECONDS:.0e}, or None", repr(timeout))


def _wrong_base(base: Any) -> ArgumentError | None:
    return None if base in ("e", "2") else wrong("base", "'e' or '2'", repr(base))


def _check_names(argument: str, name: Any, legal: tuple[str, ...]) -> None:
    if name not in legal:
        quoted = [f'"{one}"' for one in legal]
        raise wrong(argument, f"{', '.join(quoted[:-1])} or {quoted[-1]}", repr(name))
