"""Tests an installed wheel. scripts/test-wheels runs this file in bare systems, with the Python in which the wheel is
installed.

    check.py runtime     with mlafix alone: no compiler, no torch, no ml_dtypes
    check.py functions   with mlafix alone and ml_dtypes: every call that the wheel serves (wheel_calls.py of
                         scripts/wheel); beside torch that finds a GPU, also on the GPU
    check.py compiler    with mlafix-compiler as well
    check.py peers       with mlafix alone and torch: the engines' functions, with shapes for which the wheel has compiled
                         code; on a GPU if there is one
    check.py together    beside torch and Triton, which have other versions of LLVM
    check.py PAGE.md     the code of the page prints the output that the page shows
"""

from __future__ import annotations

import doctest
import importlib.util
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import numpy as np

import mlafix
from mlafix import library, ops
from mlafix.dsl import In, Out, f32, grid

PACKAGE = Path(mlafix.__file__).parent


@mlafix.kernel
def double(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] * 2.0


def merge(heads: int, dim: int) -> None:
    """Merges two states of equal weight. The result is their mean."""
    n = 4
    lse = np.zeros((heads, n), np.float32)
    one, three = (np.full((n, heads, dim), x, np.float16) for x in (1, 3))
    out, out_lse = ops.merge_attn_states(one, lse, three, lse)
    assert (out == 2).all() and np.allclose(out_lse, np.log(2)), out


def call_double() -> None:
    y = np.empty((3, 8), np.float32)
    double(y, np.ones((3, 8), np.float32))
    assert (y == 2).all(), y


def check_runtime() -> None:
    absent = [name for name in ("torch", "ml_dtypes", "mlafix._compiler") if importlib.util.find_spec(name)]
    assert not absent, f"expected none of them to be installed, got {absent}"
    assert (PACKAGE / "_runtime.pyi").exists()
    check_entry_points()
    merge(12, 128)  # the wheel's units serve this call
    assert ops.is_prefilling(np.array([3, 8, 0]), np.array([8, 8, 4])).tolist() == [True, False, True]
    for call in (lambda: merge(3, 24), call_double):
        try:
            call()
        except mlafix.UnitError as error:
            command = "python -m pip install --no-index --find-links FOLDER mlafix-compiler"  # scripts/test-wheels runs this command next
            assert f"this installation has no compiler ({command}, " in str(error), error
        else:
            raise AssertionError("expected a UnitError for what was not compiled ahead")


