"""Holds the arrays on the device to which checks write their findings, and copies them to the host without waiting."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..ops.checks import FAULTS

FLAGS = 16
UNKNOWN_LIVE = 2**31 - 1
"""The number of live tokens if the caller gives none: every row is live."""

Kind = str
"""The kind of a record's elements, with the two indices of an element in parentheses: "rows" (token, head), "blocks"
(request, entry of the request's block table), or "entries" (request or token, always 0)."""


class Found(NamedTuple):
    """A finding of a check, read from a record: a row, block or entry that is wrong."""

    step: int
    seam: int
    fault: str
    kind: Kind
    row: tuple[int, ...]
    values: tuple[float, ...]
    """The actual lse and largest magnitude, then the expected ones. Empty for "blocks" and "entries"."""


def _zeros(*shape: int, dtype: str, **where: Any) -> Any:
    """Returns a tensor of zeros that can be written in any mode of torch. A tensor created in inference mode, which
    engines use, could be written in that mode only."""
    import torch

    with torch.inference_mode(False):
        return torch.zeros(shape, dtype=getattr(torch, dtype), **where)


class _Record:
    def __init__(self, kind: Kind, rows: int, columns: int, device: Any) -> None:
        self.kind, self.shape = kind, (rows, columns)
        self.words = _zeros(rows, columns, dtype="int64", device=device)
        self.values = _zeros(rows, columns, 4, dtype="float32", device=device) if kind == "rows" else None


class Records:
    """Holds the records of one device, and the number of the current step, which graphs read from it.

    All seams write to the same records. An element of a record keeps the first step in which it was wrong, and the
    first seam of this step.
    """

    def __init__(self, device: Any) -> None:
        import torch

        self.device = torch.device(device)
        self.is_cuda = self.device.type == "cuda"
        self.flags = _zeros(FLAGS, dtype="int32", device=self.device)
        self.step = _zeros(1, dtype="int32", device=self.device)
        self.live = _zeros(1, dtype="int32", device=self.device)
        """The number of tokens to check; 0 in steps that are not sampled."""
        self._host = _zeros(FLAGS, dtype="int32", pin_memory=self.is_cuda)
        self._copied: Any = None
        self._records: dict[tuple[Kind, int], _Record] = {}
        self._outgrown: list[_Record] = []  # records that were too small; captured graphs still write to them

    def arrays(self, kind: Kind, rows: int, columns: int) -> dict[str, Any]:
        """Returns the arrays for a check of `rows` x `columns` elements, as views of the records."""
        key = (kind, columns)
        record = self._records.get(key)
        if record is None or record.shape[0] < rows:
            if record is not None:
                self._outgrown.append(record)
            record = self._records[key] = _Record(kind, max(rows, 64), columns, self.device)
        found = {"record": record.words[:rows], "flags": self.flags}
        return {**found, "values": record.values[:rows]} if record.values is not None else found

    def begin(self, step: int, live: int) -> None:
        """Sets the step number and the number of live tokens for all following checks, including those in replayed
        graphs."""
        self.step.fill_(step)
        self.live.fill_(live)

    def ask(self) -> None:
        """Enqueues a copy of the flags to the host on the current stream, without waiting."""
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
        """True if a flag is set in the last copy of the flags. Returns None if no copy has arrived since the last
        answer."""
        if self._copied is None or not self._is_there():
            return None
        self._copied = None
        return bool(self._host.any())

    def take(self) -> list[Found]:
        """Waits for the device and returns all findings, sorted by step, seam and row. Clears the records."""
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
