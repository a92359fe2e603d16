# Configures lit for the .mlir and .test files: their substitutions, environment variables and features.
import os
import shutil
import subprocess
import sys

import lit.formats

config.name = "mlafix"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)


def tool(name):
    return os.path.join(config.mlafix_tools, name)


# Substitutions. FileCheck, `not`, split-file and llvm-readelf are LLVM's programs, found on PATH.
config.substitutions.append(("%mlafix-opt", tool("mlafix-opt")))
config.substitutions.append(("%mlafix-run", tool("mlafix-run")))
config.substitutions.append(("%mlafix-bench", tool("mlafix-bench")))
config.substitutions.append(("%source", config.mlafix_source))
config.substitutions.append(("%docs", os.path.join(config.mlafix_source, "docs")))
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%kernels", os.path.join(config.mlafix_source, "kernels")))
config.environment["PATH"] = os.pathsep.join([config.llvm_tools, os.environ["PATH"]])
config.environment["FILECHECK_OPTS"] = "--dump-input=fail"
config.environment["MLAFIX_VERIFY_PASSES"] = "1"
for name in ("CUDA_HOME", "CUDA_PATH", "MLAFIX_NVJITLINK", "MLAFIX_PTXAS", "HOME", "VIRTUAL_ENV", "ASAN_OPTIONS",
             "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# Features that tests require with REQUIRES.
if config.mlafix_sanitize:
    config.available_features.add("sanitizer")
for name in ("mlafix-run", "mlafix-bench"):
    if os.path.exists(tool(name)):
        config.available_features.add(name)
# mlafix-opt has the option --mlafix-debug only if it was built with assertions.
if subprocess.run([tool("mlafix-opt"), "--mlafix-debug=none", "--list-targets"], stdout=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL, env=config.environment).returncode == 0:
    config.available_features.add("assertions")
if shutil.which("ptxas"):
    config.available_features.add("ptxas-on-path")


def assembles(kind):
    """Returns True if mlafix-opt finds the assembler. Runs mlafix-opt to find out."""
    kernel = os.path.join(config.test_source_root, "Target", "gpu.mlir")
    command = [tool("mlafix-opt"), kernel, "--target=sm_90", "--emit=cubin", "--assembler=" + kind, "-o", os.devnull]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=config.environment).returncode == 0


for kind in ("nvjitlink", "ptxas"):
    if assembles(kind):
        config.available_features.update((kind, "assembler"))
