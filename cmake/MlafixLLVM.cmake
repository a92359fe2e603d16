# Finds LLVM and MLIR 22. Defines:
#
#   mlafix_mlir
#
# The INTERFACE target through which all compiler code uses LLVM and MLIR.
#
#   mlafix_mlir_library(NAME src... [DEPENDS target...] [LINK lib...] [APART src...])
#
# Adds a static library of the compiler that uses mlafix_mlir. APART lists files for mlafix_unity.
#
# MLIR's own CMake functions are not used to add libraries: with Debian's packages they link static archives beside
# libMLIR.so, so that the process has two copies of every global. The version is 22.1 because the version file of
# Debian's package accepts 22.1 but not 22.
find_package(MLIR 22.1 REQUIRED CONFIG
             PATHS /usr/lib/llvm-22 "$ENV{LLVM_PREFIX}" PATH_SUFFIXES lib/cmake/mlir)
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")
if(CMAKE_CROSSCOMPILING) # the package's mlir-tblgen runs only on the target machine
  find_program(MLAFIX_MLIR_TBLGEN mlir-tblgen PATHS /usr/lib/llvm-22/bin REQUIRED)
  set(MLIR_TABLEGEN_EXE ${MLAFIX_MLIR_TBLGEN})
endif()

# MLIR compares traits by type ids, which must be unique in a process. With hidden visibility each library would have
# its own type ids, so the symbols of the compiler's libraries are visible.
set(CMAKE_CXX_VISIBILITY_PRESET default)
set(CMAKE_VISIBILITY_INLINES_HIDDEN OFF)

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS}) # mlir-tblgen reads these paths
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(mlafix_mlir INTERFACE)
target_include_directories(mlafix_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
# Sources include headers by their path from the root of the sources ("dialect/Mlafix.h") or of the build
# ("dialect/MlafixOps.h.inc", which is generated).
target_include_directories(mlafix_mlir INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
separate_arguments(_mlafix_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(mlafix_mlir INTERFACE ${_mlafix_llvm_definitions})
# Debian builds LLVM with RTTI and without exceptions, so the compiler is built likewise.
target_compile_options(mlafix_mlir INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)

target_link_libraries(mlafix_mlir INTERFACE MLIR LLVM)

# MLIR's headers take most of a source file's compile time, so they are parsed once. The library of the dialect, which
# all others link, makes the precompiled header, and the others reuse it. Headers that only some sources need, such as
# those of the LLVM and NVVM dialects, are left out, because each run of the compiler takes longer to map a larger
# precompiled header.
set(_mlafix_precompiled
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/MemRef/IR/MemRef.h>
    <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Vector/IR/VectorOps.h> <mlir/IR/BuiltinOps.h> <mlir/IR/Matchers.h>
    <mlir/Pass/Pass.h>)

function(mlafix_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK;APART" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  set_property(GLOBAL APPEND PROPERTY MLAFIX_MLIR_LIBRARIES ${name})
  target_link_libraries(${name} PUBLIC mlafix_mlir ${ARG_LINK})
  # The libraries build faster with -O1 than with -O3. Kernels still compile as fast, since LLVM's own libraries take
  # most of the time to compile a kernel (docs/Experiments.md, "Building").
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  mlafix_unity(${name} APART ${ARG_APART})
  if(name STREQUAL MlafixDialect)
    target_precompile_headers(${name} PRIVATE ${_mlafix_precompiled})
  else()
    target_precompile_headers(${name} REUSE_FROM MlafixDialect)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
