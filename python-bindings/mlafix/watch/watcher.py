"""Runs checks after seams, and reports their findings."""

from __future__ import annotations

import ctypes
import json
import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import ops
from ..errors import DriverError, UnitError
from .choice import SEAMS, Choice
from .records import UNKNOWN_LIVE, Found, Records
from .report import Report, report_of

_MOST_COUNTED = 64
"""The largest number of key counts (`Counted`) that are kept. Each step begins without any and needs fewer. If this
number is reached, nobody calls `step`, so all counts are dropped to free their memory."""
_KEPT_STEPS = 16
"""The number of most recent steps whose lengths and block tables are kept for reports."""


class Place(NamedTuple):
    """A place of a fault: the layer, the seam and the kernel."""

    layer: str
    seam: str
    name: str
    """The engine's name of the kernel, such as "merge_attn_states"."""

    def __str__(self) -> str:
        where = f"layer {self.layer}, " if self.layer else ""
        return f"{where}{self.seam}" + (f" ({self.name})" if self.name and self.name != self.seam else "")


class Batch(NamedTuple):
    """The requests, lengths and block table of a step, copied to the host without waiting."""

    requests: Sequence[str]
    lens: Any
    cu_seqlens: Any
    block_table: Any
    calls: dict[int, dict[str, Any]]
    """The arguments of each call of the step, as reports show them. The keys are the numbers of the seams, in the order
    of the calls. Calls of a replayed graph are missing."""


class Counted(NamedTuple):
    """The number of keys that each token of a step sees. It is counted once for the seams of all layers."""

    keys: Any
    lens: Any
    """The number of keys of each sequence."""
    of: tuple[Any, Any]
    """The tensors from which the keys were counted. They are kept so that no other tensor gets their addresses."""
    places: set[Place]


