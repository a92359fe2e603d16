# Finds Python (3.10 or newer, with its headers) and nanobind. MLAFIX_BUILD_PYTHON is on by default if both are found.
# Python is -DPython_EXECUTABLE=…, else that of the active virtual environment, else that of the virtual environment
# that scripts/install-deps makes, else the first on the PATH.
if(NOT DEFINED Python_EXECUTABLE AND NOT DEFINED ENV{VIRTUAL_ENV}
   AND EXISTS ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
  set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/build/venv/bin/python CACHE FILEPATH "Python that the package is for")
endif()
set(Python_FIND_VIRTUALENV FIRST)
find_package(Python 3.10 COMPONENTS Interpreter Development.Module QUIET)

set(_mlafix_python_missing "")
if(MLAFIX_SANITIZE AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(_mlafix_python_missing "GCC, whose sanitizers an interpreter without them can load")
elseif(NOT Python_Interpreter_FOUND)
  set(_mlafix_python_missing "Python 3.10 or newer")
elseif(NOT Python_Development.Module_FOUND)
  set(_mlafix_python_missing "Python's headers for ${Python_EXECUTABLE} (Debian: python3-dev)")
elseif(NOT nanobind_ROOT)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                  RESULT_VARIABLE _mlafix_nanobind_status)
  if(_mlafix_nanobind_status)
    set(_mlafix_python_missing "nanobind in ${Python_EXECUTABLE} (pip install nanobind)")
  endif()
endif()

if(_mlafix_python_missing)
  if(DEFINED MLAFIX_BUILD_PYTHON AND MLAFIX_BUILD_PYTHON)
    message(FATAL_ERROR "the Python package: expected ${_mlafix_python_missing}, found none; "
                        "-DMLAFIX_BUILD_PYTHON=OFF builds without it")
  endif()
  message(STATUS "Python package: not built, for want of ${_mlafix_python_missing}")
  set(_mlafix_python_default OFF)
else()
  set(_mlafix_python_default ON)
endif()
option(MLAFIX_BUILD_PYTHON "Build the Python package (needs Python's headers and nanobind)" ${_mlafix_python_default})
option(MLAFIX_PYTHON_PORTABLE
       "Extension modules for other machines: the C++ library inside, and of Python the stable ABI from 3.12 on" OFF)
if(MLAFIX_BUILD_PYTHON)
  if(MLAFIX_PYTHON_PORTABLE AND NOT TARGET Python::SABIModule)
    # CMake defines Python::SABIModule only since 3.26. On Linux, this target needs only the headers.
    add_library(Python::SABIModule INTERFACE IMPORTED)
    target_include_directories(Python::SABIModule INTERFACE ${Python_INCLUDE_DIRS})
    set(Python_SOSABI abi3)
  endif()
  find_package(nanobind CONFIG REQUIRED)
  message(STATUS "Python package: for ${Python_EXECUTABLE} ${Python_VERSION}, nanobind ${nanobind_VERSION}")
endif()
