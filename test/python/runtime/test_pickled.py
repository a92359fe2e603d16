"""Kernels are pickled by module and name, as functions are (triton-lang/triton#5900, pytorch/pytorch#180911)."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlafix
from mlafix import Kernel, library
from mlafix.dsl import DType, In, Out, f32, grid, inline

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

T = DType("T")


@inline
def doubled(x: Any) -> Any:
    return x * 2.0


@mlafix.kernel
def scaled(out: Out[T, "n D"], x: In[T, "n D"]) -> None:
    for t in grid("n"):
        out[t] = doubled(f32(x[t]))


@mlafix.kernel
def _renamed(out: Out[T, "n D"], x: In[T, "n D"]) -> None:
    for t in grid("n"):
        out[t] = f32(x[t])


another_name = _renamed
del _renamed
four_wide = scaled.specialize(D=4)


class Kernels:
    @staticmethod
    @mlafix.kernel
    def negated(out: Out[T, "n D"], x: In[T, "n D"]) -> None:
        for t in grid("n"):
            out[t] = -f32(x[t])


def run(kernel: Any) -> float:
    x = np.ones((3, 4), np.float32)
    out = np.empty_like(x)
    kernel(out, x)
    return float(out[0, 0])


def pickled(value: Any, protocol: int = pickle.DEFAULT_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("protocol", range(4, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("called", [False, True])
def test_a_kernel_of_a_module_is_itself_again(protocol: int, called: bool) -> None:
    if called:
        run(scaled)
    assert pickled(scaled, protocol) is scaled and pickled({"k": [scaled]})["k"][0] is scaled
    assert pickled(Kernels.negated, protocol) is Kernels.negated
    assert pickled(doubled, protocol) is doubled


def test_copies_of_a_kernel_are_itself() -> None:
    def local(out: Out[T, "n"], x: In[T, "n"]) -> None: ...

    for one in (scaled, four_wide, doubled, mlafix.kernel(local), library.merge_attn_states, another_name):
        assert copy.copy(one) is one and copy.deepcopy([one])[0] is one


def test_a_specialisation_binds_the_same_names() -> None:
    for one in (scaled.specialize(D=4), four_wide, four_wide.specialize(T="f32")):
        again = pickled(one)
        assert isinstance(again, Kernel) and again._fixed == one._fixed and run(again) == 2
    assert pickled(scaled.specialize(D=4))._general is scaled


def test_kernels_in_text_hold_their_text(tmp_path: Path) -> None:
    file = tmp_path / "scaled.mlir"
    file.write_text(library.source("softmax"))
    loaded = Kernel.load(file).specialize(D=4)
    file.unlink()
    again = pickled(loaded)
    assert (again.name, again.source, again.file, again._fixed) == (loaded.name, loaded.source, str(file), {"D": "4"})
    assert pickled(library.merge_attn_states) is library.merge_attn_states
    base2 = pickled(library.merge_attn_states.specialize(B=2))
    assert base2._fixed == {"B": "2"} and base2.variants is library.merge_attn_states.variants


def test_a_local_kernel_says_why_it_is_not_pickled() -> None:
    @mlafix.kernel
    def local(out: Out[T, "n D"], x: In[T, "n D"]) -> None: ...

    @inline
    def helper(x: Any) -> Any: ...

    place = "test_a_local_kernel_says_why_it_is_not_pickled.<locals>"
    for one, kind, name in ((local, "kernel", "local"), (local.specialize(D=4), "kernel", "local"), (helper, "inline function", "helper")):
        expected = f"<mlafix {kind} {name}>: expected it in module {__name__} under the name {place}.{name}, .*, got none there"
        with pytest.raises(pickle.PicklingError, match=expected):
            pickle.dumps(one)
    with pytest.raises(pickle.PicklingError, match=f"expected it in module {__name__} under the name _renamed, .* got none there"):
        pickle.dumps(another_name)


def test_a_kernel_whose_name_stands_for_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "scaled", scaled.function)
    with pytest.raises(pickle.PicklingError, match="under the name scaled, .*, got another object there"):
        pickle.dumps(four_wide)


def test_a_kernel_of_a_unit_says_why_it_is_not_pickled(tmp_path: Path) -> None:
    scaled.save(tmp_path / "u.mlafix", "cpu", D=4, T="f32")
    kernel = mlafix.Unit.load(tmp_path / "u.mlafix")["scaled"]
    with pytest.raises(pickle.PicklingError, match='kernel "scaled": expected .*, got one of a unit'):
        pickle.dumps(kernel)
    assert copy.deepcopy(kernel) is kernel


def test_a_module_of_torch_that_holds_a_kernel_is_copied_and_saved() -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(4, 4)
    layer.kernel = scaled
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for again in (torch.load(file, weights_only=False), copy.deepcopy(layer)):
        assert again.kernel is scaled and run(again.kernel) == 2


def test_a_kernel_is_an_argument_of_a_spawned_process(tmp_path: Path) -> None:
    (tmp_path / "of_a_program.py").write_text(
        "import multiprocessing, sys\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_pickled import run, scaled\n"
        "if __name__ == '__main__':\n"
        "    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool:\n"
        "        assert pool.submit(run, scaled.specialize(D=4)).result() == 2\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", str(tmp_path / "of_a_program.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
