# Functions that compile units in a CMake build. This project uses them, and so do other projects after
# find_package(mlafix).
#
#   mlafix_unit(NAME SOURCE OUTPUT FILE TARGETS target... [BIND bindings...] [ALL])
#
# Compiles SOURCE into the unit FILE, and defines target NAME that depends on it.
#
#   mlafix_add_unit(NAME SOURCE TARGETS target... [BIND bindings...])
#
# Defines the static library NAME, which holds the unit. Targets that link NAME can include NAME.h, which has a C and a
# C++ function for each kernel (docs/Embedding.md). The name of the unit is NAME, with '_' in place of characters that a
# C identifier cannot have.
#
#   mlafix_add_tvm_ffi(NAME SOURCE TARGETS target... [BIND bindings...])
#
# Defines the module library NAME (NAME.so), which exports a TVM-FFI function for each kernel. Besides system libraries,
# NAME.so needs only libtvm_ffi.
#
# SOURCE is a file in MLIR's syntax, or FILE.py:KERNEL for a kernel in Python. FILE.py alone suffices if the file has
# only one kernel. BIND takes one word for each specialisation, with commas between the bindings: "H=16,D=128,T=bf16".
#
# Sources in Python are compiled by a Python that has the mlafix package and its compiler. If there is no mlafix-opt,
# this Python also compiles MLIR's syntax. This Python is MLAFIX_PYTHON, else Python_EXECUTABLE, else the first python3
# on the PATH.
#
# mlafix_add_tvm_ffi also needs libtvm_ffi: MLAFIX_LIBTVM_FFI, else that of the package apache-tvm-ffi in this Python.
cmake_policy(PUSH)
cmake_policy(VERSION 3.20)

function(mlafix_unit name source)
  cmake_parse_arguments(ARG "ALL" "OUTPUT" "BIND;TARGETS" ${ARGN})
  _mlafix_check_arguments(mlafix_unit ${name})
  _mlafix_compile(${name} ${source} ${ARG_OUTPUT} "" "")
  if(ARG_ALL)
    add_custom_target(${name} ALL DEPENDS ${ARG_OUTPUT})
  else()
    add_custom_target(${name} DEPENDS ${ARG_OUTPUT})
  endif()
endfunction()

function(mlafix_add_unit name source)
  cmake_parse_arguments(ARG "" "" "BIND;TARGETS" ${ARGN})
  _mlafix_check_arguments(mlafix_add_unit ${name})
  set(_folder ${CMAKE_CURRENT_BINARY_DIR}/mlafix/${name})
  _mlafix_compile(${name} ${source} ${_folder}/${name}.mlafix header ${_folder}/${name}.h)
  # The file that includes the header is C if the project enables C, else C++. The header is valid in both.
  get_property(_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(_suffix cpp)
  if(C IN_LIST _languages)
    set(_suffix c)
  endif()
  string(MAKE_C_IDENTIFIER ${name} _unit)
  string(TOUPPER ${_unit} _upper)
  file(GENERATE OUTPUT ${_folder}/${name}.${_suffix}
       CONTENT "#define ${_upper}_IMPLEMENTATION\n#define ${_upper}_UNIT \"${_folder}/${name}.mlafix\"\n#include \"${name}.h\"\n")
  add_library(${name} STATIC ${_folder}/${name}.${_suffix} ${_folder}/${name}.h)
  set_source_files_properties(${_folder}/${name}.${_suffix} PROPERTIES
    OBJECT_DEPENDS "${_folder}/${name}.mlafix;${_folder}/${name}.h")
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${name} PUBLIC ${_folder})
  if(CXX IN_LIST _languages)
    target_compile_features(${name} PUBLIC cxx_std_17)
  endif()
  target_link_libraries(${name} PUBLIC mlafix::runtime)
endfunction()

function(mlafix_add_tvm_ffi name source)
  cmake_parse_arguments(ARG "" "" "BIND;TARGETS" ${ARGN})
  _mlafix_check_arguments(mlafix_add_tvm_ffi ${name})
  if(NOT TARGET mlafix::tvm_ffi)
    message(FATAL_ERROR "mlafix_add_tvm_ffi(${name}): expected libmlafix_tvm_ffi.a beside the installed runtime, got none "
                        "(of the wheels, mlafix-compiler has it)")
  endif()
  _mlafix_find_libtvm_ffi(${name})
  set(_folder ${CMAKE_CURRENT_BINARY_DIR}/mlafix/${name})
  string(MAKE_C_IDENTIFIER ${name} _unit)
  _mlafix_compile(${name} ${source} ${_folder}/${_unit}.mlafix tvm-ffi ${_folder}/${_unit}.c)
  string(TOUPPER ${_unit} _upper)
  # The archive mlafix::tvm_ffi needs the C++ library, so the file is compiled and linked as C++.
  set_source_files_properties(${_folder}/${_unit}.c PROPERTIES
    LANGUAGE CXX OBJECT_DEPENDS ${_folder}/${_unit}.mlafix
    COMPILE_DEFINITIONS "${_upper}_UNIT=\"${_folder}/${_unit}.mlafix\"")
  add_library(${name} MODULE ${_folder}/${_unit}.c)
  target_link_libraries(${name} PRIVATE mlafix::tvm_ffi ${MLAFIX_LIBTVM_FFI})
  # The module has no RPATH to libtvm_ffi, since the process that loads the module has already loaded libtvm_ffi.
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX .so SKIP_BUILD_RPATH ON)
endfunction()

