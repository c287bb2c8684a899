# Programs that run during the build and write code for it.
#
# rondo_add_build_program(NAME SOURCE [LIBRARY...]) makes ${NAME}_COMMAND, a target or a path to be run. Where what is built
# cannot run here (cross compiling without CMAKE_CROSSCOMPILING_EMULATOR), the cache variable of the NAME in capitals says
# where the program is as it was built for this machine.
function(rondo_add_build_program name source)
  string(TOUPPER ${name} variable)
  set(${variable} "" CACHE FILEPATH "${name} built before, for cross compiling")
  if(${variable})
    set(${name}_COMMAND ${${variable}} PARENT_SCOPE)
    return()
  endif()
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(FATAL_ERROR "${variable} is empty: build the target ${name} for this machine and name it there")
  endif()
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE rondo_compile_options ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${RONDO_GENERATED_DIR})
  set(${name}_COMMAND ${name} PARENT_SCOPE)
endfunction()
