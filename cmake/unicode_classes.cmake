# Builds a small program that writes unicode_class_table.h from the system's Unicode data (utf8proc), and runs it. The
# library does not link utf8proc.
set(RONDO_UNICODE_CLASS_TABLE ${RONDO_GENERATED_DIR}/unicode_class_table.h)
if(NOT RONDO_UNICODE_CLASSES AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  find_path(RONDO_UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
  find_library(RONDO_UTF8PROC_LIBRARY utf8proc REQUIRED)
endif()
rondo_add_build_program(rondo_unicode_classes ${PROJECT_SOURCE_DIR}/cmake/unicode_classes.cpp ${RONDO_UTF8PROC_LIBRARY})
if(TARGET rondo_unicode_classes)
  target_include_directories(rondo_unicode_classes PRIVATE ${RONDO_UTF8PROC_INCLUDE_DIR})
endif()

add_custom_command(
  OUTPUT ${RONDO_UNICODE_CLASS_TABLE}
  COMMAND ${rondo_unicode_classes_COMMAND} ${RONDO_UNICODE_CLASS_TABLE}
  DEPENDS ${rondo_unicode_classes_COMMAND}
  COMMENT "unicode_class_table.h" VERBATIM)
