# Headers that the library is compiled with and its users never see. Each comes from RONDO_DEPS_DIR if it is there, else
# from a target that the project above has or a CMake package provides, else from the system's include folders.
#
# RONDO_DEPS_DIR may hold checkouts, copies of include folders, or a mix. For fmt these are tried, and likewise for others:
#   fmt/include/fmt/format.h   fmt/fmt/format.h   include/fmt/format.h   fmt/format.h
# The folders' names: fmt, nlohmann or json, vulkan or Vulkan-Headers, volk (volk/volk.c and volk/volk.h).
find_program(RONDO_GLSLANG NAMES glslangValidator glslang REQUIRED)
add_library(rondo_dependencies INTERFACE IMPORTED)
# What is linked with the library, as after -l: a static one passes it on through its packages, a shared one does not.
set(RONDO_LINK_LIBRARIES ${CMAKE_DL_LIBS})

# Adds the folder that has `header` to rondo_dependencies, and sets `variable` to it. `ARGN`: names of its checkout.
function(rondo_find_headers variable header package target)
  if(RONDO_DEPS_DIR)
    foreach(name IN LISTS ARGN)
      list(APPEND folders ${RONDO_DEPS_DIR}/${name}/include ${RONDO_DEPS_DIR}/${name})
    endforeach()
    find_path(${variable} ${header} PATHS ${folders} ${RONDO_DEPS_DIR}/include ${RONDO_DEPS_DIR} NO_DEFAULT_PATH NO_CACHE)
  endif()
  if(NOT ${variable})
    if(NOT TARGET ${target})
      find_package(${package} CONFIG QUIET)
    endif()
    if(TARGET ${target})
      # Its headers and no more: not {fmt}'s definition that has each file compile all of it.
      target_include_directories(rondo_dependencies INTERFACE $<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>)
      get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
    endif()
    find_path(${variable} ${header} HINTS ${folders} ENV VULKAN_SDK PATH_SUFFIXES include NO_CACHE)
  endif()
  if(${variable})
    target_include_directories(rondo_dependencies INTERFACE ${${variable}})
    set(${variable} ${${variable}} PARENT_SCOPE)
  elseif(NOT TARGET ${target})
    message(FATAL_ERROR "rondo: ${header} not found; install the package ${package} or put it under RONDO_DEPS_DIR")
  endif()
endfunction()

rondo_find_headers(RONDO_FMT_DIR fmt/format.h fmt fmt::fmt-header-only fmt)
rondo_find_headers(RONDO_JSON_DIR nlohmann/json.hpp nlohmann_json nlohmann_json::nlohmann_json nlohmann json)
rondo_find_headers(RONDO_VULKAN_DIR vulkan/vulkan_core.h VulkanHeaders Vulkan::Headers vulkan Vulkan-Headers)
rondo_find_headers(RONDO_VOLK_DIR volk.c volk volk::volk_headers volk)
