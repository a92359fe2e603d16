"""The extension module mlafix._compiler: what it compiles from text, and what its errors say."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

import mlafix

_compiler = pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "kernels"
BOUND = {"H": "4", "D": "64", "T": "bf16"}


@pytest.fixture(scope="module")
def source() -> str:
    return (KERNELS / "merge_attn_states.mlir").read_text()


def test_version_names_compiler_and_llvm() -> None:
    assert _compiler.version().startswith(f"mlafix {mlafix.__version__}, LLVM ")


def test_unit_is_bytes_that_load(source: str) -> None:
    data = _compiler.compile(source, "merge.mlir", specializations=[BOUND], targets=["cpu"])
    assert isinstance(data, bytes)
    bases = dict.fromkeys(("B", "PrefixBase", "SuffixBase", "ResultBase", "MeetingBase"), "e")
    assert [kernel.bindings for kernel in mlafix.Unit.from_bytes(data).kernels] == [{**bases, **BOUND}]


def test_source_may_be_bytes(source: str) -> None:
    text = _compiler.compile(source.encode(), "merge.mlir", emit="canonical")
    assert text == _compiler.compile(source, "merge.mlir", emit="canonical")


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        ("source", "mlafix.merge"),
        ("specialized", "memref<?x4x64xbf16"),
        ("canonical", "mlafix.load_state"),
        ("lowered", "math.exp2"),
        ("layout", "#mlafix.plan<layout = <"),
        ("distributed", "vector.load"),
        ("mlir", "llvm.func"),
        ("llvm", "define"),
        ("ptx", ".target sm_90"),
    ],
)
def test_every_stage_is_text(source: str, emit: str, expected: str) -> None:
    text = _compiler.compile(source, "merge.mlir", specializations=[BOUND], targets=["sm_90"], emit=emit)
    assert isinstance(text, str)
    assert expected in text


def test_signature_names_what_can_be_bound(source: str) -> None:
    signature = json.loads(_compiler.signature(source, "merge.mlir"))
    assert signature["name"] == "merge_attn_states"
    assert {"H", "D", "T"} <= set(signature["names"])
    args = {arg["name"]: arg for arg in signature["args"]}
    assert args["out"]["dtype_name"] == "T"
    assert "dtype_name" not in args["out_lse"]
    assert args["context_rows"]["at_most"] == "n"


def test_error_has_the_place_and_a_caret(source: str) -> None:
    with pytest.raises(mlafix.CompileError) as caught:
        _compiler.compile(source.replace("merge %p", "merge %q"), "merge.mlir", emit="canonical")
    error = caught.value
    line = source.splitlines()[error.line - 1]
    assert (error.file, error.column) == ("merge.mlir", line.index("%p") + 1)
    assert "mlafix.merge %q" in str(error)
    assert str(error).splitlines()[-1].index("^") == error.column - 1


def test_error_underlines_a_range_of_python() -> None:
    here = _compiler.Location(__file__, 1, 5, 1, 14)
    with pytest.raises(mlafix.CompileError) as caught:
        _compiler.KernelBuilder("k", here).add_tensor("x", ["n"], "f64", "", "read", False, [], "", False, 0, "", [], here)
    assert str(caught.value).splitlines()[-1] == "    ^" + "~" * 8
    assert (caught.value.file, caught.value.line, caught.value.column) == (__file__, 1, 5)


@pytest.mark.parametrize("argument", ["emit", "assembler"])
def test_unknown_choices_say_what_there_is(source: str, argument: str) -> None:
    with pytest.raises(mlafix.CompileError, match=f"{argument}: expected .*, got 'nothing'"):
        _compiler.compile(source, "merge.mlir", **{argument: "nothing"})


def test_source_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="source: expected str or bytes"):
        _compiler.compile(3, "merge.mlir")


def test_one_variant_is_made_alone(source: str) -> None:
    ptx = _compiler.compile(source, "m", specializations=[BOUND], targets=["sm_90"], emit="ptx", variant="dense")
    assert ptx.count(".visible .entry") == 1 and "_dense(" in ptx
    with pytest.raises(mlafix.CompileError, match="--variant: expected no name, since --emit=unit takes all code versions"):
        _compiler.compile(source, "m", specializations=[BOUND], targets=["sm_90"], variant="dense")


def test_what_was_compiled_before_has_no_influence() -> None:
    """Compiling the same kernel again gives the same code. Passes are reused, and an op may have the address that an op
    of an earlier kernel had, so a pass must not remember ops by their addresses."""
    names = ("merge_states", "merge_states_ragged", "combine_split_kv", "merge_states_mapped", "merge_attn_states")
    bound = {name: {"H": "4", "D": "64", "T": "f16", **({"O": "f16"} if name in names[2:4] else {})} for name in names}
    made = {(name, _compiler.compile((KERNELS / f"{name}.mlir").read_text(), name, specializations=[bound[name]], targets=["sm_90"], emit="lowered"))
            for _ in range(50) for name in names}
    assert len(made) == len(names)


def test_threads_compile_at_once(source: str) -> None:
    expected = _compiler.compile(source, "m", specializations=[BOUND], targets=["sm_90"], emit="ptx")
    results: list[str] = []

    def work() -> None:
        for _ in range(5):
            results.append(_compiler.compile(source, "m", specializations=[BOUND], targets=["sm_90"], emit="ptx"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 20


CUBE_ROOTS = """
mlafix.kernel @k(%y: memref<?xf32, strided<[?], offset: ?>> {mlafix.access = "update", mlafix.dims = ["n"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, strided<[?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %x = mlafix.load %y[%t] : memref<?xf32, strided<[?], offset: ?>> -> f32
    %root = math.cbrt %x : f32
    mlafix.store %root, %y[%t] : f32, memref<?xf32, strided<[?], offset: ?>>
  }
}
"""


@pytest.mark.parametrize("target", ["sm_90", "x86-64"])
def test_functions_of_math_are_those_of_the_page(target: str) -> None:
    with pytest.raises(mlafix.CompileError) as caught:
        _compiler.compile(CUBE_ROOTS, "m", targets=[target])
    listed = re.search(r"expected math\.(.*?), got 'math\.cbrt'", str(caught.value))
    on_page = re.search(r"^- of `math`: (.*?)\. Others", (ROOT / "docs" / "Dialect.md").read_text(), re.DOTALL | re.MULTILINE)
    assert listed and on_page
    assert re.findall(r"`(\w+)`", on_page[1]) == re.findall(r"\w+", listed[1].replace(" or ", " "))
