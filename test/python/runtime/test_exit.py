"""A program ends with status 0 although one of its daemon threads is in a call, as in servers (jax#18246,
joblib/threadpoolctl#40).

Before Python 3.14, the interpreter ends such a thread by pthread_exit, which unwinds the thread's stack. If a C++
function on this stack were noexcept, the whole process would be terminated.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mlafix

START = """
import sys, threading, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from mlafix import library, ops
x = np.ones((4000, 64), np.float32)

class Producer:  # its methods let other threads run
    def __init__(self, array):
        self.array = array
    def __dlpack_device__(self):
        time.sleep(0.001)
        return self.array.__dlpack_device__()
    def __dlpack__(self, **options):
        time.sleep(0.001)
        return self.array.__dlpack__(**options)
"""
LOOPS = {
    "a call": "out = np.empty_like(x)\ndef work(): ops.softmax(x, out=out)",
    "a call that allocates": "def work(): ops.softmax(x)",
    "a bound call": "bound = library.kernel('softmax').bind(np.empty_like(x), x, 1.0)\ndef work(): bound()",
    "Python code that a call runs": "out = np.empty_like(x)\ndef work(): ops.softmax(Producer(x), out=out)",
    "a compilation": """
from mlafix._files import toolchain
kernel = library.kernel('rmsnorm')
def work():
    toolchain.compiler().compile(kernel.source, 'kernel', specializations=[{'D': '64', 'T': 'f32'}], targets=['cpu'])
""",
    "an error of the compiler": """
from mlafix._files import toolchain
def work():
    try: toolchain.compiler().compile('module { func.func @f() { return } }', 'kernel', targets=['cpu'])
    except Exception: pass
""",
}
END = """
work()
def loop():
    while True:
        work()
for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.2)
"""


@pytest.mark.parametrize("what", LOOPS)
def test_a_daemon_thread_may_be_in(what: str, tmp_path: Path) -> None:
    if "compil" in what:
        pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")
    package = str(Path(mlafix.__file__).absolute().parents[1])
    environment = {**os.environ, "PYTHONPATH": package, "MLAFIX_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", START + LOOPS[what] + END], capture_output=True, text=True, timeout=120, env=environment)
        assert (run.returncode, run.stderr) == (0, "")
