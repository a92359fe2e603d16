"""Runs kernels as a GPU would: executes their PTX in this process (test/ptx)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import mlafix
import numpy as np
import peers
from arena import View
from mlafix._runtime import PeerGroup, PeerTensors
from syntax import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from ptx import emulated  # noqa: E402


class PtxDevice:
    """A CUDA device whose memory is host memory. A process has only one."""

    may_reverse = True
    may_exchange = True

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.device = emulated.start(Path(folder))
        self.group: PeerGroup | None = None

    def begin(self, buffer: np.ndarray) -> None:
        self.group = None
        self.buffer = self.device.array(buffer.size)
        self.buffer[:] = buffer

    def view(self, view: View) -> Any:
        return emulated.Tensor(view.of(self.buffer), self.device)

    def of_ranks(self, tensor: Tensor, array: Any, turn: int) -> Any:
        if self.group is None:
            ranks, words = len(array), peers.words_of(len(array))
            # The workspaces are kept as long as the group, since kernels may access them.
            self.workspaces = self.device.array(ranks * words * 8).view(np.int64).reshape(ranks, words)
            peers.fill(self.workspaces, turn)
            self.group = peers.group_of([one.ctypes.data for one in self.workspaces])
        return PeerTensors(list(array), self.group)

    def end(self) -> np.ndarray:
        try:
            self.device.check()
        except emulated.PtxError as error:
            raise mlafix.DriverError(f"PTX: {error}") from None
        return self.buffer.copy()