def check_entry_points() -> None:
    """Checks that the package's metadata lists the plugins for engines, and that a plugin imports nothing and does
    nothing here. Only an environment variable enables it."""
    for group in ("vllm.general_plugins", "sglang.srt.plugins"):
        (entry,) = [point for point in metadata.entry_points(group=group) if point.name == "mlafix"]
        assert entry.load()() is None and not {"torch", "vllm", "sglang"} & set(sys.modules)
    done = subprocess.run([sys.executable, "-m", "mlafix", "engines"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "expected vllm or sglang, installed, or as WHEEL, got neither\n"), done


def check_functions() -> None:
    """Runs the calls of wheel_calls.py with 12 heads. The wheel's code was compiled for calls with another number of
    heads and must serve 12 as well. No call may compile, since there is no compiler."""
    import wheel_calls

    from mlafix._files import archive as _archive

    assert not importlib.util.find_spec("mlafix._compiler"), "expected no compiler to be installed"
    (archive,) = _archive.archives([PACKAGE / "units"])
    dims = archive.bound("merge_attn_states", "D")
    assert dims, "expected units of merge_attn_states in the wheel"
    wheel_calls.H = 12

    def run() -> list[tuple[str, list[np.ndarray]]]:
        calls = wheel_calls.calls(sorted(map(int, dims)), wheel_calls.DTYPES)
        return [(function.__name__, arrays_of(function(**given), *given.values())) for function, given in calls]

    found = run()
    print(f"{len(found)} calls of {len({name for name, _ in found})} functions with D of {', '.join(sorted(dims, key=int))}: no call compiled anything")
    if not importlib.util.find_spec("torch") or not has_gpu():
        return
    wheel_calls.place = on_gpu
    for (name, want), (_, got) in zip(found, run(), strict=True):
        for one, other in zip(got, want, strict=True):
            is_near = (one == other).mean() > 0.99 if one.dtype.kind in "biu" else np.allclose(one, other, 2**-6, 1e-3, equal_nan=True)
            assert is_near, f"{name} on the GPU: expected {other}, got {one}"
    print(f"{len(found)} calls on the GPU: as on the CPU")


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def on_gpu(array: np.ndarray) -> object:
    import torch

    is_known = array.dtype.kind in "biuf" and not array.dtype.name.startswith("float8")  # True for the dtypes of numpy itself
    tensor = torch.from_numpy(array if is_known else array.view(f"i{array.itemsize}"))
    return (tensor if is_known else tensor.view(getattr(torch, array.dtype.name))).cuda()


def arrays_of(*values: object) -> list[np.ndarray]:
    """Returns the arrays and tensors of a call as numpy arrays. Converts bf16 to f32, and views elements of one byte,
    such as fp8 and pairs of fp4, as uint8."""
    found = []
    for value in values:
        if isinstance(value, (tuple, list)):
            found += arrays_of(*value)
        elif isinstance(value, np.ndarray):
            found.append((value.view(np.uint8) if value.itemsize == 1 else value.astype(np.float32) if value.dtype.name == "bfloat16" else value).copy())
        elif hasattr(value, "cpu"):
            import torch

            whole = value.view(torch.uint8) if value.element_size() == 1 else value.float() if value.dtype == torch.bfloat16 else value
            found.append(whole.cpu().numpy())
    return found


def check_peers() -> None:
    """Compares the payloads and lses that the engines' functions return with a reference in f64. No call may compile,
    since there is no compiler."""
    import torch

    from mlafix.compat import flash_attn, flashinfer, sglang, vllm

    assert not importlib.util.find_spec("mlafix._compiler"), "expected no compiler to be installed"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(7)
    n, k, heads, dim = 64, 4, 16, 128
    v = torch.randn(n, k, heads, dim, device=device).bfloat16()
    s = torch.randn(n, k, heads, device=device) * 4
    s[3, :2], s[5] = -torch.inf, -torch.inf  # one row with two empty states, and one with only empty states
    v[5] = torch.nan

    def want(parts: int, base: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the merge of the first `parts` states of each row, and its lse. All lses have the base `base`."""
        lse = s[:, :parts].double() * np.log(base)
        weights = lse.softmax(1).nan_to_num()[..., None]
        rows = (weights * v[:, :parts].double().nan_to_num()).sum(1)
        return rows, lse.logsumexp(1) / np.log(base)

    def compare(name: str, out: torch.Tensor, lse: torch.Tensor | None, parts: int, base: float) -> None:
        rows, row_lse = want(parts, base)
        torch.testing.assert_close(out.double(), rows, rtol=1e-2, atol=1e-2, msg=lambda text: f"{name}: {text}")
        if lse is not None:
            torch.testing.assert_close(lse.double(), row_lse, rtol=1e-5, atol=1e-5, msg=lambda text: f"{name}: {text}")

    first, second = (v[:, i].contiguous() for i in (0, 1))
    first_lse, second_lse = (s[:, i].contiguous() for i in (0, 1))
    compare("sglang.merge_state_v2", *sglang.merge_state_v2(first, first_lse, second, second_lse), 2, np.e)
    compare("flashinfer.merge_state", *flashinfer.merge_state(first, first_lse, second, second_lse), 2, 2)
    compare("flashinfer.merge_states", *flashinfer.merge_states(v, s), k, 2)
    runs = torch.arange(0, n * k + 1, k, dtype=torch.int32, device=device)
    compare("flashinfer.variable_length_merge_states", *flashinfer.variable_length_merge_states(v.flatten(0, 1), s.flatten(0, 1), runs), k, 2)
    out, lse = torch.empty_like(first), torch.empty(heads, n, device=device)
    vllm.merge_attn_states(out, first, first_lse.t().contiguous(), second, second_lse.t().contiguous(), lse)
    compare("vllm.merge_attn_states", out, lse.t(), 2, np.e)
    out, lse = first.clone(), first_lse.clone()
    flashinfer.merge_state_in_place(out, lse, second, second_lse)
    compare("flashinfer.merge_state_in_place", out, lse, 2, 2)
    partial = v.float().movedim(1, 0)[:, :, None].contiguous()  # S, B, L, H, D
    out, lse = flash_attn.flash_attn_combine(partial, s.movedim(1, 0)[:, :, None].contiguous(), out_dtype=torch.bfloat16)
    compare("flash_attn.flash_attn_combine", out[:, 0], lse[:, 0], k, np.e)
    lens = torch.tensor([4, 0], dtype=torch.int32, device=device)
    starts = torch.tensor([0, n - 8, n], dtype=torch.int32, device=device)
    out, lse = second.clone(), second_lse.clone()
    sglang.fixup_zero_kv_rows(out, lse, lens, starts, n)
    assert (out[-8:] == 0).all() and (lse[-8:] == -torch.inf).all() and torch.equal(lse[:-8], second_lse[:-8])
    lse = second_lse.t().contiguous()
    vllm.mask_empty_context_lse(lse, starts, torch.tensor([0, 4, 4], dtype=torch.int32, device=device))
    assert (lse[:, -8:] == -torch.inf).all() and torch.equal(lse[:, :-8], second_lse.t()[:, :-8])
    print(f"9 functions on {device}: no call compiled anything")


def check_compiler() -> None:
    assert (PACKAGE / "_compiler.pyi").exists()
    assert b"mlafix_tvm_ffi_call" in (PACKAGE / "native" / "lib" / "libmlafix_tvm_ffi.a").read_bytes()
    merge(3, 24)
    call_double()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "double.mlafix"
        double.save(path, ["sm_90", "cpu"], D=8)
        assert mlafix.Unit.load(path)["double"].specializations[0][0] == {"D": "8"}
    assert ".entry" in double.ptx("sm_90", D=8)


def check_together() -> None:
    """Uses three LLVMs in one process: torch's, Triton's and ours. Each is used after the others were loaded."""
    import torch
    import triton
    from triton._C import libtriton

    call_double()
    context = libtriton.ir.context()
    libtriton.ir.load_dialects(context)
    x = torch.ones(2, 8)
    y = torch.empty(2, 8)
    double(y, x)
    compiled = torch.compile(lambda v: (v + 1).sum(), backend="eager")
    assert (y == 2).all() and compiled(x) == 32 and triton.__version__
    double.ptx("sm_90", D=16)


def check_page(page: Path) -> None:
    """Runs all code of the page as one program, like a reader who copies it into a file."""
    blocks = {kind: re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S) for kind in ("python", "text")}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.py"
        file.write_text("\n".join(blocks["python"]), encoding="utf-8")
        printed = subprocess.run([sys.executable, file], cwd=folder, check=True, capture_output=True, text=True).stdout
    want = "".join(blocks["text"])
    assert want and doctest.OutputChecker().check_output(want, printed, doctest.ELLIPSIS), printed


if __name__ == "__main__":
    checks = {"runtime": check_runtime, "functions": check_functions, "peers": check_peers, "compiler": check_compiler, "together": check_together}
    checks.get(sys.argv[1], lambda: check_page(Path(sys.argv[1])))()
    print(f"mlafix {mlafix.__version__}, Python {sys.version.split()[0]}: {sys.argv[1]}, {len(library.names())} kernels in the library")
