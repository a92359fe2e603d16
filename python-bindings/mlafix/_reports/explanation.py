"""Explains why a call runs certain code: lists the code versions that the call could use, and describes the chosen
one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CodeVersion:
    """One code version among which a call chooses.

    Attributes:
        entry: the name of the version's entry point.
        refused: the reason why the version cannot run the call: what the first failing guard expected and got. "" if it
            can.
        chosen: true for the version that a launch runs: the first one that can run the call.
    """

    entry: str
    refused: str
    chosen: bool


@dataclass(frozen=True)
class CallExplanation:
    """The code versions among which a call chooses, and facts about the chosen one. Prints as a table.

    Attributes:
        kernel: the kernel's name.
        bindings: the bindings of the compiled code: {"D": "128", …}.
        target: the target of the compiled code: "sm_90", "x86-64-v3".
        versions: the code versions, in the order in which a call tries them.
        rows: the number of rows of the grid. In a ragged grid this is the number of tokens, not multiplied by the sizes
            of further indices, such as heads. 0 if nothing is launched.
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
        """The time in microseconds in which the GPU's memory moves `bytes_read` and `bytes_written`. None if the
        bandwidth is unknown."""
        return (self.bytes_read + self.bytes_written) / self.bandwidth * 1e6 if self.bandwidth else None

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> CallExplanation:
        """Makes the explanation from `info`, the launch_info of a bound call."""
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