# Checks the arguments of the functions above: rejects unknown arguments, and requires TARGETS.
macro(_mlafix_check_arguments function name)
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${name}): expected TARGETS and BIND with their values, got ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_TARGETS)
    message(FATAL_ERROR "${function}(${name}): expected TARGETS, such as sm_90 cpu, got none")
  endif()
endmacro()

# Adds the command that compiles SOURCE into the unit OUTPUT. Unless EMIT is empty, the command also writes the file
# TEXT with --emit=EMIT. Reads the caller's variables ARG_BIND and ARG_TARGETS.
function(_mlafix_compile name source output emit text)
  get_filename_component(_folder ${output} DIRECTORY)
  get_filename_component(_file ${output} NAME)
  list(JOIN ARG_TARGETS "," _targets)
  set(_depfile "")
  # A wheel contains no executable mlafix-opt, so the Python package compiles MLIR's syntax, too.
  if(source MATCHES "\\.py(:[^/]*)?$" OR NOT (TARGET mlafix::opt OR MLAFIX_BUILD_COMPILER))
    _mlafix_check_python(${name})
    string(REGEX REPLACE ":[^/:]*$" "" _path ${source})
    get_filename_component(_path ${_path} ABSOLUTE)
    string(REGEX MATCH ":[^/:]*$" _kernel ${source})
    set(_bindings ${ARG_BIND})
    list(TRANSFORM _bindings PREPEND "--bind=")
    set(_command ${_mlafix_python} -m mlafix compile ${_path}${_kernel} ${_bindings})
    # The depfile lists the modules that the source imports, so a change of one of them compiles the unit again.
    set(_depfile DEPFILE ${output}.d)
    set(_more --depfile ${output}.d)
    set(_depends ${_path})
  else()
    get_filename_component(_path ${source} ABSOLUTE)
    set(_bindings ${ARG_BIND})
    list(TRANSFORM _bindings PREPEND "--specialize=")
    set(_command mlafix::opt ${_path} ${_bindings})
    set(_more "")
    set(_depends $<TARGET_FILE:mlafix::opt> ${_path})
  endif()
  set(_second "")
  if(emit)
    string(MAKE_C_IDENTIFIER ${name} _unit)
    set(_second COMMAND ${_command} --emit=${emit} --name=${_unit} -o ${text})
  endif()
  add_custom_command(
    OUTPUT ${output} ${text}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${_folder}
    COMMAND ${_command} --target=${_targets} --emit=unit -o ${output} ${_more}
    ${_second}
    DEPENDS ${_depends}
    ${_depfile}
    COMMENT "Compiling ${_file} for ${_targets}"
    VERBATIM)
endfunction()

# Sets _mlafix_python to the command of a Python, and fails unless this Python has the mlafix package and its compiler.
macro(_mlafix_check_python name)
  _mlafix_find_python()
  execute_process(COMMAND ${_mlafix_python} -c "import mlafix, mlafix._compiler" RESULT_VARIABLE _status
                  ERROR_VARIABLE _error OUTPUT_QUIET)
  if(NOT _status EQUAL 0)
    message(FATAL_ERROR "${name}: expected a Python with the mlafix package and its compiler to compile ${source} "
                        "(-DMLAFIX_PYTHON=...), got '${_mlafix_python}': ${_error}")
  endif()
endmacro()

macro(_mlafix_find_python)
  set(_mlafix_python "")
  foreach(_candidate "${MLAFIX_PYTHON}" "${Python_EXECUTABLE}")
    if(NOT _mlafix_python AND _candidate)
      set(_mlafix_python "${_candidate}")
    endif()
  endforeach()
  if(NOT _mlafix_python)
    find_program(MLAFIX_PYTHON3 python3)
    set(_mlafix_python "${MLAFIX_PYTHON3}")
  endif()
  if(MLAFIX_PYTHON_PATH) # for a package that is not installed
    set(_mlafix_python ${CMAKE_COMMAND} -E env PYTHONPATH=${MLAFIX_PYTHON_PATH} ${_mlafix_python})
  endif()
endmacro()

# Sets MLAFIX_LIBTVM_FFI to the path of libtvm_ffi.so, unless the user has set it.
macro(_mlafix_find_libtvm_ffi name)
  if(NOT MLAFIX_LIBTVM_FFI)
    _mlafix_find_python()
    execute_process(COMMAND ${_mlafix_python} -m tvm_ffi.config --libfiles OUTPUT_VARIABLE _found
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT EXISTS "${_found}")
      message(FATAL_ERROR "mlafix_add_tvm_ffi(${name}): expected libtvm_ffi.so (pip install 'apache-tvm-ffi>=0.1,<0.2', or "
                          "-DMLAFIX_LIBTVM_FFI=FILE), got none with '${_mlafix_python}'")
    endif()
    set(MLAFIX_LIBTVM_FFI "${_found}" CACHE FILEPATH "TVM-FFI's library")
  endif()
endmacro()

cmake_policy(POP)
