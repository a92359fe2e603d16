"""Explains why a call runs certain code: which code versions it was offered, and what the chosen one does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CodeVersion:
    """One code version that a call was offered.

    Attributes:
        entry: the name of its entry point.
        refused: what the first failing guard expected and got; "" if the version takes the call.
        chosen: whether a launch runs this version, the first one that takes the call.
    """

    entry: str
    refused: str
    chosen: bool


@dataclass(frozen=True)
class CallExplanation:
    """The code versions that a call was offered, and what the chosen one does. Printed, it is a table.

    Attributes:
        kernel: the kernel's name.
        bindings: the bindings of its code: {"D": "128", …}.
        target: the code's target: "sm_90", "x86-64-v3".
        versions: the code versions, in the order in which a call tries them.
        rows: the number of rows of the grid, without the inner dims if the grid is ragged. 0 if nothing is launched.
        blocks: the number of blocks on a GPU; 0 on a CPU.
        threads: the number of threads in each block; 0 on a CPU.
        bytes_read: the bytes of the arguments that are read, if each of their elements is read once.
        bytes_written: the bytes of the arguments that are written, if each of their elements is written once.
        bandwidth: the bandwidth of the GPU's memory in bytes per second; 0 on a CPU, or if the driver does not report
            it.
    """

    kernel: str
    bindings: Mapping[str, str]
    target: str
    versions: tuple[CodeVersion, ...]
    rows: int
    blocks: int
    threads: int
    bytes_read: int
    bytes_written: int
    bandwidth: int

    @property
    def least_us(self) -> float | None:
        """The time in which the GPU's memory moves the bytes, in microseconds; None if its bandwidth is unknown."""
        return (self.bytes_read + self.bytes_written) / self.bandwidth * 1e6 if self.bandwidth else None

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> CallExplanation:
        """The explanation in the launch_info of a bound call."""
        versions = tuple(
            CodeVersion(entry, refused, number == info["variant"])
            for number, (entry, refused) in enumerate(info["versions"])
        )
        bindings = dict(binding.split("=") for binding in info["bindings"].split(",") if binding)
        return cls(
            info["kernel"], bindings, info["target"], versions, info["rows"], info["grid"], info["block"],
            info["bytes_read"], info["bytes_written"], info["bandwidth"],
        )  # fmt: skip

    def __str__(self) -> str:
        bound = ", ".join(f"{name}={value}" for name, value in self.bindings.items())
        lines = [f'kernel "{self.kernel}" [{bound}] on {self.target}']
        width = max(len(version.entry) for version in self.versions)
        for version in self.versions:
            verdict = "chosen" if version.chosen else version.refused or "takes the call, and comes later"
            lines.append(f"  {version.entry:{width}}  {verdict}")
        grid = f" in {self.blocks:,} blocks of {self.threads} threads" if self.blocks else ""
        least = ""
        if self.least_us is not None:
            least = f"; the memory moves them in {self.least_us:.2f} us, at {self.bandwidth / 1e9:,.0f} GB/s"
        lines.append(f"  {self.rows:,} rows{grid}")
        lines.append(f"  {self.bytes_read:,} bytes read, {self.bytes_written:,} written{least}")
        return "\n".join(lines)