class Watch:
    """Checks attention states after seams, and reports the first fault.

    Args:
        choice: the seams, the interval in steps, and whether to poison and to repair.
        say: a function that is called with the line about a fault; by default the line is written to stderr.
        json: a file to which each report is appended, as a line of JSON.
        sample: `attention` recomputes token t in the checked step number s if (t + s) % sample is 0.
        most_keys: `attention` recomputes no token that sees more keys.
    """

    def __init__(self, choice: Choice | None = None, *, say: Callable[[str], None] | None = None, json: str | Path | None = None,
                 sample: int = 64, most_keys: int = 4096) -> None:  # fmt: skip
        self.choice = choice or Choice(frozenset(SEAMS))
        self.now = 0
        self.layer = ""
        self.reports: list[Report] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        """The number of findings by seam and class of fault, for metrics."""
        self.repaired: Counter[str] = Counter()
        """The number of repaired rows by seam."""
        self.sample, self.most_keys = sample, most_keys
        self.first_row = 0
        """The number, within the batch, of the token in row 0. Not 0 if a seam's tensors hold only a part of the batch."""
        self.last_rows = 0
        """The address of the rows that `states` checked last in the current layer; 0 if there are none."""
        self._say = say or (lambda line: print(line, file=sys.stderr, flush=True))
        self._json = Path(json) if json else None
        self._places: list[Place] = []
        self._numbers: dict[tuple[Place, int], int] = {}
        self._in_step: Counter[Place] = Counter()
        self._records: Records | None = None
        self._counted: dict[tuple[Any, ...], Counted] = {}
        self._recomputes = True
        self._live: int = UNKNOWN_LIVE
        self._kept: deque[tuple[int, Batch]] = deque(maxlen=_KEPT_STEPS)
        self._captured_before: dict[int, int | None] = {}
        """The number of the seam before each seam of a captured graph, by number; None for the first seam of the graph."""
        self._captured: int | None = None
        self._was_capturing = False
        self._sizes: dict[int, dict[str, Any]] = {}

    # -- Steps ------------------------------------------------------------------------------------------------------------

    def step(self, live: int | None = None, *, requests: Sequence[str] = (), lens: Any = None, cu_seqlens: Any = None, block_table: Any = None) -> None:
        """Begins a step of eager calls or of a replay. Processes the findings of earlier steps, without waiting.

        Args:
            live: the number of tokens of the step; rows past them are padding. None: all rows are live.
            requests: the names of the batch's requests, in order.
            lens, cu_seqlens, block_table: the lengths, offsets and block table of the batch, as tensors or lists, for reports.
        """
        self.now += 1
        self._in_step.clear()
        self._counted.clear()
        self.layer = ""
        self._live = UNKNOWN_LIVE if live is None else live
        if self._records is not None:
            self._look(wait=False)
            self._records.begin(self.now, self._live if self.samples else 0)
        if self.samples:
            self._kept.append((self.now, Batch(requests, *map(_on_host, (lens, cu_seqlens, block_table)), calls={})))

    def batch(self, lens: Any, cu_seqlens: Any, block_table: Any = None, *, requests: Sequence[str] = ()) -> None:
        """Gives the current step its lengths, offsets, block table and requests, if `step` was called without lengths.
        Called by seams that know these values."""
        if not self._kept or self._kept[-1][0] != self.now or self._kept[-1][1].lens is not None or _captures(lens):
            return
        kept = self._kept.pop()[1]
        self._kept.append((self.now, Batch(requests or kept.requests, *map(_on_host, (lens, cu_seqlens, block_table)), calls=kept.calls)))

    def rest(self) -> None:
        """Checks no row until the next step, for runs on dummy data, such as those before a capture. The checks are
        launched, but with 0 live rows."""
        self._live = 0
        self._counted.clear()
        if self._records is not None:
            self._records.begin(self.now, 0)

    @property
    def samples(self) -> bool:
        """True if this step is checked."""
        return self.now % self.choice.every == 0

    def wants(self, seam: str, tensor: Any) -> bool:
        """True if the seam is chosen, and either the step is checked or a graph is being captured. A replay of the
        graph always launches the check. In steps that are not checked, the number of live rows on the device is 0."""
        return seam in self.choice.seams and (self.samples or _captures(tensor))

    def finish(self) -> Report | None:
        """Waits for the device. Returns the report of the first fault that is not reported yet, or None."""
        before = len(self.reports)
        if self._records is not None:
            self._look(wait=True)
        return self.reports[before] if len(self.reports) > before else None

    # -- Seams ------------------------------------------------------------------------------------------------------------

    def states(self, seam: str, out: Any, lse: Any = None, *, name: str = "", lse_layout: Any = "hn", lens: Any = None, cu_seqlens: Any = None,
               key_starts: Any = None, causal: bool = False, limit: Any = None, **call: Any) -> Any:
        """Checks rows after a seam: see `mlafix.ops.check_states`. Repairs rows without keys if that is chosen.

        Args:
            lens, cu_seqlens, causal: the keys of each token, or those of each sequence, as `mlafix.ops.visible_keys` takes them.
            key_starts: the first key of each sequence, `[B + 1]`, in place of `lens`.
            call: other tensors of the call that produced the rows, such as q, k and v. A report contains their sizes.

        Returns:
            The keys of each sequence; None if they were not given.
        """
        if not self.wants(seam, out):
            return None
        self.last_rows = out.data_ptr()
        given = dict(lens=key_starts if lens is None else lens, cu_seqlens=cu_seqlens)
        common = self._common("rows", Place(self.layer, seam, name or seam), out, out.shape[0], out.shape[1], **given, **call, causal=causal,
                              lse_layout=None if lse is None else lse_layout)  # fmt: skip
        keys = lens
        if cu_seqlens is not None and given["lens"] is not None:
            counted = self._count_keys(self._places[common["seam"]], out, lens, key_starts, cu_seqlens, causal)
            keys, lens = counted.keys, counted.lens
        ops.check_states(out, lse, lse_layout=lse_layout, lens=keys, limit=limit, **common)
        if self.choice.repair and lse is not None and lens is not None and not causal:
            starts = _each(out) if cu_seqlens is None else cu_seqlens
            ops.fixup_zero_kv_rows(out, lse, as_i32(lens), as_i32(starts), lse_layout=lse_layout)
        return lens

    def merge(self, out: Any, lse: Any, sides: Sequence[Any], side_lses: Sequence[Any], *, seam: str = "merge", name: str = "", lse_layout: Any = "hn",
              base: Any = "e") -> None:
        """Checks the result of a merge against its sides (`mlafix.ops.check_merge`). If repairs are chosen, repairs it
        with mlafix's own merge."""
        if not self.wants(seam, out):
            return
        common = self._common("rows", Place(self.layer, seam, name or seam), out, out.shape[0], out.shape[1], sides=len(sides), base=base,
                              lse_layout=None if lse is None else lse_layout)  # fmt: skip
        sides, side_lses = _alike(sides), _alike(side_lses)
        ops.check_merge(out, lse, sides, side_lses, lse_layout=lse_layout, base=base, **common)
        if self.choice.repair and lse is not None:
            rows = [each if lse_layout == "nh" else each.T for each in (*side_lses, lse)]
            ops.merge_states_list(sides, rows[:-1], out=out, out_lse=rows[-1], base=base)

    def attention(self, out: Any, lse: Any, q: Any, k: Any, v: Any, *, cu_seqlens: Any, scale: float, lens: Any = None, key_starts: Any = None, name: str = "",
                  seam: str = "attention", lse_layout: Any = "hn", first: Any = None, block_table: Any = None, v_scale: float = 1.0, causal: bool = True, base: Any = "e") -> None:
        """Checks rows after attention, and recomputes some of them (`mlafix.ops.check_attention`)."""
        if not self.wants(seam, out):
            return
        lens = self.states(seam, out, lse, name=name, lse_layout=lse_layout, lens=lens, key_starts=key_starts, cu_seqlens=cu_seqlens, causal=causal)
        if not self._recomputes:
            return
        common = self._common("rows", Place(self.layer, seam, f"{name or seam}, recomputed"), out, out.shape[0], out.shape[1], lens=lens, cu_seqlens=cu_seqlens,
                              block_table=block_table, base=base, causal=causal, q=q, k=k, v=v, scale=scale,
                              lse_layout=None if lse is None else lse_layout)  # fmt: skip
        try:
            ops.check_attention(out, lse, q, k, v, lens=lens, cu_seqlens=cu_seqlens, block_table=block_table, first=first, scale=scale, v_scale=v_scale,
                                causal=causal, every=self.sample, step_size=self.choice.every, most_keys=self.most_keys, lse_layout=lse_layout, base=base, **common)  # fmt: skip
        except UnitError as error:  # no wheel contains code for this call; all other checks continue
            self._recomputes = False
            self._say(f"mlafix watch: attention is not computed again: {error}")

    def blocks(self, cache: Any, block_table: Any, lens: Any, *, name: str = "", whole: bool = False) -> None:
        """Checks the live blocks of a cache `[m, p, …]` (`mlafix.ops.check_blocks`)."""
        if not self.wants("cache", cache):
            return
        rows, width = block_table.shape
        common = self._common("blocks", Place(self.layer, "cache", name or "cache"), cache, rows, width, lens=lens, block_table=block_table)
        ops.check_blocks(cache.view(*cache.shape[:2], -1), block_table, lens, whole=whole, **common)

    def metadata(self, lens: Any, *, pages: int, page_size: int, expected_lens: Any = None, cu_seqlens: Any = None, slots: Any = None,
                 block_table: Any = None, name: str = "") -> None:
        """Checks the lengths, offsets, slots and block table of a batch (`mlafix.ops.check_metadata`)."""
        if not self.wants("metadata", lens):
            return
        entries = max(lens.shape[0], 0 if slots is None else slots.shape[0])
        common = self._common("entries", Place(self.layer, "metadata", name or "metadata"), lens, entries, 1, lens=lens)
        ops.check_metadata(lens, pages=pages, page_size=page_size, expected_lens=expected_lens, cu_seqlens=cu_seqlens, slots=slots,
                           block_table=block_table, **common)  # fmt: skip

    def poison(self, output: Any) -> None:
        """Fills an output with NaN before a kernel writes it, if poisoning is chosen. Does nothing if the output is
        None, since the kernel then allocates it."""
        if self.choice.poison and output is not None and any(self.wants(seam, output) for seam in self.choice.seams):
            fill_nan(output)

    # -- Findings -----------------------------------------------------------------------------------------------------

    def _common(self, kind: str, place: Place, tensor: Any, rows: int, columns: int, **sizes: Any) -> dict[str, Any]:
        """Returns the arguments that all checks take: record arrays, seam number, step and number of live rows.

        On a GPU, step and number of live rows are tensors on the device, so that a captured call reads the values of
        each replay.
        """
        if self._records is None:
            self._records = Records(tensor.device)
            self._records.begin(self.now, self._live if self.samples else 0)
        again = self._in_step[place]
        self._in_step[place] += 1
        number = self._numbers.get((place, again))
        if number is None:
            number = self._numbers[place, again] = len(self._places)
            self._places.append(place)
        captures = _captures(tensor)
        if captures:
            self._captured_before[number] = self._captured if self._was_capturing else None
            self._captured = number
        self._was_capturing = captures
        described = {name: _described(value) for name, value in sizes.items() if value is not None}
        if self.first_row:
            described["first_row"] = self.first_row
        if captures or not self._live:
            self._sizes[number] = described
        elif self._kept and self._kept[-1][0] == self.now:
            self._kept[-1][1].calls[number] = described
        given = self._records.arrays(kind, rows, columns)
        if tensor.is_cuda or capturing_on_host:
            return {**given, "seam": number, "step": self._records.step, "live_rows": self._records.live}
        return {**given, "seam": number, "step": self.now, "live_rows": min(self._live, rows)}

    def _count_keys(self, place: Place, out: Any, lens: Any, key_starts: Any, starts: Any, causal: bool) -> Counted:
        """Counts the keys that each token of `out` sees, or returns an earlier count of this step.

        If `place` comes a second time, a new pass over the layers has begun. The keys are then counted again, since
        kernels may have changed the lengths in place.
        """
        import torch

        source = key_starts if lens is None else lens
        key = (_identity(source), _identity(starts), lens is None, out.shape[0], bool(causal), _order_of(out))
        counted = self._counted.get(key)
        if counted is None or place in counted.places:
            lens = source.diff() if lens is None else lens
            if len(self._counted) >= _MOST_COUNTED:
                self._counted.clear()
            counted = self._counted[key] = Counted(torch.empty(out.shape[0], dtype=torch.int32, device=out.device), lens, (source, starts), set())
            ops.visible_keys(counted.keys, lens, starts, causal=causal)
        counted.places.add(place)
        return counted

    def _look(self, wait: bool) -> None:
        records = self._records
        assert records is not None
        arrived = records.answer()
        if wait or arrived:
            found = records.take()
            if found:
                self._report(found)
        records.ask()

    def _report(self, found: list[Found]) -> None:
        for one in found:
            place = self._places[one.seam]
            self.counts[place.seam, one.fault] += 1
            if self.choice.repair and (place.seam == "merge" or one.fault == "not empty"):
                self.repaired[place.seam] += 1
        step = min(one.step for one in found)
        batch = next((batch for kept, batch in self._kept if kept == step), None)
        calls = batch.calls if batch is not None else {}
        ran = list(calls)
        order = {number: at for at, number in enumerate(ran)}
        # A seam that did not run in this step belongs to a replayed graph. Such seams come last, in the order of their
        # capture.
        first = min((one for one in found if one.step == step), key=lambda one: (order.get(one.seam, len(order)), one.seam, one.row))
        same = [one for one in found if (one.step, one.seam) == (first.step, first.seam)]
        before = ran[order[first.seam] - 1 :][:1] if order.get(first.seam) else []
        if first.seam not in order:
            captured = self._captured_before.get(first.seam)
            before = ran[-1:] if captured is None else [captured]
        name = str(self._places[before[0]]) if before else ""
        report = report_of(first, same, self._places, name, batch, calls.get(first.seam) or self._sizes.get(first.seam, {}), self.now)
        self.reports.append(report)
        self._say(report.line)
        if self._json is not None:
            with self._json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(report.record) + "\n")


