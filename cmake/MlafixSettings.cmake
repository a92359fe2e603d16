# Language level, warnings and sanitizers for every target of the project.
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
include_directories(${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)

if(MLAFIX_SANITIZE)
  add_compile_options(-fsanitize=${MLAFIX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MLAFIX_SANITIZE})
endif()

find_program(MLAFIX_CCACHE ccache)
if(MLAFIX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MLAFIX_CCACHE})
endif()

# mlafix_unity(NAME [APART src...]): with MLAFIX_UNITY, the compiler compiles several files of target NAME as one.
# Headers are most of the compiler's work, so a whole build takes half of the time. After a change of one file, the
# files that are compiled with it are compiled again, too. The files APART are compiled alone, because what they include
# or declare conflicts with other files.
option(MLAFIX_UNITY "Compile several files of a library at once: a whole build is shorter, a change's is longer" OFF)
function(mlafix_unity name)
  cmake_parse_arguments(ARG "" "" "APART" ${ARGN})
  if(MLAFIX_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12
                          UNITY_BUILD_CODE_BEFORE_INCLUDE "#undef DEBUG_TYPE")
    set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
