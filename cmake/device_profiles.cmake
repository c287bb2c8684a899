# Writes device_profiles.inc: the device profiles of tools/rondo/profiles as { name, JSON text }, for the rondo command. Where
# their figures come from stays in the files.
file(GLOB profiles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/rondo/profiles/*.json)
set(entries "")
list(TRANSFORM profiles REPLACE ".*/(.*)\\.json$" "\\1")
list(SORT profiles)
foreach(name IN LISTS profiles)
  set(profile ${PROJECT_SOURCE_DIR}/tools/rondo/profiles/${name}.json)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profile})
  file(READ ${profile} text)
  string(JSON text REMOVE "${text}" sources)
  string(REGEX REPLACE "[ \n]+" "" text "${text}")
  string(APPEND entries "{\"${name}\", R\"json(${text})json\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${RONDO_GENERATED_DIR}/device_profiles.inc CONTENT
"// Generated from the folder tools/rondo/profiles/.
@entries@" @ONLY)
