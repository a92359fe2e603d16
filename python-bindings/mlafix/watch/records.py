"""The arrays on the device that checks write to, and their transfer to the host without a wait."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..ops.checks import FAULTS

FLAGS = 16
UNKNOWN_LIVE = 2**31 - 1
"""The count of live tokens if the caller gives none."""

Kind = str
"""The kinds of places in a record: "rows" (token, head), "blocks" (request, entry of its table), "entries" (request or token,
0)."""


class Found(NamedTuple):
    """A broken row, read from a record."""

    step: int
    seam: int
    fault: str
    kind: Kind
    row: tuple[int, ...]
    values: tuple[float, ...]
    """The actual lse and largest magnitude, then the expected ones. Empty for blocks and entries."""


def _zeros(*shape: int, dtype: str, **where: Any) -> Any:
    """A tensor of zeros that may be written in any mode of torch. A tensor created in an engine's inference mode could only be
    written in that mode."""
    import torch

    with torch.inference_mode(False):
        return torch.zeros(shape, dtype=getattr(torch, dtype), **where)


class _Record:
    def __init__(self, kind: Kind, rows: int, columns: int, device: Any) -> None:
        self.kind, self.shape = kind, (rows, columns)
        self.words = _zeros(rows, columns, dtype="int64", device=device)
        self.values = _zeros(rows, columns, 4, dtype="float32", device=device) if kind == "rows" else None


class Records:
    """The records of one device, and the step number that its graphs read.

    Launches of all seams share these records. Each place keeps the first seam of the first step that found it broken.
    """

    def __init__(self, device: Any) -> None:
        import torch

        self.device = torch.device(device)
        self.is_cuda = self.device.type == "cuda"
        self.flags = _zeros(FLAGS, dtype="int32", device=self.device)
        self.step = _zeros(1, dtype="int32", device=self.device)
        self.live = _zeros(1, dtype="int32", device=self.device)
        """The number of tokens to check. 0 in steps that are not sampled."""
        self._host = _zeros(FLAGS, dtype="int32", pin_memory=self.is_cuda)
        self._copied: Any = None
        self._records: dict[tuple[Kind, int], _Record] = {}
        self._outgrown: list[_Record] = []  # captured graphs still write to these

    def arrays(self, kind: Kind, rows: int, columns: int) -> dict[str, Any]:
        """The arrays for a check with this many places, as views of the records."""
        key = (kind, columns)
        record = self._records.get(key)
        if record is None or record.shape[0] < rows:
            if record is not None:
                self._outgrown.append(record)
            record = self._records[key] = _Record(kind, max(rows, 64), columns, self.device)
        found = {"record": record.words[:rows], "flags": self.flags}
        return {**found, "values": record.values[:rows]} if record.values is not None else found

    def begin(self, step: int, live: int) -> None:
        """Sets the step of all following checks, including those of replayed graphs."""
        self.step.fill_(step)
        self.live.fill_(live)

    def ask(self) -> None:
        """Enqueues a copy of the flags to the host on the stream, without waiting."""
        import torch

        if self._copied is not None and not self._is_there():
            return  # the previous copy has not arrived yet
        self._host.copy_(self.flags, non_blocking=True)
        self._copied = True
        if self.is_cuda:
            self._copied = torch.cuda.Event()
            self._copied.record()

    def _is_there(self) -> bool:
        return self._copied is True or bool(self._copied.query())

    def answer(self) -> bool | None:
        """True if the last copy that arrived has a flag set. None if no copy has arrived since the last answer."""
        if self._copied is None or not self._is_there():
            return None
        self._copied = None
        return bool(self._host.any())

    def take(self) -> list[Found]:
        """All broken rows, sorted by step, seam and row. Clears the records. Waits for the device."""
        found = []
        for record in [*self._outgrown, *self._records.values()]:
            places = record.words.nonzero()
            words = record.words[tuple(places.T)].tolist()
            values = [()] * len(words) if record.values is None else [tuple(row) for row in record.values[tuple(places.T)].tolist()]
            found += [Found(word >> 32, word >> 8 & 0xFFFFFF, FAULTS[word & 0xFF], record.kind, tuple(place), numbers)
                      for word, place, numbers in zip(words, places.tolist(), values)]  # fmt: skip
            record.words.zero_()
        self.flags.zero_()
        self._copied = None
        return sorted(found, key=lambda one: (one.step, one.seam, one.row))
