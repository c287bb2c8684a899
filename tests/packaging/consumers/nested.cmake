# Adds the tree, and fails if that changes anything but what is Rondo's.
set(HOST_PROPERTIES COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_OPTIONS LINK_DIRECTORIES TESTS)
set(HOST_VARIABLES CMAKE_BUILD_TYPE CMAKE_C_FLAGS CMAKE_CXX_FLAGS CMAKE_CXX_STANDARD CMAKE_RUNTIME_OUTPUT_DIRECTORY
  CMAKE_POSITION_INDEPENDENT_CODE CMAKE_CXX_VISIBILITY_PRESET CMAKE_MODULE_PATH CMAKE_PROJECT_VERSION PROJECT_VERSION BUILD_SHARED_LIBS BUILD_TESTING)

# Sets `state` to the host's settings and the names of its cache entries.
function(describe_host state cache)
  foreach(property IN LISTS HOST_PROPERTIES)
    get_directory_property(value ${property})
    list(APPEND lines "${property}=${value}")
  endforeach()
  foreach(variable IN LISTS HOST_VARIABLES)
    list(APPEND lines "${variable}=${${variable}}")
  endforeach()
  get_directory_property(names CACHE_VARIABLES)
  set(${state} "${lines}" PARENT_SCOPE)
  set(${cache} "${names}" PARENT_SCOPE)
endfunction()

# Appends the targets of `folder` and the folders below it to all_targets.
function(list_targets folder)
  get_property(own DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  list(APPEND all_targets ${own})
  foreach(inner IN LISTS below)
    list_targets(${inner})
  endforeach()
  set(all_targets ${all_targets} PARENT_SCOPE)
endfunction()

add_custom_target(hello)  # a name that a sample has
add_custom_target(unit_tests)
describe_host(before cache_before)
add_subdirectory(${RONDO_SOURCE} rondo)
describe_host(after cache_after)

if(NOT before STREQUAL after)
  message(FATAL_ERROR "add_subdirectory changed the host: before ${before}, after ${after}")
endif()
list(REMOVE_ITEM cache_after ${cache_before})
list(FILTER cache_after EXCLUDE REGEX "^(RONDO_|rondo_|[A-Za-z_]+_DIR$)")  # find_package leaves NAME_DIR
list_targets(${RONDO_SOURCE})
list(FILTER all_targets EXCLUDE REGEX "^rondo(_(objects|internal|internal_headers|compile_options|pack_spirv|matrix_types|unicode_classes))?$")
if(cache_after OR all_targets)
  message(FATAL_ERROR "add_subdirectory left cache entries (${cache_after}) or targets (${all_targets})")
endif()
