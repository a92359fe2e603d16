# Defines mlafix_compiler_portable: libmlafix_compiler.so with LLVM and MLIR inside, for machines that have neither. The
# wheel of the compiler and the GPU kit contain this library. It consists of the objects of the compiler's other
# libraries, and is not part of the target `all`.
#
# Every MLIR archive that CMake imports links LLVM's shared library, too. _mlafix_link_statically removes that library
# from what the archives link, since the process would have two LLVMs otherwise.
set(_mlafix_static_mlir
    MLIRArithDialect MLIRArithToLLVM MLIRArithTransforms MLIRBuiltinToLLVMIRTranslation MLIRControlFlowDialect
    MLIRControlFlowToLLVM MLIRConvertToLLVMPass MLIRDLTIDialect MLIRFuncDialect MLIRGPUDialect
    MLIRIR MLIRIndexDialect MLIRIndexToLLVM MLIRLLVMCommonConversion MLIRLLVMDialect MLIRLLVMToLLVMIRTranslation
    MLIRMathDialect MLIRMathToLLVM MLIRMathTransforms MLIRMemRefDialect MLIRNVVMDialect MLIRNVVMToLLVM
    MLIRNVVMToLLVMIRTranslation MLIRPass MLIRReconcileUnrealizedCasts MLIRSCFDialect MLIRSCFToControlFlow
    MLIRSCFTransforms MLIRSideEffectInterfaces MLIRSupport MLIRTensorDialect MLIRTransformUtils MLIRTransforms
    MLIRTranslateLib MLIRUBDialect MLIRUBToLLVM MLIRVectorDialect MLIRVectorToLLVM MLIRVectorToLLVMPass MLIRVectorTransforms
    MLIRTargetLLVMIRExport MLIRGPUToNVVMTransforms MLIROptLib)
# LLVM's archives need zlib and zstd. Both are linked statically, so that other machines need not have them.
find_library(_mlafix_zlib libz.a REQUIRED)
find_library(_mlafix_zstd libzstd.a REQUIRED)

function(_mlafix_link_statically target)
  get_property(_done GLOBAL PROPERTY _mlafix_static_${target})
  if(NOT TARGET ${target} OR _done)
    return()
  endif()
  set_property(GLOBAL PROPERTY _mlafix_static_${target} TRUE)
  get_target_property(_libs ${target} INTERFACE_LINK_LIBRARIES)
  if(NOT _libs)
    return()
  endif()
  list(REMOVE_ITEM _libs LLVM MLIR "\$<LINK_ONLY:LLVM>" "\$<LINK_ONLY:MLIR>")
  list(FILTER _libs EXCLUDE REGEX "/libz3[.]so$") # the compiler does not use LLVM's interface to Z3
  list(TRANSFORM _libs REPLACE "^ZLIB::ZLIB$" "${_mlafix_zlib}")
  list(TRANSFORM _libs REPLACE "^zstd::libzstd_shared$" "${_mlafix_zstd}")
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${_libs}")
  foreach(_lib IN LISTS _libs)
    _mlafix_link_statically("${_lib}")
  endforeach()
endfunction()

llvm_map_components_to_libnames(_mlafix_static_llvm
  Core Support Target Passes CodeGen MC Analysis TransformUtils JITLink OrcJIT Object
  NVPTXCodeGen NVPTXDesc NVPTXInfo X86CodeGen X86Desc X86Info X86AsmParser AArch64CodeGen AArch64Desc AArch64Info)
foreach(_lib IN LISTS _mlafix_static_mlir _mlafix_static_llvm)
  _mlafix_link_statically(${_lib})
endforeach()

get_property(_mlafix_libraries GLOBAL PROPERTY MLAFIX_MLIR_LIBRARIES)
list(TRANSFORM _mlafix_libraries REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE _mlafix_objects)
add_library(mlafix_compiler_portable SHARED EXCLUDE_FROM_ALL
  ${_mlafix_objects} ${PROJECT_SOURCE_DIR}/lib/Frontend/PortableLibc.cpp)
add_dependencies(mlafix_compiler_portable ${_mlafix_libraries})
set_target_properties(mlafix_compiler_portable PROPERTIES
  OUTPUT_NAME mlafix_compiler LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable)
target_link_libraries(mlafix_compiler_portable PRIVATE ${_mlafix_static_mlir} ${_mlafix_static_llvm} ${CMAKE_DL_LIBS})

# The process may have a second LLVM, such as that of torch. The version script and -Bsymbolic keep the two apart.
# libgcc stays shared: the static libgcc calls a function that glibc has only since 2.35 (to find stack frames), and the
# library must also load with an older glibc.
set(_mlafix_portable_map ${PROJECT_BINARY_DIR}/mlafix_compiler_portable.map)
file(WRITE ${_mlafix_portable_map}
  "{ global: mlafix_opt_main; mlafix_run_main; extern \"C++\" { mlafix::chipNumbers*; mlafix::compile*; mlafix::parse*; mlafix::spelling*; mlafix::KernelBuilder::*; "
  "mlafix::ValueType::*; }; local: *; };\n")
set_target_properties(mlafix_compiler_portable PROPERTIES LINK_DEPENDS ${_mlafix_portable_map})
target_link_options(mlafix_compiler_portable PRIVATE
  -static-libstdc++ -Wl,--as-needed -Wl,--gc-sections -Wl,--strip-all -Wl,-Bsymbolic
  -Wl,--version-script=${_mlafix_portable_map})
