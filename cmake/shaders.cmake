# Compiles shaders/*.comp to SPIR-V, those that include lib/element.glsl once more for activations in f16 (<name>_f16), and
# writes shader_list.h (the enum) and shader_code.inc (the modules, packed by a program that runs here).
file(MAKE_DIRECTORY ${RONDO_GENERATED_DIR}/spirv)
file(GLOB shaders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/*.comp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shaders})

set(enumerators "")
set(f16_cases "")
set(modules "")
foreach(shader IN LISTS shaders)
  get_filename_component(name ${shader} NAME_WE)
  file(STRINGS ${shader} includes_element REGEX "^#include \"lib/element.glsl\"")
  set(variants ${name})
  if(includes_element)
    list(APPEND variants ${name}_f16)
    string(APPEND f16_cases "    case Shader::${name}: return Shader::${name}_f16;\n")
  endif()
  foreach(variant IN LISTS variants)
    set(module ${RONDO_GENERATED_DIR}/spirv/${variant}.spv)
    set(define "")
    if(NOT variant STREQUAL name)
      set(define -DRONDO_F16)
    endif()
    add_custom_command(
      OUTPUT ${module}
      COMMAND ${RONDO_GLSLANG} --quiet -V --target-env vulkan1.2 -g0 ${define} -I${PROJECT_SOURCE_DIR}/shaders
              --depfile ${module}.d -o ${module} ${shader}
      DEPENDS ${shader} DEPFILE ${module}.d
      COMMENT "glslang ${variant}" VERBATIM)
    list(APPEND modules ${module})
    string(APPEND enumerators "  ${variant},\n")
  endforeach()
endforeach()

set(RONDO_SHADER_CODE ${RONDO_GENERATED_DIR}/shader_code.inc)
rondo_add_build_program(rondo_pack_spirv ${PROJECT_SOURCE_DIR}/cmake/pack_spirv.cpp)
add_custom_command(
  OUTPUT ${RONDO_SHADER_CODE}
  COMMAND ${rondo_pack_spirv_COMMAND} ${RONDO_SHADER_CODE} ${modules}
  DEPENDS ${rondo_pack_spirv_COMMAND} ${modules}
  COMMENT "shader_code.inc" VERBATIM)

file(CONFIGURE OUTPUT ${RONDO_GENERATED_DIR}/shader_list.h CONTENT
"// Generated from the folder shaders/.
#pragma once
#include <cstdint>
namespace rondo::runtime {
enum class Shader : std::uint16_t {
@enumerators@};
/// The module of the same kernel for activations in f16, or the same one where there is none.
constexpr Shader f16_variant(Shader shader) {
  switch (shader) {
@f16_cases@    default: return shader;
  }
}
}
" @ONLY)
