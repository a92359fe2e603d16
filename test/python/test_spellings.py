"""examples/python/library.py against kernels/*.mlir: two spellings of the same kernels."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from structure import structure

import mlafix
from mlafix import library

_compiler = pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"
VALUES = {"H": "4", "D": "64", "T": "bf16", "O": "f16", "B": "2", "C": "e", "I": "i64"}


def load_example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


PYTHON = load_example("library")


def python_kernel(name: str) -> mlafix.Kernel:
    kernel = getattr(PYTHON, name, None)
    assert isinstance(kernel, mlafix.Kernel), f"examples/python/library.py has no spelling of {name}"
    return kernel


def canonical(text: str, name: str, bindings: dict[str, str]) -> list[str]:
    choices = [bindings] if bindings else []
    return structure(_compiler.compile(text, name, kernel=name, specializations=choices, emit="canonical"))


def names_of(signature: dict[str, Any]) -> dict[str, str]:
    return {name: VALUES[name] for name in signature["names"] if name[0].isupper()}


@pytest.mark.parametrize("name", library.names())
def test_both_spellings_give_the_same_ir(name: str) -> None:
    bindings = names_of(json.loads(library.signature(name)))
    assert canonical(python_kernel(name).source, name, bindings) == canonical(library.source(name), name, bindings)


@pytest.mark.parametrize("name", library.names())
def test_both_spellings_have_the_same_signature(name: str) -> None:
    assert python_kernel(name).signature == json.loads(_compiler.signature(library.source(name), name))


def test_a_kernel_that_does_something_else_is_told_apart() -> None:
    text = library.source("merge_attn_states")
    bindings = names_of(json.loads(library.signature("merge_attn_states")))
    want = canonical(text, "merge_attn_states", bindings)
    for change in (
        ("arith.cmpi slt", "arith.cmpi sle"),
        ("%suffix[%t, %h] lse %suffix_lse[%h, %t]", "%suffix[%t, %h] lse %prefix_lse[%h, %t]"),
        ("mlafix.merge %p, %s", "mlafix.merge %s, %p"),
        (" if %in_context", ""),
    ):
        assert change[0] in text
        assert canonical(text.replace(*change), "merge_attn_states", bindings) != want
    renamed = text.replace("%in_context", "%a").replace("%m", "%z")
    assert canonical(renamed, "merge_attn_states", bindings) == want
