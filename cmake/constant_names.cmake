# Writes constant_names.inc: the names of the specialization constants of shaders/*.comp as { shader, number, name }, for the
# rondo command. Constants are declared one a line.
set(entries "")
foreach(shader IN LISTS shaders)
  get_filename_component(name ${shader} NAME_WE)
  file(STRINGS ${shader} lines REGEX "constant_id = [0-9]+")
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shader})
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "constant_id = ([0-9]+)\\) const [a-z]+ ([A-Za-z0-9_]+) =")
      message(FATAL_ERROR "${shader}: can't read ${line}")
    endif()
    string(APPEND entries "{\"${name}\", ${CMAKE_MATCH_1}, \"${CMAKE_MATCH_2}\"},\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${RONDO_GENERATED_DIR}/constant_names.inc CONTENT
"// Generated from the folder shaders/.
@entries@" @ONLY)
