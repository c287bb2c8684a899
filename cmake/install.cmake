# Installs library, headers, CMake package and rondo.pc. All of them find each other by relative paths.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)

install(TARGETS rondo EXPORT rondo INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/rondo ${PROJECT_BINARY_DIR}/include/rondo
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)

# The package depends on no other, so its targets file is all of it.
install(EXPORT rondo FILE rondo-config.cmake NAMESPACE rondo:: DESTINATION ${package_dir})
write_basic_package_version_file(${RONDO_GENERATED_DIR}/rondo-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${RONDO_GENERATED_DIR}/rondo-config-version.cmake DESTINATION ${package_dir})

file(RELATIVE_PATH RONDO_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" RONDO_PC_TO_PREFIX ${RONDO_PC_TO_PREFIX})
if(NOT RONDO_SHARED)
  list(TRANSFORM RONDO_LINK_LIBRARIES PREPEND " -l" OUTPUT_VARIABLE RONDO_PC_LIBS)
  string(JOIN "" RONDO_PC_LIBS ${RONDO_PC_LIBS})
endif()
configure_file(cmake/rondo.pc.in ${RONDO_GENERATED_DIR}/rondo.pc @ONLY)
install(FILES ${RONDO_GENERATED_DIR}/rondo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