# -- Tensors ------------------------------------------------------------------------------------------------------------


def _captures(tensor: Any) -> bool:
    if not tensor.is_cuda:
        return capturing_on_host
    import torch

    return bool(torch.cuda.is_current_stream_capturing())


def _order_of(tensor: Any) -> tuple[int, int]:
    """Returns the current stream of a tensor's device, and the number of the capture in progress (0 if none). Kernels
    with the same two numbers run in order, now or in each replay."""
    if not tensor.is_cuda:
        return 0, int(capturing_on_host)
    import torch

    stream = torch.cuda.current_stream(tensor.device).cuda_stream
    number = ctypes.c_ulonglong()
    if _captures(tensor):
        state = ctypes.byref(ctypes.c_int())
        status = ctypes.CDLL("libcuda.so.1").cuStreamGetCaptureInfo(ctypes.c_void_p(stream), state, ctypes.byref(number))
        if status:
            raise DriverError(f"cuStreamGetCaptureInfo: expected the number of a capture, got CUDA error {status}")
    return stream, number.value


capturing_on_host = False
"""True while a test without a GPU records calls and later repeats them, as a captured graph does."""


def _on_host(values: Any) -> Any:
    """Copies a tensor to the host without waiting. The copy is read only after a record has arrived, so it is complete
    then."""
    if not hasattr(values, "is_cuda"):
        return values.copy() if hasattr(values, "copy") else values
    import torch

    copy = torch.empty(values.shape, dtype=values.dtype, pin_memory=values.is_cuda)
    copy.copy_(values, non_blocking=True)
    return copy


