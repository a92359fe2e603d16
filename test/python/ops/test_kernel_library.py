"""Compares kernels/library.json with the kernels of mlafix.kernels, and with their texts in kernels/*.mlir."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import mlafix
import pytest
from mlafix import Kernel, kernels, library
from mlafix.kernels import push
from mlafix.kernels.scaling import FORMATS

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

ROOT = Path(__file__).resolve().parents[3]
ENTRIES = json.loads((ROOT / "kernels" / "library.json").read_text(encoding="utf-8"))["kernels"]


def test_the_list_names_kernels_that_are_compiled_ahead_once() -> None:
    listed = [Path(entry["name"]).name for entry in ENTRIES]
    assert len(set(listed)) == len(listed)
    for entry in ENTRIES:
        assert entry.keys() & {"units", "package"}, f"{entry}: a kernel without bindings is compiled when it is first used, and is not listed"
        kernels.find(Path(entry["name"]).name)


def test_texts_are_written_from_the_kernels() -> None:
    if not (ROOT / "scripts").exists():
        pytest.skip("the sources have no scripts")
    done = subprocess.run([sys.executable, ROOT / "scripts" / "gen-kernels", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"scripts/gen-kernels writes them\n{done.stderr}"


def test_signatures_of_texts_are_those_of_the_kernels() -> None:
    for entry in ENTRIES:
        name = Path(entry["name"]).name
        assert json.loads(library.signature(name)) == {**kernels.find(name).signature, "name": name}


def test_every_kernel_of_the_library_warms_up() -> None:
    made = mlafix.warmup([("pack_rows", {"R": 8, "T": "f32"}), ("merge_attn_states_nvfp4", {"H": 2, "G": 2, "K": 16, "T": "bf16", "S": "f8e4m3fn", "P": 2, "Q": 1})], "cpu")
    assert [unit.kernels[0].name for unit in made] == ["pack_rows", "merge_attn_states"]
    with pytest.raises(mlafix.ArgumentError, match='expected a kernel of the library, got "pack_row"; did you mean pack_rows'):
        mlafix.warmup([("pack_row", {})], "cpu")


@pytest.mark.parametrize("name", sorted({*push.OF_MANY.values(), *push.OF_TWO.values()}))
def test_kernels_over_ranks_suppress_only_warnings_that_they_have(name: str) -> None:
    kernel = kernels.find(name)
    plain = re.sub(r'allow = \["bounds"\](, )?', "", kernel.source)
    assert (plain != kernel.source) == bool(Kernel(kernel.name, plain).report()["warnings"])


@pytest.mark.parametrize("format", FORMATS)
def test_members_of_families_have_names(format: str) -> None:
    assert library.kernel(f"merge_states_{format}") is library.kernel(f"merge_states_{format}")
