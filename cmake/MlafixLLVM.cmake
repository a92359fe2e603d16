# Finds LLVM and MLIR 22 and defines
#   mlafix_mlir                      the one INTERFACE target through which compiler code uses LLVM and MLIR
#   mlafix_mlir_library(NAME src... [DEPENDS target...] [LINK lib...] [APART src...])
#                                    a static library of ours that uses it (APART: see mlafix_unity)
#
# Debian's MLIR CMake helpers link static archives beside libMLIR.so (two copies of every global), hence plain
# libraries and one interface target. `find_package(MLIR 22)` is refused by Debian's version file: 22.1 is not.
find_package(MLIR 22.1 REQUIRED CONFIG
             PATHS /usr/lib/llvm-22 "$ENV{LLVM_PREFIX}" PATH_SUFFIXES lib/cmake/mlir)
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")
if(CMAKE_CROSSCOMPILING) # the package names the program of the machine that is built for
  find_program(MLAFIX_MLIR_TBLGEN mlir-tblgen PATHS /usr/lib/llvm-22/bin REQUIRED)
  set(MLIR_TABLEGEN_EXE ${MLAFIX_MLIR_TBLGEN})
endif()

# MLIR compares traits by type ids that must be one per process: hidden visibility gives our libraries their own.
set(CMAKE_CXX_VISIBILITY_PRESET default)
set(CMAKE_VISIBILITY_INLINES_HIDDEN OFF)

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS}) # for mlir-tblgen too
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(mlafix_mlir INTERFACE)
target_include_directories(mlafix_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
# Headers are named from the root: "dialect/Mlafix.h", and the generated "dialect/MlafixOps.h.inc".
target_include_directories(mlafix_mlir INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
separate_arguments(_mlafix_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(mlafix_mlir INTERFACE ${_mlafix_llvm_definitions})
# Debian builds LLVM with RTTI and without exceptions.
target_compile_options(mlafix_mlir INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)

target_link_libraries(mlafix_mlir INTERFACE MLIR LLVM)

# Most of a source file's compile time is MLIR's headers, so they are parsed once: the dialect's library, which every
# other one links, makes the precompiled header and the others reuse it. Headers of one dialect or of LLVM alone are
# not in it: the larger the file, the longer each compiler needs to map it.
set(_mlafix_precompiled
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/MemRef/IR/MemRef.h>
    <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Vector/IR/VectorOps.h> <mlir/IR/BuiltinOps.h> <mlir/IR/Matchers.h>
    <mlir/Pass/Pass.h>)

function(mlafix_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK;APART" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  set_property(GLOBAL APPEND PROPERTY MLAFIX_MLIR_LIBRARIES ${name})
  target_link_libraries(${name} PUBLIC mlafix_mlir ${ARG_LINK})
  # Kernels compile as fast: LLVM's own libraries take the time (docs/Experiments.md, "Building").
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
