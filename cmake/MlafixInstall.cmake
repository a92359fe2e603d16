# Installs what accompanies the runtime: the CMake package `mlafix`, the files for pkg-config, and the tools.
#
#   mlafix_install_tool(NAME)   installs an executable of the build, if it was built
#
# A build of only some targets, such as that of scripts/quickstart, can be installed: targets that were not built are
# left out.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

function(mlafix_install_tool name)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON) # finds LLVM outside the loader's path
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
endfunction()

# The linker options of libraries for TVM-FFI. lib/TvmFfi/CMakeLists.txt gives the reasons.
set(MLAFIX_TVM_FFI_OPTIONS -Wl,--exclude-libs,ALL -Wl,-z,nodelete -static-libstdc++ -static-libgcc)

set(_mlafix_package ${CMAKE_INSTALL_LIBDIR}/cmake/mlafix)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/mlafixConfig.cmake.in ${PROJECT_BINARY_DIR}/mlafixConfig.cmake
                              INSTALL_DESTINATION ${_mlafix_package}
                              PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mlafixConfigVersion.cmake COMPATIBILITY SameMinorVersion)
list(JOIN MLAFIX_TVM_FFI_OPTIONS " " _mlafix_tvm_ffi_flags)
foreach(_name mlafix mlafix-tvm-ffi)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${_name}.pc.in ${PROJECT_BINARY_DIR}/${_name}.pc @ONLY)
endforeach()

install(EXPORT mlafix NAMESPACE mlafix:: FILE mlafixTargets.cmake DESTINATION ${_mlafix_package})
install(FILES ${PROJECT_BINARY_DIR}/mlafixConfig.cmake ${PROJECT_BINARY_DIR}/mlafixConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/MlafixUnit.cmake
        DESTINATION ${_mlafix_package})
install(FILES ${PROJECT_BINARY_DIR}/mlafix.pc ${PROJECT_BINARY_DIR}/mlafix-tvm-ffi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
