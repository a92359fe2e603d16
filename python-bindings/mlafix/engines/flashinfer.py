"""Writes solutions for FlashInfer's "trace apply" as JSON files: `python -m mlafix flashinfer-solutions`.

FlashInfer names a definition by its function and its constant sizes, as in `merge_state_h32_d128`, and calls a Python
solution with keywords. No solution can replace `merge_state_in_place`: it returns nothing, and its trace does not tell where
results are stored.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import _runtime

MERGES = {
    "merge_state": ("v_a, s_a, v_b, s_b", "v_a, s_a.float(), v_b, s_b.float()"),
    "merge_states": ("v, s", "v, s.float()"),
}
"""For each function of FlashInfer: its parameters with their names in traces, and the call of
`mlafix.compat.flashinfer` that replaces it. The call converts lses to f32, as FlashInfer does."""

SOURCE = '''"""FlashInfer's {name} by mlafix."""

from mlafix.compat import flashinfer


def run({parameters}):
    return flashinfer.{name}({arguments})
'''


def solution(name: str, heads: int, dim: int) -> dict[str, Any]:
    """Returns a solution in FlashInfer's format, for one function and shape."""
    parameters, arguments = MERGES[name]
    hardware = [target.replace("_", "") for target in _runtime.TARGETS if target.startswith("sm_")]
    return {
        "name": f"mlafix_{name}_h{heads}_d{dim}",
        "definition": f"{name}_h{heads}_d{dim}",
        "author": "mlafix",
        "spec": {"language": "python", "target_hardware": hardware, "entry_point": "main.py::run", "dependencies": ["mlafix"],
                 "destination_passing_style": False},
        "sources": [{"path": "main.py", "content": SOURCE.format(name=name, parameters=parameters, arguments=arguments)}],
    }  # fmt: skip


def write(folder: Path, heads: list[int], dims: list[int]) -> Iterator[Path]:
    """Writes folder/solutions/mlafix/*.json, one file for each function and shape. Yields the paths."""
    place = folder / "solutions" / "mlafix"
    place.mkdir(parents=True, exist_ok=True)
    for name in MERGES:
        for count in heads:
            for dim in dims:
                made = solution(name, count, dim)
                path = place / f"{made['name']}.json"
                path.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
                yield path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--heads", type=int, action="append", required=True, metavar="N", help="query heads of a rank; may be given again")
    parser.add_argument("--dim", type=int, action="append", required=True, metavar="N", help="elements of a row; may be given again")
    parser.add_argument("-o", dest="output", type=Path, required=True, metavar="DIR", help="the folder for FLASHINFER_TRACE_APPLY_PATH")


def run(options: argparse.Namespace) -> int:
    written = list(write(options.output, options.heads, options.dim))
    print(f"wrote {len(written)} solutions in {options.output}; FLASHINFER_TRACE_APPLY=1 FLASHINFER_TRACE_APPLY_PATH={options.output} applies them")
    return 0
