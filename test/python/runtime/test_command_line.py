"""The commands of python -m mlafix. They compile kernels ahead from Python files, MLIR files and the library, and
explain errors."""

from __future__ import annotations

import json
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from sources import KERNELS
from pytest import CaptureFixture

import mlafix
from mlafix.__main__ import main

LIBRARY = KERNELS.parent / "python-bindings" / "mlafix" / "kernels" / "merge.py"
SOURCE = """
from factors import FACTOR
from mlafix.dsl import Out, In, f32, grid, kernel

@kernel
def twice(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] * FACTOR

@kernel
def wrong(y: Out[f32, "n D"]):
    for t in grid("n"):
        y[t] = missing
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "factors.py").write_text("FACTOR = 2.0\n")
    path = tmp_path / "some_kernels.py"
    path.write_text(SOURCE)
    return path


def test_compiles_a_python_kernel_to_a_unit(file: Path, tmp_path: Path) -> None:
    unit = tmp_path / "twice.mlafix"
    arguments = ["compile", f"{file}:twice", "--bind", "D=8", "--bind", "D=16", "--target", "cpu", "-o", str(unit)]
    assert main(arguments) == 0
    assert [kernel.bindings for kernel in mlafix.Unit.load(unit).kernels] == [{"D": "8"}, {"D": "16"}]


def test_names_that_a_kernel_has_bound_stay_bound(file: Path, tmp_path: Path) -> None:
    file.write_text(SOURCE + "\neight = twice.specialize(D=8)\n")
    unit = tmp_path / "eight.mlafix"
    assert main(["compile", f"{file}:eight", "--target", "cpu", "-o", str(unit)]) == 0
    assert [kernel.bindings for kernel in mlafix.Unit.load(unit).kernels] == [{"D": "8"}]


def test_unit_of_a_python_kernel_runs_from_cpp(file: Path, tmp_path: Path) -> None:
    tool = Path(mlafix.__file__).parents[2] / "bin" / "mlafix-run"  # built beside the package
    if not tool.exists():
        pytest.skip(f"needs mlafix-run, and {tool} is not there")
    unit, x, y = tmp_path / "twice.mlafix", tmp_path / "x.npy", tmp_path / "y.npy"
    assert main(["compile", f"{file}:twice", "--bind", "D=8", "--target", "cpu", "-o", str(unit)]) == 0
    values = np.arange(24, dtype=np.float32).reshape(3, 8)
    np.save(x, values)
    command = [tool, unit, "--arg", f"x={x}", "--out", f"y={y}", "--device=cpu"]
    subprocess.run(command, check=True, capture_output=True)
    np.testing.assert_array_equal(np.load(y), 2 * values)


@pytest.mark.parametrize(("emit", "said"), [("header", "compiling twice: header\n"), ("ptx", "compiling twice: ptx for sm_90\n"), ("unit", "compiling twice: 2 specialisations for sm_90, cpu\n")])
def test_what_is_compiled_is_said(emit: str, said: str, file: Path, tmp_path: Path, capsys: CaptureFixture[str]) -> None:
    targets = {"header": "", "ptx": "sm_90", "unit": "sm_90,cpu"}[emit]
    bound = ["--bind", "D=8", "--bind", "D=16"][: 4 if emit == "unit" else 2]
    output = tmp_path / f"twice.{emit}"
    assert main(["compile", f"{file}:twice", *bound, "--target", targets, "--emit", emit, "-o", str(output)]) == 0
    assert capsys.readouterr().err.startswith(said)
    if emit == "header":  # the text does not say whether this command or mlafix-opt wrote it
        assert "Written by mlafix's compiler" in output.read_text() and "mlafix-opt" not in output.read_text()


@pytest.mark.parametrize("command", ["compile -o", "compile -o /dev/null --depfile", "explain -o"])
def test_the_source_is_not_written_over(command: str, file: Path, tmp_path: Path, capsys: CaptureFixture[str]) -> None:
    (tmp_path / "link.py").symlink_to(file)
    name, *options = command.split()
    for source in (file, tmp_path / "link.py"):
        assert main([name, f"{file}:twice", "--target", "cpu", "--bind", "D=8", *options, str(source)]) == 1
        assert f'error: expected another file to write than the source, got "{source}"' in capsys.readouterr().err
    assert file.read_text() == SOURCE


def test_list_of_the_reference_is_warmed_up(capsys: CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = KERNELS.parent
    text = (root / "docs" / "language" / "tools.md").read_text(encoding="utf-8")
    shapes = tmp_path / "shapes.txt"
    shapes.write_text(next(block for block in text.split("```") if block.startswith("\n# KERNEL")))
    monkeypatch.chdir(root)
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["warmup", "--file", str(shapes), "--device", "cpu"]) == 0
    assert capsys.readouterr().err.startswith("4 ready after ")
    assert len(list((tmp_path / "cache").rglob("*.mlafix"))) == 3  # the fourth, without bound names, is prebuilt


def test_a_library_that_lacks_a_function_of_its_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: CaptureFixture[str]) -> None:
    text = "int nvJitLinkVersion(unsigned *major, unsigned *minor) { *major = 12; *minor = 4; return 0; } void __nvJitLinkCreate_12_4(void) {}"
    library = tmp_path / "libnvJitLink.so.12"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)], input=text, text=True, check=True)
    monkeypatch.setenv("MLAFIX_NVJITLINK", str(library))
    assert main(["compile", "merge_attn_states", "--bind", "H=8,D=64,T=bf16", "--target", "sm_90", "--emit", "cubin", "-o", str(tmp_path / "out")]) == 1
    assert f"'{library}', nvJitLink 12.4, does not export __nvJitLinkDestroy_12_4; install a matching libnvJitLink" in capsys.readouterr().err


@pytest.mark.parametrize("kernel", ["merge_attn_states", str(KERNELS / "merge_attn_states.mlir"), f"{LIBRARY}:merge_state_in_place"])
def test_ptx_of_every_kind_of_kernel(kernel: str, capsysbinary: CaptureFixture[bytes]) -> None:
    assert main(["compile", kernel, "--bind", "H=8,D=64,T=bf16", "--target", "sm_90", "--emit", "ptx"]) == 0
    assert b".target sm_90" in capsysbinary.readouterr().out


def test_faults_of_a_launch(file: Path, capsys: CaptureFixture[str]) -> None:
    launch = '{"y": {"sizes": [2, 4]}, "x": {"sizes": [3, 4]}, "n": 2}'
    assert main(["compile", f"{file}:twice", "--bind", "D=4", "--target", "cpu", "--emit", "faults", "--launch", launch]) == 0
    assert json.loads(capsys.readouterr().out)["faults"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "no_such_kernel", "--target", "cpu", "-o", "x"], 'got "no_such_kernel"; python -m mlafix info lists them'),
        (["compile", "merge_attn_state", "--target", "cpu", "-o", "x"], 'got "merge_attn_state"; did you mean merge_attn_states?'),
        (["check", "no_such_file.py"], 'expected a file that exists, got "no_such_file.py"'),
        (["compile", "merge_attn_states", "--target", "cpu"], "expected a file for the unit"),
        (["compile", "merge_attn_states", "--bind", "H", "--target", "cpu", "-o", "x"], '--bind: expected NAME=VALUE,…'),
        (["compile", "merge_attn_states", "--target", "sm_1", "-o", "x"], "sm_1"),
        (["compile", "merge_attn_states", "--bind", "H=1,D=2", "--target", "cpu", "-o", "x"], "expected a dtype for 'T'"),
    ],
)
def test_errors_are_one_message_and_status_1(
    arguments: list[str], message: str, capsys: CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_wrong_kernel_is_shown_with_its_place(file: Path, capsys: CaptureFixture[str]) -> None:
    assert main(["compile", f"{file}:wrong", "--bind", "D=8", "--target", "cpu", "-o", "-"]) == 1
    error = capsys.readouterr().err
    assert f"{file}:13:16: error: expected a name that is defined, got 'missing'" in error
    assert "               ^~~~~~~" in error


def test_unknown_kernel_of_a_file_names_those_it_has(file: Path, capsys: CaptureFixture[str]) -> None:
    for given in (f"{file}:thrice", str(file)):
        assert main(["compile", given, "--target", "cpu", "-o", "-"]) == 1
        assert f'expected {file}:KERNEL with one of its kernels (twice, wrong), got "{given}"' in capsys.readouterr().err


def test_info_says_what_there_is(capsys: CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    assert mlafix.__version__ in said
    assert "merge_attn_states" in said
    assert "x86-64" in said


def test_info_names_the_compiler_the_assembler_and_the_places(capsys: CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MLAFIX_PREBUILT", str(tmp_path))
    assert main(["info"]) == 0
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert str(Path(mlafix.__file__).parent) in said["compiler"]
    assert said["assembler"].startswith(("ptxas", "nvJitLink", "none: units hold PTX"))
    assert said["cache"] == f"{tmp_path / 'cache'}, 0 files, 0 bytes"
    assert said["prebuilt"].startswith(f"{tmp_path} (0 units), ")
    assert "cuda:0" in said["devices"] or "no GPU (" in said["devices"]


@pytest.mark.parametrize("name, place, message", [
    ("MLAFIX_CACHE_DIR", "a file/cache", "expected 1 compiled kernel to stay on disk, got 0; is the folder writable and large enough?"),
    ("MLAFIX_CACHE", "0", "cache: expected 1 compiled kernel to stay on disk, got 0; unset MLAFIX_CACHE=0"),
])  # fmt: skip
def test_warmup_that_keeps_nothing_fails(name: str, place: str, message: str, file: Path, capsys: CaptureFixture[str], tmp_path: Path,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a file").write_text("no folder")
    monkeypatch.setenv(name, place if name == "MLAFIX_CACHE" else str(tmp_path / place))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mlafix.CacheWarning)
        assert main(["warmup", f"{file}:twice", "--bind", "D=72", "--device", "cpu"]) == 1
    assert message in capsys.readouterr().err


def test_warmup_fills_the_cache_that_cache_shows_and_clears(
    file: Path, capsys: CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "cache"))
    shapes = tmp_path / "shapes.txt"
    shapes.write_text(f"# what the server runs\n{file}:twice D=24\n\nmerge_attn_states H=3,D=24,T=f32  # small\n")
    assert main(["warmup", f"{file}:twice", "--bind", "D=40", "--bind", "D=56", "--file", str(shapes), "--device", "cpu"]) == 0
    assert capsys.readouterr().err.startswith("4 ready after ")
    kept = list((tmp_path / "cache").rglob("*.mlafix"))
    assert len(kept) == 4
    (tmp_path / "cache" / "of another compiler").mkdir(mode=0o700)
    (tmp_path / "cache" / "of another compiler" / "old.mlafix").write_bytes(bytes(3 << 20))
    assert main(["cache"]) == 0
    said = capsys.readouterr().out
    assert f"{kept[0].parent}  of this compiler" in said and "3.0 MiB      1 files" in said
    assert main(["cache", "--clear", "old"]) == 0
    assert capsys.readouterr().out == "3.0 MiB removed\n" and all(path.exists() for path in kept)
    assert main(["cache", "--clear"]) == 0
    assert not any(path.exists() for path in kept)


def test_clearing_leaves_other_peoples_folders_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "holiday.jpg").write_bytes(b"x")
    assert main(["cache", "--clear"]) == 0
    assert (tmp_path / "photos" / "holiday.jpg").exists()


@pytest.mark.parametrize("command", [["info"], ["cache"], ["cache", "--clear"]], ids=" ".join)
def test_files_of_the_cache_may_vanish_meanwhile(
    command: list[str], capsys: CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of the cache may vanish while it is listed, as the locks of compiling processes do."""
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "of a compiler"
    folder.mkdir(mode=0o700)
    (folder / "kept.mlafix").write_bytes(bytes(1 << 20))
    listed = Path.iterdir

    def iterdir(path: Path) -> list[Path]:
        return [*listed(path), *([folder / "gone.lock"] if path == folder else [])]

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert main(command) == 0
    assert "1.0 MiB" in capsys.readouterr().out
    assert folder.exists() == ("--clear" not in command)


