# Writes constant_names.inc: the names of the specialization constants of shaders/*.comp as { shader, number, name }, for the
# rondo command. Constants are declared one a line, in the shader or in a file of lib/ that it includes itself.
set(entries "")
foreach(shader IN LISTS shaders)
  get_filename_component(name ${shader} NAME_WE)
  set(sources ${shader})
  file(STRINGS ${shader} includes REGEX "^#include \"lib/")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"(.*)\".*$" "${PROJECT_SOURCE_DIR}/shaders/\\1" include "${include}")
    if(EXISTS ${include})  # others are made by the build
      list(APPEND sources ${include})
    endif()
  endforeach()
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  foreach(source IN LISTS sources)
    file(STRINGS ${source} lines REGEX "constant_id = [0-9]+")
    foreach(line IN LISTS lines)
      if(NOT line MATCHES "constant_id = ([0-9]+)\\) const [a-z]+ ([A-Za-z0-9_]+) =")
        message(FATAL_ERROR "${source}: can't read ${line}")
      endif()
      string(APPEND entries "{\"${name}\", ${CMAKE_MATCH_1}, \"${CMAKE_MATCH_2}\"},\n")
    endforeach()
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${RONDO_GENERATED_DIR}/constant_names.inc CONTENT
"// Generated from the folder shaders/.
@entries@" @ONLY)
