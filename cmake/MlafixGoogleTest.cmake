# Finds GoogleTest for every suite below test/: the installed package, else its sources (Debian and Ubuntu keep them in
# /usr/src/googletest). Defines:
#
#   mlafix_unittest(NAME src... LINK libs... [APART src...])
#
# Adds a test program whose tests ctest runs one by one.
#
#   mlafix_test_program(NAME [APART src...])
#
# Makes the existing test program NAME compile faster: precompiles headers, and optimises less. This saves time, since
# compiling takes longer than running the tests. APART lists files for mlafix_unity.
set(MLAFIX_GTEST_SOURCE "" CACHE PATH "Sources of GoogleTest, used where find_package does not find it")
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  set(_mlafix_gtest_source "")
  foreach(_folder "${MLAFIX_GTEST_SOURCE}" "${GTEST_ROOT}" "$ENV{GTEST_ROOT}" /usr/src/googletest)
    if(NOT _mlafix_gtest_source AND _folder AND EXISTS ${_folder}/CMakeLists.txt)
      set(_mlafix_gtest_source ${_folder})
    endif()
  endforeach()
  if(NOT _mlafix_gtest_source)
    message(FATAL_ERROR "expected GoogleTest (libgtest-dev), or its sources in -DMLAFIX_GTEST_SOURCE=DIR, got neither; "
                        "-DMLAFIX_BUILD_TESTS=OFF builds without tests")
  endif()
  set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
  set(BUILD_GMOCK OFF CACHE BOOL "" FORCE)
  add_subdirectory(${_mlafix_gtest_source} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  if(NOT TARGET GTest::gtest_main)
    add_library(GTest::gtest ALIAS gtest)
    add_library(GTest::gtest_main ALIAS gtest_main)
  endif()
endif()
include(GoogleTest)

function(mlafix_test_program name)
  cmake_parse_arguments(ARG "" "" "APART" ${ARGN})
  get_target_property(_sources ${name} SOURCES)
  list(LENGTH _sources _count)
  # A unity build compiles up to 12 sources as one file, which gains nothing from a precompiled header.
  if(NOT MLAFIX_UNITY OR _count GREATER 12)
    target_precompile_headers(${name} PRIVATE <gtest/gtest.h> <algorithm> <functional> <map> <memory> <string> <thread> <vector>)
  endif()
  # A unity build includes the sources in another file. There, GCC would warn of fixtures in anonymous namespaces.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1> $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  mlafix_unity(${name} APART ${ARG_APART})
endfunction()

function(mlafix_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK;APART" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  mlafix_test_program(${name} APART ${ARG_APART})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS quick)
endfunction()
