# Finds GoogleTest for every suite below test/: the installed package, else its sources (Debian and Ubuntu keep them in
# /usr/src/googletest), and defines
#   mlafix_unittest(NAME src... LINK libs...)   a test program whose tests ctest sees one by one
set(MLAFIX_GTEST_SOURCE "" CACHE PATH "Sources of GoogleTest, used where find_package does not find it")
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  find_path(_mlafix_gtest_source CMakeLists.txt
            PATHS "${MLAFIX_GTEST_SOURCE}" "${GTEST_ROOT}" "$ENV{GTEST_ROOT}" /usr/src/googletest NO_DEFAULT_PATH)
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

function(mlafix_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()
