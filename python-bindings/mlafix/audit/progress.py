"""Shows a progress bar on the standard error: tqdm's if tqdm is installed, else a line of text."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """Shows how many checks of an audit are done."""

    def __init__(self, name: str, total: int, shown: bool | None) -> None:
        self.name, self.total, self.count = name, total, 0
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.bar: Any = None
        if self.shown:
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self.bar = tqdm(total=total, desc=name, leave=False, file=sys.stderr, bar_format="{desc}: {n_fmt}/{total_fmt} {bar} {elapsed} {postfix}")

    def at(self, check: str) -> None:
        if self.bar is not None:
            self.bar.set_postfix_str(check)
        elif self.shown:
            print(f"\r{self.name}: {self.count}/{self.total} {check:4}", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        self.count += 1
        if self.bar is not None:
            self.bar.update()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        elif self.shown:
            print("\r" + " " * (len(self.name) + 20) + "\r", end="", file=sys.stderr)
