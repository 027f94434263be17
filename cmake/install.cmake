# cmake --install: the library, its headers, and a CMake package and a pkg-config file to find them by.
#
# Programs written for NCCL include CUDA's headers; ours for them lie apart in include/cuda_compat, so
# that who has CUDA never gets them by accident: link catenary::cuda_compat to have them.

include(CMakePackageConfigHelpers)

if(NOT TARGET cuda_compat)
  add_library(cuda_compat INTERFACE)
  target_include_directories(cuda_compat INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/cuda_compat>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/cuda_compat>)
  target_link_libraries(cuda_compat INTERFACE nccl)
endif()

install(TARGETS nccl cuda_compat EXPORT catenary_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES include/nccl.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/catenary include/cuda_compat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

# A directory that builds may take for an installation of CUDA: see src/cuda.
set(catenary_cuda_dir ${CMAKE_INSTALL_LIBDIR}/catenary/cuda)
set(catenary_cuda_home ${CMAKE_BINARY_DIR}/cuda)
install(TARGETS cudart cuda LIBRARY DESTINATION ${catenary_cuda_dir}/lib64 NAMELINK_SKIP)
install(FILES ${catenary_cuda_home}/lib64/libcudart.so ${catenary_cuda_home}/lib64/libcuda.so
  DESTINATION ${catenary_cuda_dir}/lib64)
install(FILES ${catenary_cuda_home}/version.txt ${catenary_cuda_home}/version.json
  DESTINATION ${catenary_cuda_dir})
file(RELATIVE_PATH catenary_cuda_to_include ${CMAKE_INSTALL_FULL_LIBDIR}/catenary/cuda
  ${CMAKE_INSTALL_FULL_INCLUDEDIR}/cuda_compat)
configure_file(cmake/link_include.cmake.in link_include.cmake @ONLY)
install(SCRIPT ${CMAKE_CURRENT_BINARY_DIR}/link_include.cmake)

set(catenary_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/catenary)
install(EXPORT catenary_targets FILE catenary-targets.cmake NAMESPACE catenary::
  DESTINATION ${catenary_package_dir})
# Not where a search for packages would find them: they are for the installed tree only.
set(catenary_made_dir ${CMAKE_CURRENT_BINARY_DIR}/for_install)
configure_package_config_file(cmake/catenary-config.cmake.in
  ${catenary_made_dir}/catenary-config.cmake
  INSTALL_DESTINATION ${catenary_package_dir})
write_basic_package_version_file(${catenary_made_dir}/catenary-config-version.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES
  ${catenary_made_dir}/catenary-config.cmake
  ${catenary_made_dir}/catenary-config-version.cmake
  DESTINATION ${catenary_package_dir})

# Its name is catenary.pc and not nccl.pc: NVIDIA's package owns that name, and both may be installed.
# Paths in it are relative to where it lies, so an installed tree may be moved.
file(RELATIVE_PATH catenary_pc_to_prefix
  ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/catenary.pc.in ${catenary_made_dir}/catenary.pc @ONLY)
install(FILES ${catenary_made_dir}/catenary.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