def _described(value: Any) -> Any:
    """Returns the shape and the dtype of a tensor. Returns any other value as it is."""
    return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")} if hasattr(value, "shape") else value


def _identity(tensor: Any) -> tuple[Any, ...]:
    """Returns a key that changes if torch reallocates or writes the tensor. Writes by kernels of other libraries do not
    change it."""
    version = 0 if tensor.is_inference() else tensor._version
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), version


def as_i32(values: Any) -> Any:
    """Converts integers to i32."""
    import torch

    return values if values.dtype == torch.int32 else values.to(torch.int32)


def _each(out: Any) -> Any:
    import torch

    return torch.arange(out.shape[0] + 1, dtype=torch.int32, device=out.device)


def _alike(tensors: Sequence[Any]) -> list[Any]:
    """Returns the tensors. Makes them contiguous if their strides differ."""
    first = tensors[0]
    if all(each.stride() == first.stride() for each in tensors):
        return list(tensors)
    return [each.contiguous() for each in tensors]


def fill_nan(tensor: Any) -> None:
    """Fills a float tensor with NaN, including fp8 tensors. Leaves integers as they are."""
    import torch

    if tensor.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        tensor.view(torch.uint8).fill_(0x7F)
    elif tensor.is_floating_point():
        tensor.fill_(float("nan"))


def poison_cache(caches: Sequence[Any], block_table: Any, lens: Any) -> None:
    """Fills the slots behind each sequence's end, in its last page, with NaN. Kernels must not read these slots
    (docs/Contract.md, C4).

    Args:
        caches: tensors `[m, p, …]`.
        block_table: `[B, w]`.
        lens: `[B]`: a sequence of length 0 has no page.
    """
    import torch

    size = caches[0].shape[1]
    last = (lens.clamp(min=1) - 1) // size
    pages = block_table.gather(1, last.long()[:, None])[:, 0].long()
    behind = torch.arange(size, device=lens.device)[None] >= (lens - last * size)[:, None]
    behind &= (lens > 0)[:, None]
    for cache in caches:
        is_fp8 = cache.dtype in (torch.float8_e4m3fn, torch.float8_e5m2)
        bits = cache.view(torch.uint8) if is_fp8 else cache
        held = bits[pages]
        mask = behind.view(*behind.shape, *[1] * (held.dim() - 2))
        bits[pages] = held.masked_fill(mask, 0x7F if is_fp8 else float("nan"))