@pytest.mark.parametrize(("lines", "message"), [
    ("twice D=8 extra", "shapes.txt:1: expected KERNEL NAME=VALUE,…"),
    ("# a comment\ntwice D", 'shapes.txt:2: expected FILE.py:KERNEL'),
    ("merge_attn_states H=2,D=8,T=bf16\nmerge_attn_states D", 'shapes.txt:2: expected NAME=VALUE,… with each name once, got "D"'),
    ("", "got neither"),
])  # fmt: skip
def test_wrong_warmup_files(lines: str, message: str, capsys: CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "shapes.txt").write_text(lines)
    assert main(["warmup", "--file", str(tmp_path / "shapes.txt")]) == 1
    assert message in capsys.readouterr().err


def test_cmake_dir_is_that_of_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: CaptureFixture[str]) -> None:
    monkeypatch.setattr("mlafix.__main__.__file__", str(tmp_path / "__main__.py"))
    assert main(["cmake-dir"]) == 1
    folder = tmp_path / "native/lib/cmake/mlafix"
    assert f"expected the headers and library for C and C++ in {folder}, got none; in a build from source, run cmake --install" in capsys.readouterr().err
    folder.mkdir(parents=True)
    assert main(["cmake-dir"]) == 0
    assert capsys.readouterr().out == f"{folder}\n"


