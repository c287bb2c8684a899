# Writes device_profiles.inc: the device profiles of tests/profiles as { name, JSON text }, for the rondo command.
file(GLOB profiles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/profiles/*.json)
set(entries "")
foreach(profile IN LISTS profiles)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profile})
  cmake_path(GET profile STEM name)
  file(READ ${profile} text)
  string(APPEND entries "{\"${name}\", R\"json(${text})json\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${RONDO_GENERATED_DIR}/device_profiles.inc CONTENT
"// Generated from the folder tests/profiles/.
@entries@" @ONLY)
