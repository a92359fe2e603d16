# A toolchain file that builds for AArch64 Linux on a Debian machine of any architecture, with Debian's cross compiler
# (g++-aarch64-linux-gnu). scripts/make-wheels --arm64 uses this file.
#
#   MLAFIX_ARM64_ROOT   a folder with Debian's unpacked arm64 packages of LLVM, MLIR, zlib, zstd and Python, as
#                       scripts/install-deps --arm64 makes it. The C and C++ libraries come with the cross compiler
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_STRIP aarch64-linux-gnu-strip)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MLAFIX_ARM64_ROOT)
if(MLAFIX_ARM64_ROOT)
  set(CMAKE_FIND_ROOT_PATH ${MLAFIX_ARM64_ROOT})
  # Debian's pyconfig.h includes <aarch64-linux-gnu/python3.N/pyconfig.h>. -idirafter finds this header in the unpacked
  # packages.
  set(CMAKE_CXX_FLAGS_INIT "-idirafter ${MLAFIX_ARM64_ROOT}/usr/include")
  set(MLIR_DIR ${MLAFIX_ARM64_ROOT}/usr/lib/llvm-22/lib/cmake/mlir CACHE PATH "MLIR for AArch64")
endif()
# Programs come from the build machine, since they run during the build. The headers of nlohmann_json and of Python may
# also come from the build machine, since the build links no libraries of these two packages.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
