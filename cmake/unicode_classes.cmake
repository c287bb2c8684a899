# Builds a small program that writes unicode_class_table.h from the system's Unicode data (utf8proc), and runs it. The
# library does not link utf8proc. Where what is built cannot run here (cross compiling without
# CMAKE_CROSSCOMPILING_EMULATOR), RONDO_UNICODE_CLASSES names the program as it was built for this machine.
set(RONDO_UNICODE_CLASSES "" CACHE FILEPATH "rondo_unicode_classes built before, for cross compiling")
set(RONDO_UNICODE_CLASS_TABLE ${RONDO_GENERATED_DIR}/unicode_class_table.h)

if(RONDO_UNICODE_CLASSES)
  set(generator ${RONDO_UNICODE_CLASSES})
else()
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(FATAL_ERROR
      "RONDO_UNICODE_CLASSES is empty: build the target rondo_unicode_classes for this machine and name it there")
  endif()
  find_path(RONDO_UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
  find_library(RONDO_UTF8PROC_LIBRARY utf8proc REQUIRED)
  add_executable(rondo_unicode_classes ${PROJECT_SOURCE_DIR}/cmake/unicode_classes.cpp)
  target_include_directories(rondo_unicode_classes PRIVATE ${PROJECT_SOURCE_DIR} ${RONDO_UTF8PROC_INCLUDE_DIR})
  target_link_libraries(rondo_unicode_classes PRIVATE rondo_compile_options ${RONDO_UTF8PROC_LIBRARY})
  set_target_properties(rondo_unicode_classes PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${RONDO_GENERATED_DIR})
  set(generator rondo_unicode_classes)
endif()

add_custom_command(
  OUTPUT ${RONDO_UNICODE_CLASS_TABLE}
  COMMAND ${generator} ${RONDO_UNICODE_CLASS_TABLE}
  DEPENDS ${generator}
  COMMENT "unicode_class_table.h" VERBATIM)
