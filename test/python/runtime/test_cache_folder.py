"""The folder of the cache. Only a folder of the user or of root is used, and only if no other user may write to it.
Kernel names cannot lead out of the folder, and forks leave no lock behind."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import threading
import time
import traceback
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import mlafix
import pytest
from caching import compiler  # noqa: F401 (a fixture of every test here)
from compiling import CountingCompiler
from sources import KERNELS

from mlafix import _runtime, cache
from mlafix._files import disk, keys

SOURCE = (KERNELS / "merge_attn_states.mlir").read_text()
BINDINGS = {"H": "2", "D": "8", "T": "f32"}
TARGET = _runtime.device_target("cpu")
NAMES = ["../../x", "/etc/x", "a/b", "", ".", "a\nb", "€" * 200, "x" * 300, "-x", "x.mlafix"]


def merge(name: str = "merge_attn_states") -> cache.Variants:
    return cache.Variants(name, SOURCE.replace("@merge_attn_states", f'@"{name}"'))


def folder() -> Path:
    """Returns the folder that contains the cached units."""
    found = cache.compiler_cache()
    assert found is not None
    return found.path


# -- Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_kernel_is_a_path(name: str) -> None:
    file = keys.unit_file_name(name, SOURCE, BINDINGS, TARGET)
    assert os.path.basename(file) == file and not file.startswith(".") and len(os.fsencode(file)) < 128
    assert file != keys.unit_file_name(name + "y", SOURCE, BINDINGS, TARGET)


def test_plain_names_are_shown() -> None:
    assert keys.unit_file_name("merge_attn_states", SOURCE, BINDINGS, TARGET).startswith("merge_attn_states.")


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


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o705, 0o2755])
def test_a_folder_that_others_may_read_is_used(compiler: CountingCompiler, mode: int) -> None:
    merge().load(BINDINGS, TARGET)
    folder().chmod(mode)
    for _ in range(2):
        cache.clear_memory()
        merge().load(BINDINGS, TARGET)
        assert compiler.count == 1


@pytest.mark.parametrize("mode", [0o775, 0o770, 0o2770, 0o707, 0o702, 0o777, 0o1777])
@pytest.mark.parametrize("filled", [False, True])
def test_a_folder_that_others_may_write_is_not_used(compiler: CountingCompiler, mode: int, filled: bool) -> None:
    if filled:
        merge().load(BINDINGS, TARGET)
        cache.clear_memory()
    folder().mkdir(parents=True, exist_ok=True)
    folder().chmod(mode)
    before = sorted(folder().iterdir())
    expected = f"expected a folder of .* that nobody else may write, .*got one of user {os.geteuid()} with mode {mode:04o}"
    with pytest.warns(mlafix.CacheWarning, match=expected) as given:
        assert merge().load(BINDINGS, TARGET).kernels
    assert len(given) == 1
    assert compiler.count == 1 + filled and sorted(folder().iterdir()) == before


@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o702, False), (0o1777, True), (0o2770, True), (0o755, True)])
def test_the_outer_folder_is_not_one_in_which_anyone_may_rename(compiler: CountingCompiler, mode: int, used: bool) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    folder().parent.chmod(mode)
    expected = f'expected the cache to lie in a folder .* that nobody else may write, got "{folder().parent}", one of user {os.geteuid()}'
    with contextlib.nullcontext() if used else pytest.warns(mlafix.CacheWarning, match=expected):
        assert merge().load(BINDINGS, TARGET).kernels
    assert compiler.count == 2 - used


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o660, 0o666])
def test_a_file_that_others_may_write_is_made_anew(compiler: CountingCompiler, caplog: pytest.LogCaptureFixture, mode: int) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    (path,) = folder().glob("*.mlafix")
    path.chmod(mode)
    merge().load(BINDINGS, TARGET)
    assert compiler.count == 2 and path.stat().st_mode & 0o777 == 0o600
    assert f"{path}: not used: expected a file of " in caplog.text


def test_strict_mode_says_why_the_cache_is_not_used(compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    merge().load(BINDINGS, TARGET)
    cache.clear_memory()
    folder().chmod(0o770)
    monkeypatch.setenv("MLAFIX_STRICT", "1")
    expected = f"one in {folder()} \\(which is not used: expected a folder .* with mode 0770\\), got none, and MLAFIX_STRICT"
    with pytest.warns(mlafix.CacheWarning), pytest.raises(mlafix.UnitError, match=expected):
        merge().load(BINDINGS, TARGET)


def test_a_link_to_another_folder_is_not_followed(compiler: CountingCompiler, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder().parent.mkdir(parents=True)
    folder().symlink_to(tmp_path / "elsewhere")
    with pytest.warns(mlafix.CacheWarning, match="got a symbolic link"):
        merge().load(BINDINGS, TARGET)
    assert compiler.count == 1 and not list((tmp_path / "elsewhere").iterdir())


# -- Several users ----------------------------------------------------------------------------------------------------

ONE, OTHER = 12345, 12346


def as_user(user: int, work: Callable[[], bool]) -> bool:
    """Runs `work` in a child process as another user in root's group, like containers that run as arbitrary users.
    Returns the result of `work`."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(0, 0, 0)
            os.setresuid(user, user, user)
            os._exit(0 if work() else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def load_and_count(compiler: CountingCompiler, compiled: int, warning: str = "") -> bool:
    """Loads one unit. Returns true if this took `compiled` compilations and gave one warning that matches `warning`, or
    no warning if `warning` is empty."""
    compiler.log = compiler.log.with_name(f"compiled-by-{os.geteuid()}-{time.monotonic_ns()}")
    cache.clear_memory()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        merge().load(BINDINGS, TARGET)
    messages = [str(one.message) for one in given]
    print(f"user {os.geteuid()}: compiled {compiler.count}, {messages}")
    return compiler.count == compiled and len(messages) == bool(warning) and all(re.search(warning, message) for message in messages)


@pytest.fixture
def shared_cache(compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Returns the folder of a cache that every user can reach."""
    if os.geteuid() != 0:
        pytest.skip("only root becomes another user")
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        (Path(place) / "log").mkdir()
        (Path(place) / "log").chmod(0o777)
        compiler.log = Path(place) / "log" / "compiled"
        monkeypatch.setenv("MLAFIX_CACHE_DIR", f"{place}/cache")
        yield Path(place) / "cache"


def open_to_readers(cache_folder: Path) -> None:
    """Runs the command that docs/Installation.md recommends for images: chmod -R a+rX."""
    subprocess.run(["chmod", "-R", "a+rX", str(cache_folder)], check=True)


def test_what_root_compiled_is_read_by_others(compiler: CountingCompiler, shared_cache: Path) -> None:
    merge().load(BINDINGS, TARGET)
    open_to_readers(shared_cache)
    assert as_user(ONE, lambda: load_and_count(compiler, 0))


def test_what_root_compiled_for_itself_is_compiled_again_by_others(compiler: CountingCompiler, shared_cache: Path) -> None:
    merge().load(BINDINGS, TARGET)
    assert as_user(ONE, lambda: load_and_count(compiler, 1, "kernels are compiled without it: Permission denied"))


def test_what_others_compile_is_not_kept_in_roots_folder(compiler: CountingCompiler, shared_cache: Path) -> None:
    merge().load({**BINDINGS, "H": "4"}, TARGET)
    open_to_readers(shared_cache)
    expected = f"compiled kernels are not kept: expected a folder of user {ONE} to write to, got one of user 0"
    assert as_user(ONE, lambda: load_and_count(compiler, 1, expected))


@pytest.mark.parametrize("reader", [0, OTHER])
def test_what_another_user_compiled_is_not_run(compiler: CountingCompiler, shared_cache: Path, reader: int) -> None:
    shared_cache.mkdir()
    shared_cache.chmod(0o1777)
    assert as_user(ONE, lambda: load_and_count(compiler, 1))
    open_to_readers(folder())
    expected = f"kernels are compiled without it: expected a folder .* got one of user {ONE} with mode 0755"
    assert as_user(reader, lambda: load_and_count(compiler, 1, expected))


def test_files_of_another_user_in_roots_folder_are_not_run(compiler: CountingCompiler, shared_cache: Path) -> None:
    merge().load(BINDINGS, TARGET)
    open_to_readers(shared_cache)
    (path,) = folder().glob("*.mlafix")
    os.chown(path, OTHER, 0)
    assert as_user(ONE, lambda: load_and_count(compiler, 1, "compiled kernels are not kept"))


def test_a_cache_that_the_group_may_write_does_not_make_calls_fail(compiler: CountingCompiler, shared_cache: Path) -> None:
    merge().load(BINDINGS, TARGET)
    subprocess.run(["chmod", "-R", "g=u,g+s", str(shared_cache)], check=True)
    for user in (0, ONE):
        assert as_user(user, lambda: load_and_count(compiler, 1, "got one of user 0 with mode .*70"))


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
    kept = kind != "folder"
    with contextlib.nullcontext() if kept else pytest.warns(mlafix.CacheWarning, match="not kept: Is a directory"):
        assert merge().load(BINDINGS, TARGET).kernels
    assert compiler.count == 2
    assert (path.is_file() and not path.is_symlink()) == (kind != "folder")


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "text"])
def test_whatever_is_in_place_of_a_lock_costs_only_time(compiler: CountingCompiler, tmp_path: Path, kind: str) -> None:
    merge().load(BINDINGS, TARGET)
    (path,) = folder().glob("*.mlafix")
    path.unlink()
    cache.clear_memory()
    lock = path.with_suffix(".lock")
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    elif kind == "link":
        lock.symlink_to(tmp_path / "nowhere")
    else:
        lock.write_text("of a process that ended")
    errors = {"folder": "not kept: Is a directory", "link": "not kept: Too many levels of symbolic links"}
    with pytest.warns(mlafix.CacheWarning, match=errors[kind]) if kind in errors else contextlib.nullcontext():
        assert merge().load(BINDINGS, TARGET).kernels
    assert compiler.count == 2 and not (tmp_path / "nowhere").exists()


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
    size = disk.MOST_BYTES * 3
    os.truncate(large, size)
    tracemalloc.start()
    try:
        assert merge().load(BINDINGS, TARGET).kernels
        assert tracemalloc.get_traced_memory()[1] < disk.MOST_BYTES // 8
    finally:
        tracemalloc.stop()
    assert compiler.count == 2 and path.read_bytes() == right
    assert f"{large}: not used: expected at most {disk.MOST_BYTES} bytes, got {size}" in caplog.text


# -- Contents of files ------------------------------------------------------------------------------------------------


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
    assert kernel.name == "merge_attn_states" and {"B": "e", **BINDINGS}.items() <= kernel.bindings.items()
    assert path.read_bytes() == right
    assert f'expected kernel "merge_attn_states" for D=8, H=2, T=f32 on {TARGET}, got' in caplog.text


def test_a_prebuilt_unit_of_something_else_is_passed_over(
    compiler: CountingCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = compiler.compile(SOURCE, "", kernel="merge_attn_states", specializations=[{**BINDINGS, "H": "4"}], targets=[TARGET])
    (tmp_path / "prebuilt").mkdir()
    (tmp_path / "prebuilt" / keys.unit_file_name("merge_attn_states", SOURCE, BINDINGS, TARGET)).write_bytes(data)
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