CHECKED = """
from mlafix.dsl import In, InOut, Out, f32, grid, i32, kernel, lse_of, exp

@kernel
def fine(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t]

@kernel
def racy(y: InOut[f32, "m D"], x: In[f32, "n D"], to: In[i32, "n"]):
    for t in grid("n"):
        y[to[t]] = x[t]

@kernel
def empty(w: Out[f32, "n"], a_lse: In[f32, "n"], b_lse: In[f32, "n"]):
    for t in grid("n"):
        w[t] = exp(a_lse[t] - max(a_lse[t], b_lse[t]))

@kernel
def wrong(y: Out[f32, "n D"]):
    for t in grid("n"):
        y[t] = missing
"""


def test_check_names_what_is_wrong_with_each_kernel_of_a_file(tmp_path: Path, capsys: CaptureFixture[str]) -> None:
    path = tmp_path / "checked.py"
    path.write_text(CHECKED + 'print("not JSON")\n')
    assert main(["check", str(path), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    kernels = {one["kernel"]: one for one in said["kernels"]}
    assert not said["clean"] and list(kernels) == ["fine", "racy", "empty", "wrong"]
    assert kernels["fine"]["errors"] == kernels["fine"]["warnings"] == []
    assert {answer["verdict"] for arg in kernels["fine"]["args"] for answer in arg["answers"]} == {"proved"}
    (race,) = kernels["racy"]["warnings"]
    assert race["message"].startswith("expected one row to write each element of 'y'") and (race["file"], race["line"]) == (str(path), 12)
    assert any("expected no NaN" in warning["message"] for warning in kernels["empty"]["warnings"])
    (error,) = kernels["wrong"]["errors"]
    assert error["message"].startswith("expected a name that is defined, got 'missing'") and error["line"] == 22
    assert main(["check", str(path)]) == 1
    text = capsys.readouterr().out
    assert 'kernel "fine": 0 errors, 0 warnings, 5 of 5 questions proved' in text
    assert f"{path}:12:9: warning: expected one row to write" in text and f"{path}:22:16: error: expected a name" in text


def test_check_generates_code_where_a_target_is_named(tmp_path: Path, capsys: CaptureFixture[str]) -> None:
    path = tmp_path / "checked.py"
    path.write_text(CHECKED)
    assert main(["check", f"{path}:fine", "--bind", "D=8", "--target", "sm_90"]) == 0
    assert main(["check", f"{path}:fine", "--target", "cpu"]) == 1
    assert "error: expected" in capsys.readouterr().out
    assert main(["check", "merge_attn_states"]) == 0
    assert main(["check", str(tmp_path / "none.py")]) == 1
