"""The cache of compiled kernels: when a kernel is compiled, what the cache keeps, and how it treats damaged files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import mlafix
import numpy as np
import pytest
from caching import compiler  # noqa: F401 (a fixture of every test here)
from compiling import CountingCompiler
from sources import KERNELS

from mlafix import _runtime, cache, library
from mlafix._files import disk, keys, toolchain

SOURCE = (KERNELS / "merge_attn_states.mlir").read_text()
BINDINGS = {"H": "2", "D": "8", "T": "f32"}
BASES = dict.fromkeys(("B", "PrefixBase", "SuffixBase", "ResultBase", "MeetingBase"), "e")
BOUND = {**BASES, **BINDINGS}  # the bindings of the compiled unit
TARGET = _runtime.device_target("cpu")


def merge() -> cache.Variants:
    return cache.Variants("merge_attn_states", SOURCE)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.mlafix"))


def test_compiled_once_then_from_memory_then_from_disk(compiler: CountingCompiler, tmp_path: Path) -> None:
    first = merge().load(BINDINGS, TARGET)
    assert merge().load({"T": "f32", "D": 8, "H": 2}, TARGET) is first
    assert compiler.count == 1
    cache.clear_memory()
    again = merge().load(BINDINGS, TARGET)
    assert compiler.count == 1
    assert again is not first and again.kernels[0].bindings == BOUND
    assert len(files(tmp_path / "cache")) == 1
    assert not list((tmp_path / "cache").rglob(".new-*"))


@pytest.mark.parametrize(
    "variants, bindings, target",
    [
        (cache.Variants("merge_attn_states", SOURCE + "\n// another source"), BINDINGS, TARGET),
        (merge(), {**BINDINGS, "T": "bf16"}, TARGET),
        (merge(), BINDINGS, "x86-64"),
    ],
)
def test_another_variant_is_compiled_by_itself(
    compiler: CountingCompiler, variants: cache.Variants, bindings: dict[str, str], target: str
) -> None:
    merge().load(BINDINGS, TARGET)
    variants.load(bindings, target)
    assert compiler.count == 2


@pytest.mark.parametrize("change", ["compiler", "assembler"])
def test_another_compiler_starts_afresh(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    if change == "compiler":
        monkeypatch.setattr(toolchain, "compiler_facts", lambda: ("version 2",))
    else:
        monkeypatch.setenv("MLAFIX_PTXAS", "/opt/other/ptxas")
    merge().load(BINDINGS, TARGET)
    assert compiler.count == 2


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "other"])
def test_a_corrupt_entry_is_rebuilt(
    compiler: CountingCompiler, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    (path,) = files(tmp_path / "cache")
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 3] ^= 4
    path.write_bytes({"truncated": good[:-7], "flipped": bytes(flipped), "empty": b"", "other": b"x" * 999}[damage])
    unit = merge().load(BINDINGS, TARGET)
    assert compiler.count == 2
    assert unit.kernels[0].bindings == BOUND
    assert path.read_bytes() == good
    assert str(path) in caplog.text


def test_nothing_on_disk_where_that_is_asked(
    compiler: CountingCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLAFIX_CACHE", "0")
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    merge().load(BINDINGS, TARGET)
    assert compiler.count == 2
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_cannot_be_used_costs_only_time(
    compiler: CountingCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(mlafix.CacheWarning, match="kernels are compiled without it: Not a directory") as given:
        assert merge().load(BINDINGS, TARGET).kernels
    assert len(given) == 1 and given[0].filename == __file__


def test_a_folder_of_which_a_warning_was_given_is_not_named_again(
    compiler: CountingCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for heads in ("2", "4", "8"):
            merge().load({**BINDINGS, "H": heads}, TARGET)
    assert len(given) == 1


@pytest.mark.parametrize("refused", ["open", "mkdir", "write", "flush"])
def test_a_full_disk_costs_only_time(
    compiler: CountingCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    def is_full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if refused == "open":  # no file can be created, so creating the lock file fails, too
        monkeypatch.setattr(disk, "_open_file", lambda name, flags, folder: is_full() if flags & os.O_CREAT else os.open(name, flags, dir_fd=folder))
    elif refused == "mkdir":
        monkeypatch.setattr(os, "mkdir", is_full)
    elif refused == "write":
        monkeypatch.setattr(os, "replace", is_full)
    else:
        (tmp_path / "cache").mkdir(mode=0o700)
        open_file = disk._open_file
        monkeypatch.setattr(
            disk, "_open_file", lambda name, flags, folder: os.open("/dev/full", os.O_WRONLY) if flags & os.O_EXCL else open_file(name, flags, folder)
        )
    with pytest.warns(mlafix.CacheWarning, match="compiled kernels are not kept: No space left on device") as given:
        for heads in ("2", "4"):
            assert merge().load({**BINDINGS, "H": heads}, TARGET).kernels
    assert len(given) == 1 and compiler.count == 2
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
def test_a_full_file_system_costs_only_time(compiler: CountingCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(place)], capture_output=True).returncode:
        pytest.skip("this system does not let a test mount a file system")
    try:
        (place / "filler").write_bytes(bytes(56 << 10))
        monkeypatch.setenv("MLAFIX_CACHE_DIR", str(place / "cache"))
        with pytest.warns(mlafix.CacheWarning, match="compiled kernels are not kept: No space left on device") as given:
            for heads in ("2", "4"):
                assert merge().load({**BINDINGS, "H": heads}, TARGET).kernels
        assert len(given) == 1
        assert not [path for path in (place / "cache").rglob("*") if path.is_file()]
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from mlafix import _env

    monkeypatch.delenv("MLAFIX_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _env.cache_dir() == tmp_path / "xdg" / "mlafix"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _env.cache_dir() == tmp_path / ".cache" / "mlafix"


def test_strict_mode_raises_instead_of_compiling(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    monkeypatch.setenv("MLAFIX_STRICT", "1")
    merge().load(BINDINGS, TARGET)  # loads the unit from disk
    with pytest.raises(mlafix.UnitError, match="for D=8, H=2, T=bf16 on .*MLAFIX_STRICT forbids"):
        merge().load({**BINDINGS, "T": "bf16"}, TARGET)
    assert compiler.count == 1


def test_without_a_compiler_only_what_is_there_already(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    merge().load(BINDINGS, TARGET)
    (path,) = files(tmp_path / "cache")
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    path.rename(shipped / path.name)
    cache.clear_memory()
    monkeypatch.setattr(toolchain, "compiler_file", lambda: None)
    with pytest.raises(mlafix.UnitError, match="this installation has no compiler"):
        merge().load(BINDINGS, TARGET)
    monkeypatch.setenv("MLAFIX_PREBUILT", f"{tmp_path / 'absent'}{os.pathsep}{shipped}")
    assert merge().load(BINDINGS, TARGET).kernels[0].bindings == BOUND
    assert compiler.count == 1


def test_prebuilt_code_for_an_older_chip_of_the_kind(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = compiler.compile(
        SOURCE, "", kernel="merge_attn_states", specializations=[BINDINGS], targets=["x86-64"], emit="unit"
    )
    (tmp_path / keys.unit_file_name("merge_attn_states", SOURCE, BINDINGS, "x86-64")).write_bytes(data)
    monkeypatch.setenv("MLAFIX_PREBUILT", str(tmp_path))
    monkeypatch.setattr(toolchain, "compiler_file", lambda: None)
    assert merge().load(BINDINGS, "x86-64-v3").kernels[0].targets == ["x86-64"]


def test_older_targets_are_those_of_the_table() -> None:
    gpus = [name for name in _runtime.TARGETS if name.startswith("sm_")]
    cpus = [name for name in _runtime.TARGETS if name.startswith("x86-64")]
    assert cache._older_targets(gpus[-1]) == gpus[-2::-1]
    assert cache._older_targets(gpus[0]) == []
    assert cache._older_targets("sm_95") == [name for name in reversed(gpus) if int(name[3:]) < 95]
    assert "sm_88" in cache._older_targets("sm_90")
    assert cache._older_targets(cpus[0]) == cpus[1:] == ["x86-64-v3", "x86-64"]
    assert cache._older_targets(cpus[-1]) == cache._older_targets("aarch64") == []
    assert cache._older_targets("riscv") == []


def test_what_the_compiler_says_reaches_the_caller(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise mlafix.CompileError("expected X, got Y", "k.mlir", 3, 4)

    monkeypatch.setattr(compiler, "compile", refuse)
    with pytest.raises(mlafix.CompileError) as error:
        merge().load(BINDINGS, TARGET)
    assert error.value.line == 3
    assert not files(tmp_path / "cache")


def test_threads_that_want_the_same_wait_for_one(compiler: CountingCompiler) -> None:
    compiler.delay = 0.2
    units: list[_runtime.Unit] = []
    threads = [threading.Thread(target=lambda: units.append(merge().load(BINDINGS, TARGET))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compiler.count == 1
    assert len(units) == 8 and all(unit is units[0] for unit in units)


def test_processes_that_want_the_same_wait_for_one(tmp_path: Path) -> None:
    script = Path(__file__).parent / "compiling.py"
    log = tmp_path / "log"
    command = [sys.executable, "-W", "error", str(script), str(log), str(KERNELS / "merge_attn_states.mlir")]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert CountingCompiler(log).count == 1
    assert len(files(tmp_path / "cache")) == 1


def test_the_package_holds_units_compiled_ahead(compiler: CountingCompiler) -> None:
    bindings = {"H": "128", "D": "128", "T": "bf16"}
    unit = library.variants("merge_attn_states").load(bindings, "x86-64-v3")
    assert compiler.count == 0
    assert unit.kernels[0].bindings == {**BASES, **bindings} and unit.kernels[0].targets == ["x86-64-v3"]


def test_a_dispatcher_of_the_library_compiles_what_it_is_called_with(compiler: CountingCompiler) -> None:
    n, heads, dim = 3, 2, 8
    out, lse = np.full((n, heads, dim), np.nan, np.float32), np.full((n, heads), np.nan, np.float32)
    suffix, suffix_lse = np.ones((n, heads, dim), np.float32), np.zeros((n, heads), np.float32)
    by_row = {name: (1, 0) for name in ("out_lse", "prefix_lse", "suffix_lse")}
    dispatch = library.viewed("merge_attn_states", views=by_row)._dispatch
    dispatch((out, lse, suffix * 3, suffix_lse, suffix, suffix_lse, 2))
    assert (out == np.array([2, 2, 1])[:, None, None]).all()
    assert compiler.count == 1
    library.viewed("merge_attn_states")._dispatch((out, lse.T, out, suffix_lse.T, suffix, suffix_lse.T, 0))
    assert compiler.count == 1
    library.viewed("merge_attn_states")._dispatch((out, None, out, suffix_lse.T, suffix, suffix_lse.T, 0))
    assert compiler.count == 2  # a call without an lse needs another variant


ABSENT = {**BINDINGS, "out_lse": "absent"}


def test_a_call_wants_the_variant_for_its_optional_arguments(compiler: CountingCompiler, tmp_path: Path) -> None:
    assert merge()(ABSENT, 1, 0).kernels[0].bindings == {**BOUND, "out_lse": "absent"}
    assert merge()({**BINDINGS, "out_lse": "present"}, 1, 0).kernels[0].bindings == {**BOUND, "out_lse": "present"}
    assert compiler.count == 2 and len(files(tmp_path / "cache")) == 2


@pytest.mark.parametrize("strict", [False, True])
def test_a_variant_with_open_arguments_that_was_asked_for_serves_calls(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch, strict: bool
) -> None:
    (unit,) = mlafix.warmup([("merge_attn_states", BINDINGS)], "cpu")
    if strict:
        monkeypatch.setenv("MLAFIX_STRICT", "1")
    assert library.variants("merge_attn_states")(ABSENT, 1, 0) is unit
    assert compiler.count == 1


def test_a_variant_asked_for_by_name_is_exactly_that(compiler: CountingCompiler) -> None:
    merge().load(BINDINGS, TARGET)
    assert merge().load(ABSENT, TARGET).kernels[0].bindings == {**BOUND, "out_lse": "absent"}
    assert compiler.count == 2
    # The variant without an lse is compiled now, so calls use it.
    assert merge()(ABSENT, 1, 0) is merge().load(ABSENT, TARGET)


def test_a_variant_with_open_arguments_compiled_ahead_serves_calls(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    merge().load(BINDINGS, TARGET)
    (compiled,) = files(tmp_path / "cache")
    monkeypatch.setenv("MLAFIX_PREBUILT", str(compiled.parent))
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "another"))
    cache.clear_memory()
    assert merge()(ABSENT, 1, 0).kernels[0].bindings == BOUND
    assert compiler.count == 1


def test_strict_mode_takes_open_arguments_from_the_cache(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    monkeypatch.setenv("MLAFIX_STRICT", "1")
    assert merge()(ABSENT, 1, 0).kernels[0].bindings == BOUND
    with pytest.raises(mlafix.UnitError, match="D=8, H=3, T=f32, out_lse=absent.*MLAFIX_STRICT forbids"):
        merge()({**ABSENT, "H": "3"}, 1, 0)


def test_library_has_its_kernels() -> None:
    assert {"merge_attn_states", "fixup_zero_kv_rows", "rmsnorm", "softmax"} <= set(library.names())
    assert "mlafix.kernel @merge_attn_states" in library.source("merge_attn_states")
    with pytest.raises(mlafix.ArgumentError, match='argument "name": expected a kernel of the library, got "nothing"; mlafix.library.names'):
        library.source("nothing")


def test_warmup_makes_each_variant_once(compiler: CountingCompiler, capsys: pytest.CaptureFixture[str]) -> None:
    requests = [("merge_attn_states", {**BINDINGS, "T": dtype}) for dtype in ("f32", "bf16", "f32")]
    units = mlafix.warmup(requests, "cpu", progress=True)
    assert [unit.kernels[0].bindings["T"] for unit in units] == ["f32", "bf16", "f32"]
    assert compiler.count == 2
    assert "3/3" in capsys.readouterr().err
    mlafix.warmup(requests, "cpu", progress=False)
    assert compiler.count == 2
    assert capsys.readouterr().err == ""


def test_warmup_without_tqdm_draws_its_own_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    mlafix.warmup([("merge_attn_states", BINDINGS)], "cpu", progress=True)
    shown = capsys.readouterr().err
    assert "mlafix: compiling [------------------------------] 0/1" in shown
    assert "[##############################] 1/1" in shown and shown.endswith("\n")


def test_warmup_of_kernels(compiler: CountingCompiler) -> None:
    base2 = library.kernel("merge_attn_states").specialize(B=2)
    requests = [(library.merge_attn_states, {**BINDINGS, "T": mlafix.dsl.f32}), (base2, BINDINGS)]
    units = mlafix.warmup(requests, "cpu")
    assert [unit.kernels[0].bindings["B"] for unit in units] == ["e", "2"]
    assert compiler.count == 2
    library.merge_attn_states.compile(TARGET, **BINDINGS)
    base2.compile(TARGET, **BINDINGS)
    assert compiler.count == 2


def test_library_kernels_are_kernels(compiler: CountingCompiler) -> None:
    assert isinstance(library.merge_attn_states, mlafix.Kernel)
    assert library.merge_attn_states is library.kernel("merge_attn_states")
    assert "merge_attn_states" in dir(library)
    out, one, lse = (np.full(shape, value, np.float32) for shape, value in (((1, 2, 8), 0), ((1, 2, 8), 1), ((2, 1), 0)))
    library.merge_attn_states(out=out, prefix=one, prefix_lse=lse, suffix=3 * one, suffix_lse=lse, context_rows=1)
    assert (out == 2).all() and compiler.count == 1
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        library.nothing  # noqa: B018


@pytest.mark.parametrize("request_", ["merge_attn_states", ("merge_attn_states",), (3, {}), ("merge_attn_states", "H=2")])
def test_warmup_refuses_what_is_no_request(request_: object) -> None:
    with pytest.raises(mlafix.ArgumentError, match='argument "requests": expected'):
        mlafix.warmup([request_], "cpu")  # type: ignore[list-item]
