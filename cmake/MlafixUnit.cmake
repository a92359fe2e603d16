# mlafix_unit(NAME SOURCE OUTPUT FILE SPECIALIZE binding-list... TARGET target... [ALL])
#
# Compiles a kernel source into a unit with mlafix::opt, once per listed binding ("H=16,D=128,T=bf16") and target, and
# defines target NAME that depends on it. A list of bindings is one comma-separated word.
function(mlafix_unit name source)
  cmake_parse_arguments(ARG "ALL" "OUTPUT" "SPECIALIZE;TARGET" ${ARGN})
  set(_options "")
  foreach(_binding IN LISTS ARG_SPECIALIZE)
    list(APPEND _options "--specialize=${_binding}")
  endforeach()
  list(JOIN ARG_TARGET "," _targets)
  get_filename_component(_folder ${ARG_OUTPUT} DIRECTORY)
  get_filename_component(_file ${ARG_OUTPUT} NAME)
  add_custom_command(
    OUTPUT ${ARG_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${_folder}
    COMMAND mlafix::opt ${source} ${_options} --target=${_targets} --emit=unit -o ${ARG_OUTPUT}
    DEPENDS $<TARGET_FILE:mlafix::opt> ${source}
    COMMENT "Compiling ${_file} for ${_targets}"
    VERBATIM)
  if(ARG_ALL)
    add_custom_target(${name} ALL DEPENDS ${ARG_OUTPUT})
  else()
    add_custom_target(${name} DEPENDS ${ARG_OUTPUT})
  endif()
endfunction()
