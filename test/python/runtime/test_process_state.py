"""A kernel is compiled to the same bytes, and computes the same, whatever state its process is in: the locale, the
floating-point environment, signals and the working directory."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

import mlafix

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

# The kernel has constructs that could depend on the host's arithmetic: inexact constants, a division that becomes a
# product, folded functions, subnormal numbers. The text of its constants in JSON could depend on the locale.
KERNEL = """
import mlafix
from mlafix.dsl import In, Out, assume, exp, f32, grid, log, shape, sin

@mlafix.kernel
def numbers(y: Out[f32, "n D"], x: In[f32, "n D"], scale: f32):
    for t in grid("n"):
        constants = exp(f32(0.3)) + log(f32(0.7)) + sin(f32(1e-3)) + f32(0.1)
        y[t] = (x[t] * scale + 1e-41) / 7.0 + constants * x[t] / 0.3
"""
STATES = {
    "plain": "",
    "decimal comma": "import locale; locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')",
    "rounding up": "libm.fesetround({'x86_64': 0x800, 'aarch64': 0x400000}[machine])",
    "rounding to zero": "libm.fesetround(0xc00 if machine == 'x86_64' else 0xc00000)",
    "flush to zero": """
environment = (ctypes.c_uint32 * 16)()
assert libm.fegetenv(environment) == 0
environment[7 if machine == 'x86_64' else 0] |= 0x8040 if machine == 'x86_64' else 1 << 24
assert libm.fesetenv(environment) == 0
assert float.fromhex('0x1p-1030') * 0.5 == 0
""",
    "traps": "assert libm.feenableexcept(1 | 4 | 8) >= 0 or machine == 'aarch64'",
    "signals blocked": "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
    "children ignored": "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "folder removed": "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
    "umask": "os.umask(0o777 & ~0o700)",
}
PROGRAM = """
import ctypes, hashlib, json, os, platform, sys, warnings
import numpy as np
from kernels import numbers
from mlafix._files import toolchain
libm, machine = ctypes.CDLL('libm.so.6'), platform.machine()
x = np.linspace(-2, 2, 48, dtype=np.float32).reshape(3, 16)
y, tiny = np.empty_like(x), np.zeros_like(x)
np.equal(y, y)  # numpy's first use of a function computes what it needs
{state}
def launch():
    numbers(y, x, 0.1)
    numbers(tiny, np.ones_like(x), 1e-40)
def compiled(target, emit):
    return toolchain.compiler().compile(numbers.source, 'numbers', specializations=[{{'D': '16'}}], targets=[target], emit=emit)
def digest(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()
made = {{
    'text': digest(numbers.source),
    'ptx': digest(compiled('sm_90', 'ptx')),
    'unit': digest(compiled('cpu', 'unit')),
    'verdicts': [[a['verdict'] for a in arg['answers']] for arg in numbers.report(D=16)['args']],
}}
launch()
faults = len(numbers.debug(y, x, 0.1).faults)
made.update(y=digest(y.tobytes()), tiny=digest(tiny.tobytes()), faults=faults)
sys.stdout.write(json.dumps(made))
"""


@lru_cache
def result(state: str, folder: Path) -> dict[str, object]:
    """Compiles and runs the kernel in a process with the given state. Returns digests of the code and of the results,
    the verdicts of the proofs, and the number of faults."""
    place = folder / state.replace(" ", "_")
    place.mkdir()
    (folder / "kernels.py").write_text(KERNEL)  # one path for all states, since the MLIR text contains it
    (place / "program.py").write_text(PROGRAM.format(state=STATES[state]))
    run = subprocess.run([sys.executable, "program.py"], env={**environment(folder), "MLAFIX_CACHE_DIR": str(place / "cache")}, cwd=place, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    made: dict[str, object] = json.loads(run.stdout)
    return made


def environment(folder: Path) -> dict[str, str]:
    package = str(Path(mlafix.__file__).absolute().parents[1])
    return {**os.environ, "PYTHONPATH": f"{package}:{folder}", "LOCPATH": str(locales(folder)), "LC_ALL": "C.UTF-8"}


@lru_cache
def locales(folder: Path) -> Path:
    """Returns a folder with the German locale, in which a half is written 0,5."""
    if not shutil.which("localedef") or not Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("needs localedef and the sources of locales (Debian: locales)")
    made = folder / "locales"
    made.mkdir()
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(made / "de_DE.UTF-8")], check=True)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the states are set through glibc")
@pytest.mark.parametrize("state", list(STATES)[1:])
def test_a_kernel_does_not_depend_on_the_state_of_its_process(state: str, folder: Path) -> None:
    assert result(state, folder) == result("plain", folder)


def test_messages_have_decimal_points(folder: Path) -> None:
    """Numbers in messages have a decimal point in every locale, since programs search messages for numbers."""
    program = """
import locale; locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')
from mlafix import _runtime
for wrong in (lambda: _runtime.PeerGroup(0, [1], timeout=-1.5),):
    try:
        wrong()
    except Exception as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], env=environment(folder), capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("got -1.5")
