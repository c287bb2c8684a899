# The shared library: its names, and what it shows. Until 1.0 each minor version is an interface of its own.
set_target_properties(rondo PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

target_link_libraries(rondo PRIVATE rondo_compile_options)  # for the options of sanitizers

# Hidden visibility does not reach templates of the standard library that the objects instantiate; a version script does.
include(CheckLinkerFlag)
check_linker_flag(CXX -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map RONDO_HAS_VERSION_SCRIPT)
if(RONDO_HAS_VERSION_SCRIPT)
  target_link_options(rondo PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
  set_target_properties(rondo PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
endif()
