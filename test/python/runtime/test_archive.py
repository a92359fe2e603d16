"""An archive of units, as in a wheel. Every call that a wheel promises runs from the archive without compiling, for any
number of heads."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlafix
import numpy as np
import pytest
from mlafix import cache, ops
from mlafix._files import archive as _archive
from mlafix.dsl.digest import digest as dsl_digest

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts" / "wheel"))
make_archive = pytest.importorskip("make_archive", reason="the sources have no scripts")
import alike  # noqa: E402
import wheel_calls  # noqa: E402

DIM, DTYPE = 128, "bf16"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder that contains an archive for this machine's CPU."""
    made: Path = tmp_path_factory.mktemp("archive")
    # takes the units from a wheel's build if there was one, and compiles them otherwise
    of_wheel = Path(mlafix.__file__).parents[2] / "wheel-units" / "made"
    make_archive._units[:] = make_archive.wanted([DIM], [DTYPE])
    folders = make_archive.Folders(of_wheel if of_wheel.is_dir() else made / "units", None)
    make_archive.pack(made / f"library{_archive.SUFFIX}", folders, ["x86-64"], jobs=2)
    return made


@pytest.fixture
def archived(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Makes the archive the only source of code: the caches are empty, and compiling is forbidden."""
    monkeypatch.setenv("MLAFIX_PREBUILT", str(folder))
    monkeypatch.setenv("MLAFIX_STRICT", "1")
    monkeypatch.setenv("MLAFIX_CACHE", "0")
    _forget()
    yield folder
    _forget()


def _forget() -> None:
    cache.clear_memory()
    for family in ops._families.FAMILIES.values():
        family.clear()
        family.fast.clear()


def _run(calls: list[tuple[Any, dict[str, Any]]]) -> list[list[np.ndarray]]:
    """Returns, for each call, its results and its arguments afterwards. Arrays of one-byte elements become bytes;
    others become f64."""
    found = []
    for function, given in calls:
        result = function(**given)
        values = [result, *given.values()]
        several = itertools.chain.from_iterable(value if isinstance(value, (tuple, list)) else (value,) for value in values)
        arrays = (value for value in several if isinstance(value, np.ndarray))
        found.append([one.view(np.uint8).copy() if one.itemsize == 1 else np.array(one, np.float64) for one in arrays])
    return found


_ARCHIVED = """
import pickle, sys
import test_archive, wheel_calls
from mlafix._files import toolchain
toolchain.compiler_file = lambda: None
toolchain.compiler = lambda: sys.exit("expected no call to ask for the compiler")
wheel_calls.H = int(sys.argv[1])
calls = wheel_calls.calls([test_archive.DIM], [test_archive.DTYPE])
sys.stdout.buffer.write(pickle.dumps(test_archive._run(calls)))
"""


def test_every_call_runs_from_the_archive_as_it_does_compiled_for_its_heads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls run in a process that cannot compile. Their results are close to those of code that is compiled for the
    calls' number of heads."""
    monkeypatch.setattr(wheel_calls, "H", 3)
    calls = wheel_calls.calls([DIM], [DTYPE])
    path = os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])
    only = {"MLAFIX_PREBUILT": str(folder), "MLAFIX_STRICT": "1", "MLAFIX_CACHE": "0", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", _ARCHIVED, "3"], env={**os.environ, **only}, capture_output=True, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    for (function, _), got, compiled in zip(calls, pickle.loads(done.stdout), _run(calls), strict=True):
        for one, other in zip(got, compiled, strict=True):
            # Code that is compiled for one number of states may add in another order than code for any number. Results
            # then differ by a unit in the last place of bf16 or fp8.
            is_near = (one == other).mean() > 0.99 if one.dtype == np.uint8 else np.allclose(one, other, 2**-7, 1e-5, equal_nan=True)
            assert is_near, (function.__name__, one, other)


def test_a_call_that_the_archive_has_not_says_so(archived: Path) -> None:
    rows, lse = np.zeros((1, 3, 40), np.float32), np.zeros((3, 1), np.float32)
    with pytest.raises(mlafix.UnitError, match="expected a compiled specialisation for .*D=40.*MLAFIX_STRICT forbids"):
        ops.merge_attn_states(rows, lse, rows, lse)


def test_a_call_in_another_base_does_not_run_code_for_the_default(archived: Path) -> None:
    """A call whose lse is not in the default base raises an error if the archive lacks code for this base. The code for
    the default base is already loaded here, but must not run."""
    rows, lse = np.zeros((1, 3, DIM), wheel_calls.DTYPES[DTYPE]), np.zeros((1, 3), np.float32)
    call = {"prefix": rows, "prefix_lse": lse, "suffix": rows, "suffix_lse": lse, "kv_lens": np.ones(1, np.int32), "cu_seqlens": np.arange(2, dtype=np.int32)}
    assert np.allclose(ops.fixup_merge(**call)[1], np.log(2))
    with pytest.raises(mlafix.UnitError, match="expected a compiled specialisation for B=2"):
        ops.fixup_merge(**call, base="2")


@pytest.mark.parametrize("base", wheel_calls.BASES)
def test_blocks_of_ranks_are_merged_from_the_archive(archived: Path, base: Any) -> None:
    """The archive has the code for merges of any number of ranks, as `mlafix.distributed` launches them."""
    rows, lses = wheel_calls.floats(2, 1, 3, DIM, of=wheel_calls.DTYPES[DTYPE]), wheel_calls.floats(2, 1, 3)
    out, lse = np.empty_like(rows[0]), np.empty_like(lses[0])
    mlafix.library.kernel("merge_blocks").specialize(B=base, r=2)(out, lse, None, None, rows, lses)
    want, want_lse = ops.merge_states(rows.swapaxes(0, 1), lses.swapaxes(0, 1), base=base)
    assert (out == want).all() and np.allclose(lse, want_lse)


def test_numbers_of_heads_share_a_unit(archived: Path) -> None:
    variants = mlafix.library.variants("merge_attn_states")
    target = "x86-64"
    units = [variants.unit_of_call({"H": heads, "D": str(DIM), "T": DTYPE, "out_lse": "present"}, target) for heads in ("5", "12")]
    assert units[0] is units[1] and "H" not in units[0].kernels[0].bindings


@pytest.mark.parametrize("call", ((ops.pack_rows, 8), (ops.unpack_rows, 4), (ops.zero_blocks, 1)), ids=lambda call: call[0].__name__)
def test_moving_rows_is_available_as_a_call_runs_it(archived: Path, call: tuple[Any, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """If the archive has the code that moves rows in chunks, a call is available and uses this code. Without an
    archive, the call is not available."""
    function, chunk = call
    rows, starts = np.ones((2, 2, 5 * chunk), np.float32), np.array([0, 2, 3], np.int32)
    given = {"pack_rows": {"x": rows[0], "starts": starts, "length": 2}, "unpack_rows": {"padded": rows, "starts": starts, "out": rows[0].copy()},
             "zero_blocks": {"cache": rows.copy(), "ids": np.array([1])}}[function.__name__]  # fmt: skip
    requests = [(function, given)]
    assert mlafix.available("cpu", requests) == (True, "")
    (unit,) = mlafix.warmup(requests, "cpu")
    assert "chunks" in unit.kernels[0].name and unit.kernels[0].bindings["K"] == str(chunk)
    function(**given)
    monkeypatch.setenv("MLAFIX_PREBUILT", str(archived / "none"))
    _forget()
    found = mlafix.available("cpu", requests)
    assert not found and f'"{mlafix.compile_keys(requests)[0].kernel}"' in found.reason and "chunks" not in found.reason


def test_an_archive_that_is_damaged_is_not_used(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = bytearray((folder / f"library{_archive.SUFFIX}").read_bytes())
    (tmp_path / f"a{_archive.SUFFIX}").write_bytes(data[:20])
    (tmp_path / f"b{_archive.SUFFIX}").write_bytes(b"x" + data[1:])
    (tmp_path / f"d{_archive.SUFFIX}").write_bytes(data[:8] + b"\x63" + data[9:])
    data[-1] ^= 1
    (tmp_path / f"c{_archive.SUFFIX}").write_bytes(data)
    assert _archive.archives([tmp_path]) == []
    assert [record.message.count("not used") for record in caplog.records] == [1, 1, 1, 1]
    got = [record.message.partition(", got ")[2].partition(";")[0] for record in caplog.records]
    assert (got[1], got[3]) == ("no mlafix archive", "version 99")


@pytest.mark.parametrize("part", ("blocks", "records"))
def test_what_is_damaged_in_an_archive_is_not_run(folder: Path, tmp_path: Path, archived: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, part: str) -> None:  # fmt: skip
    (archive,) = _archive.archives([folder])
    places = archive._places["x86-64"] if part == "blocks" else archive._records_at
    data = bytearray(archive.path.read_bytes())
    for begin, size in places:
        data[begin : begin + size] = bytes(255 - byte for byte in data[begin : begin + size])
    (tmp_path / archive.path.name).write_bytes(data)
    monkeypatch.setenv("MLAFIX_PREBUILT", str(tmp_path))
    rows, lse = np.zeros((1, 3, DIM), wheel_calls.DTYPES[DTYPE]), np.zeros((3, 1), np.float32)
    with pytest.raises(mlafix.UnitError, match="expected a compiled specialisation for .*MLAFIX_STRICT forbids"):
        ops.merge_attn_states(rows, lse, rows, lse)
    assert "is not used: " in caplog.text


def test_units_of_another_machine_are_taken_if_this_compiler_makes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variants = mlafix.library.variants("clear_pad_flags")
    monkeypatch.setattr(make_archive, "_units", [make_archive.Wanted(variants, (), wheel_calls.of_most_models)])
    here, there = (make_archive.Folders(tmp_path / name, None) for name in ("here", "there"))
    out = tmp_path / f"library{_archive.SUFFIX}"
    make_archive.pack(out, there, ["x86-64"], jobs=1)
    want = out.read_bytes()
    make_archive.pack(out, here._replace(kept=there.made), ["x86-64"], jobs=1)
    assert out.read_bytes() == want and not list(here.made.iterdir())
    (kept,) = there.made.iterdir()
    kept.write_bytes(kept.read_bytes()[:-8] + b"\xcc" * 8)
    with pytest.raises(SystemExit, match="expected what this compiler makes of clear_pad_flags: for x86-64, got something else"):
        make_archive.pack(out, here._replace(kept=there.made), ["x86-64"], jobs=1)


def test_units_that_are_alike_share_blocks_that_decompress_quickly() -> None:
    random = np.random.default_rng(0)
    kinds = [random.integers(0, 256, 1 << 18, np.uint8) for _ in range(3)]
    units = [kinds[number % 3].tobytes() + random.integers(0, 256, 1 << 12, np.uint8).tobytes() for number in range(9)]
    assert [sorted(block) for block in alike.sorted_into_blocks(units, 5.0)] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert alike.sorted_into_blocks(units, 1.0) == [[number] for number in range(9)]
    assert alike.sorted_into_blocks([b"", b"short"], 1.0) == [[0, 1]]


def test_a_gpu_runs_machine_code_of_its_major_version_and_earlier_ptx() -> None:
    assert cache._image_targets("sm_89") == ["sm_89", "sm_86", "sm_80", "sm_89+", "sm_88+", "sm_87+", "sm_86+", "sm_80+", "sm_75+"]
    assert cache._image_targets("sm_87") == ["sm_87", "sm_87+", "sm_86+", "sm_80+", "sm_75+"]
    assert cache._image_targets("x86-64-v4") == ["x86-64-v4", "x86-64-v3", "x86-64"]
    assert make_archive.expand("gpus") == ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "sm_75+"]


def test_ptx_of_any_target_has_every_unit() -> None:
    """An archive with PTX for other GPUs than the oldest ones also serves all calls."""
    variants = mlafix.library.variants("clear_pad_flags")
    of_most, formatted, rare = (make_archive.Wanted(variants, (), calls) for calls in (wheel_calls.of_most_models, wheel_calls.with_formats, wheel_calls.rare))
    targets = ["sm_75+", "sm_90+", "sm_100+", "sm_80", "sm_90"]
    held = [[make_archive.is_for(one, target) for target in targets] for one in (of_most, formatted, rare)]
    assert held == [[True] * 5, [True, True, True, False, True], [True, True, True, False, False]]


def test_a_lean_unit_runs() -> None:
    variants = mlafix.library.variants("merge_attn_states")
    bound = {"H": "any", "D": "8", "T": "f32"}
    whole = variants._compile(bound, mlafix._runtime.device_target("cpu"))
    unit = mlafix.Unit.from_bytes(make_archive.lean(whole))
    assert len(unit.manifest) < len(mlafix.Unit.from_bytes(whole).manifest) and unit.kernels[0].bindings["D"] == "8"


def test_kernels_of_the_library_that_say_different_things_have_different_digests() -> None:
    """The digest of a library kernel is made without reading its function. Kernels with equal digests must have equal
    functions and options."""
    kernels = {key._variants._whole for key in mlafix.compile_keys(wheel_calls.requests([DIM], [DTYPE])) if hasattr(key._variants, "_whole")}
    of_library = [kernel for kernel in kernels if kernel._is_of_library]
    said = {kernel.digest: dsl_digest(kernel.function, kernel.options) for kernel in of_library}
    assert len(of_library) > 20 and all(said[kernel.digest] == dsl_digest(kernel.function, kernel.options) for kernel in of_library)


def test_a_first_call_does_not_read_the_text_of_a_kernel_of_the_library(archived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlafix.dsl.python_kernel.Outside", lambda *_: pytest.fail("expected no text to be read"))
    rows, lse, scales = np.zeros((1, 3, DIM), wheel_calls.DTYPES[DTYPE]), np.zeros((3, 1), np.float32), np.zeros((1, 3, 1), np.float32)
    ops._scaled._kernel.cache_clear()
    ops.merge_attn_states(rows, lse, rows, lse, out_format=ops.Fp8Groups(scales))
