"""The cache's folder: only the user's own is used, names of kernels lead nowhere else, and forks leave no lock behind."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from caching import compiler  # noqa: F401 (a fixture of every test here)
from compiling import CountingCompiler
from conftest import KERNELS

import mlafix

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

from mlafix import _disk, _keys, _runtime, _toolchain, cache  # noqa: E402

SOURCE = (KERNELS / "merge_attn_states.mlir").read_text()
BINDINGS = {"H": "2", "D": "8", "T": "f32"}
TARGET = _runtime.device_target("cpu")
NAMES = ["../../x", "/etc/x", "a/b", "", ".", "a\nb", "€" * 200, "x" * 300, "-x", "x.mlafix"]


def merge(name: str = "merge_attn_states") -> cache.Variants:
    return cache.Variants(name, SOURCE.replace("@merge_attn_states", f'@"{name}"'))


def folder() -> Path:
    """The folder that units go to."""
    found = cache.compiler_cache()
    assert found is not None
    return found.path


# -- Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_kernel_is_a_path(name: str) -> None:
    file = _keys.unit_file_name(name, SOURCE, BINDINGS, TARGET)
    assert os.path.basename(file) == file and not file.startswith(".") and len(os.fsencode(file)) < 128
    assert file != _keys.unit_file_name(name + "y", SOURCE, BINDINGS, TARGET)


def test_plain_names_are_shown() -> None:
    assert _keys.unit_file_name("merge_attn_states", SOURCE, BINDINGS, TARGET).startswith("merge_attn_states.")


@pytest.mark.parametrize("name", ["../../x", "a/b c"])
def test_a_kernel_named_like_a_path_stays_in_the_folder(compiler: CountingCompiler, tmp_path: Path, name: str) -> None:
    merge(name).load(BINDINGS, TARGET)
    assert {path.parent for path in tmp_path.rglob("*") if path.suffix in (".mlafix", ".lock")} == {folder()}
    cache.clear_memory()
    assert merge(name).load(BINDINGS, TARGET).kernels[0].name == name
    assert compiler.count == 1


# -- Owner and mode ---------------------------------------------------------------------------------------------------


def test_folders_are_made_for_the_user_alone() -> None:
    before = os.umask(0)
    try:
        merge().load(BINDINGS, TARGET)
    finally:
        os.umask(before)
    for path in (folder(), folder().parent):
        assert path.stat().st_mode & 0o777 == 0o700
    for file in folder().iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707, 0o777, 0o1777])
@pytest.mark.parametrize("filled", [False, True])
def test_a_folder_that_others_may_enter_is_refused(compiler: CountingCompiler, mode: int, filled: bool) -> None:
    if filled:
        merge().load(BINDINGS, TARGET)
        cache.clear_memory()
    folder().mkdir(parents=True, exist_ok=True)
    folder().chmod(mode)
    expected = f"expected a folder of user {os.geteuid()} with mode 0700, .*got one of user {os.geteuid()} with mode {mode:04o}"
    with pytest.raises(mlafix.UnitError, match=expected):
        merge().load(BINDINGS, TARGET)
    assert compiler.count == int(filled)
    folder().chmod(0o700)
    merge().load(BINDINGS, TARGET)
    assert compiler.count == 1


def test_a_folder_of_another_user_is_refused(compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(mlafix.UnitError, match=f"expected a folder of user {me + 1} .*got one of user {me} with mode 0700"):
        merge().load(BINDINGS, TARGET)
    assert compiler.count == 1


def test_a_link_to_another_folder_is_refused(compiler: CountingCompiler, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder().parent.mkdir(parents=True)
    folder().symlink_to(tmp_path / "elsewhere")
    with pytest.raises(mlafix.UnitError, match="got a symbolic link"):
        merge().load(BINDINGS, TARGET)
    assert compiler.count == 0 and not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_what_is_no_file_is_replaced_or_left(compiler: CountingCompiler, tmp_path: Path, kind: str) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    (path,) = folder().glob("*.mlafix")
    data = path.read_bytes()
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        (tmp_path / "aside").write_bytes(data)
        path.symlink_to(tmp_path / "aside")
    assert merge().load(BINDINGS, TARGET).kernels
    assert compiler.count == 2
    assert (path.is_file() and not path.is_symlink()) == (kind != "folder")


@pytest.mark.parametrize("ahead", [False, True])
def test_a_file_too_large_for_a_unit_is_not_read(
    compiler: CountingCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, ahead: bool
) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    (path,) = folder().glob("*.mlafix")
    right = path.read_bytes()
    if ahead:
        monkeypatch.setenv("MLAFIX_PREBUILT", str(tmp_path))
        path.rename(tmp_path / path.name)
    large = (tmp_path if ahead else folder()) / path.name
    size = _disk.MOST_BYTES * 3
    os.truncate(large, size)
    tracemalloc.start()
    try:
        assert merge().load(BINDINGS, TARGET).kernels
        assert tracemalloc.get_traced_memory()[1] < _disk.MOST_BYTES // 8
    finally:
        tracemalloc.stop()
    assert compiler.count == 2 and path.read_bytes() == right
    assert f"{large}: not used: expected at most {_disk.MOST_BYTES} bytes, got {size}" in caplog.text


# -- What a file holds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "bindings", "target"),
    [
        ("another", BINDINGS, TARGET),
        ("merge_attn_states", {**BINDINGS, "H": "4"}, TARGET),
        ("merge_attn_states", {**BINDINGS, "T": "bf16"}, TARGET),
        ("merge_attn_states", BINDINGS, "x86-64"),
    ],
)
def test_a_unit_of_something_else_is_made_anew(
    compiler: CountingCompiler, caplog: pytest.LogCaptureFixture, other: str, bindings: dict[str, str], target: str
) -> None:
    merge().load(BINDINGS, TARGET)
    (path,) = folder().glob("*.mlafix")
    right = path.read_bytes()
    path.write_bytes(compiler.compile(merge(other).source, "", kernel=other, specializations=[bindings], targets=[target]))
    cache.clear_memory()
    kernel = merge().load(BINDINGS, TARGET).kernels[0]
    assert kernel.name == "merge_attn_states" and kernel.bindings == {"B": "e", **BINDINGS}
    assert path.read_bytes() == right
    assert f'expected kernel "merge_attn_states" for D=8, H=2, T=f32 on {TARGET}, got' in caplog.text


def test_a_prebuilt_unit_of_something_else_is_passed_over(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = compiler.compile(SOURCE, "", kernel="merge_attn_states", specializations=[{**BINDINGS, "H": "4"}], targets=[TARGET])
    (tmp_path / "prebuilt").mkdir()
    (tmp_path / "prebuilt" / _keys.unit_file_name("merge_attn_states", SOURCE, BINDINGS, TARGET)).write_bytes(data)
    monkeypatch.setenv("MLAFIX_PREBUILT", str(tmp_path / "prebuilt"))
    assert merge().load(BINDINGS, TARGET).kernels[0].bindings["H"] == "2"
    assert compiler.count == 2


def test_another_spelling_of_a_size_is_the_same_kernel(compiler: CountingCompiler) -> None:
    for _ in range(2):
        assert merge().load({**BINDINGS, "D": "008"}, TARGET).kernels[0].bindings["D"] == "8"
        cache.clear_memory()
    assert compiler.count == 1


# -- Forks ------------------------------------------------------------------------------------------------------------


def test_a_child_forked_while_a_thread_compiles_gets_the_unit(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    compile_ = compiler.compile

    def held(source: str, name: str, **options: object) -> bytes:
        begun.set()
        assert goes_on.wait(30)
        return compile_(source, name, **options)

    monkeypatch.setattr(compiler, "compile", held)
    thread = threading.Thread(target=lambda: merge().load(BINDINGS, TARGET))
    thread.start()
    assert begun.wait(30)
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(30)
        os._exit(0 if merge().load(BINDINGS, TARGET).kernels else 1)
    goes_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert compiler.count == 1
