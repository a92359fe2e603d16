# Functions that read kernels/library.json, the list of the kernels that are compiled ahead. The entry of a kernel has a
# name and up to two lists of bindings:
#
#   name      the kernel's file in kernels/, without ".mlir"
#   units     the bindings that `ninja mlafix-units` compiles the kernel for
#   package   the bindings whose code the Python package contains
#
# If a list is empty, the kernel is compiled without bindings. If a list is missing, the kernel is not compiled for that
# purpose. In a list, "{a,b}" stands for a text with a and a text with b; the last of several braces varies fastest.
# "$name" stands for the text with that name in the object "sets" of library.json.
set(MLAFIX_LIBRARY ${PROJECT_SOURCE_DIR}/kernels/library.json CACHE INTERNAL "The list of the kernel library")
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MLAFIX_LIBRARY})

# mlafix_kernels(OUT): sets OUT to the names of all kernels that are compiled ahead, in the order of library.json.
function(mlafix_kernels out)
  file(READ ${MLAFIX_LIBRARY} _json)
  string(JSON _count LENGTH "${_json}" kernels)
  math(EXPR _last "${_count} - 1")
  set(_names "")
  foreach(_i RANGE ${_last})
    string(JSON _name GET "${_json}" kernels ${_i} name)
    list(APPEND _names ${_name})
  endforeach()
  set(${out} ${_names} PARENT_SCOPE)
endfunction()

# mlafix_kernel_bindings(OUT KERNEL FIELD): sets OUT to the bindings in the list FIELD (units or package) of a kernel,
# and OUT_FOUND to TRUE if the kernel has that list.
function(mlafix_kernel_bindings out kernel field)
  file(READ ${MLAFIX_LIBRARY} _json)
  mlafix_kernels(_names)
  list(FIND _names ${kernel} _i)
  if(_i EQUAL -1)
    message(FATAL_ERROR "expected an entry for kernel ${kernel} in ${MLAFIX_LIBRARY}, got none")
  endif()
  string(JSON _count ERROR_VARIABLE _missing LENGTH "${_json}" kernels ${_i} ${field})
  set(_bindings "")
  set(_at 0)
  while(NOT _missing AND _at LESS _count)
    string(JSON _text GET "${_json}" kernels ${_i} ${field} ${_at})
    math(EXPR _at "${_at} + 1")
    _mlafix_expand(_expanded "${_text}" "${_json}")
    list(APPEND _bindings ${_expanded})
  endwhile()
  set(${out} ${_bindings} PARENT_SCOPE)
  if(_missing)
    set(${out}_FOUND FALSE PARENT_SCOPE)
  else()
    set(${out}_FOUND TRUE PARENT_SCOPE)
  endif()
endfunction()

# mlafix_library_units(OUT FIELD): sets OUT to the bindings in the lists FIELD of all kernels, each as KERNEL:BINDINGS.
function(mlafix_library_units out field)
  mlafix_kernels(_names)
  set(_units "")
  foreach(_name IN LISTS _names)
    mlafix_kernel_bindings(_bindings ${_name} ${field})
    if(_bindings_FOUND AND NOT _bindings)
      set(_units ${_units} "${_name}:")
    endif()
    list(TRANSFORM _bindings PREPEND "${_name}:")
    list(APPEND _units ${_bindings})
  endforeach()
  set(${out} ${_units} PARENT_SCOPE)
endfunction()

# Sets OUT to the bindings that a text with braces or "$name" stands for.
function(_mlafix_expand out text json)
  set(_done "")
  set(_open "${text}")
  while(_open)
    list(POP_FRONT _open _one)
    if(_one MATCHES "^([^{]*){([^}]*)}(.*)$")
      set(_before "${CMAKE_MATCH_1}")
      set(_after "${CMAKE_MATCH_3}")
      string(REPLACE "," ";" _choices "${CMAKE_MATCH_2}")
      list(TRANSFORM _choices PREPEND "${_before}")
      list(TRANSFORM _choices APPEND "${_after}")
      list(PREPEND _open ${_choices})
    elseif(_one MATCHES "^(.*)\\$([a-z_0-9]+)(.*)$")
      string(JSON _set GET "${json}" sets ${CMAKE_MATCH_2})
      list(APPEND _done "${CMAKE_MATCH_1}${_set}${CMAKE_MATCH_3}")
    else()
      list(APPEND _done "${_one}")
    endif()
  endwhile()
  set(${out} ${_done} PARENT_SCOPE)
endfunction()
