# Compiles shaders/*.comp to SPIR-V, those that include lib/element.glsl once more for activations in f16 (<name>_f16), and
# writes shader_list.h (the enum) and shader_code.inc (the modules, packed by a program that runs here).
file(MAKE_DIRECTORY ${RONDO_GENERATED_DIR}/spirv)
file(GLOB shaders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/*.comp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shaders})

# lib/weight_types.glsl: what the lines of weight_types.inc are in GLSL, whose preprocessor can't include by a macro's argument.
set(weight_types ${PROJECT_SOURCE_DIR}/shaders/lib/weight_types.inc)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${weight_types})
file(STRINGS ${weight_types} lines REGEX "^RONDO_WEIGHT_TYPE")
set(weight_includes "")
set(chunk_cases "")
set(quad_cases "")
set(bytes_cases "")
set(weight_constants "")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^RONDO_WEIGHT_TYPE\\([A-Za-z0-9_]+, ([a-z0-9_]+), ([0-9]+), ")
    message(FATAL_ERROR "${weight_types}: can't read ${line}")
  endif()
  string(APPEND weight_includes "#include \"lib/block_${CMAKE_MATCH_1}.glsl\"\n")
  string(APPEND chunk_cases "    case ${CMAKE_MATCH_2}u: return chunk_${CMAKE_MATCH_1}(row, chunk);\n")
  string(APPEND quad_cases "    case ${CMAKE_MATCH_2}u: return quad_${CMAKE_MATCH_1}(c, i);\n")
  string(TOUPPER ${CMAKE_MATCH_1} constant)
  string(APPEND weight_constants "#define RONDO_WEIGHT_${constant} ${CMAKE_MATCH_2}u\n")
  set(block ${PROJECT_SOURCE_DIR}/shaders/lib/block_${CMAKE_MATCH_1}.glsl)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${block})
  file(STRINGS ${block} bytes_function REGEX "^uint bytes_")
  if(bytes_function)
    string(REGEX REPLACE "^[^,]*, ([a-z0-9_]+), ([0-9]+), .*" "    case \\2u: return bytes_\\1(c, i);\n" bytes_case "${line}")
    file(STRINGS ${block} needs_table REGEX "^#ifdef RONDO_WEIGHT_BYTES")
    if(needs_table)
      set(bytes_case "#ifdef RONDO_WEIGHT_BYTES\n${bytes_case}#endif\n")
    endif()
    string(APPEND bytes_cases "${bytes_case}")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${RONDO_GENERATED_DIR}/shaders/lib/weight_types.glsl CONTENT
"// Generated from shaders/lib/weight_types.inc.
@weight_constants@
@weight_includes@
// Chunk number `chunk` of a row.
Chunk load_chunk(WeightRow row, uint chunk) {
  switch (kWeightType) {
@chunk_cases@    default: return chunk_of(uvec4(0u));
  }
}

// The i-th four values of a chunk, before scale and addend.
vec4 chunk_quad(Chunk c, uint i) {
  switch (kWeightType) {
@quad_cases@    default: return vec4(0.0);
  }
}

// The same as bytes, signed ones of q8_0 and of tables, which need RONDO_WEIGHT_BYTES; of types that have some.
uint chunk_bytes(Chunk c, uint i) {
  switch (kWeightType) {
@bytes_cases@    default: return 0u;
  }
}
" @ONLY)

rondo_add_build_program(rondo_matrix_types ${PROJECT_SOURCE_DIR}/cmake/matrix_types.cpp)
set(enumerators "")
set(f16_cases "")
set(modules "")
set(modules_with_lines "")
file(MAKE_DIRECTORY ${RONDO_GENERATED_DIR}/spirv_with_lines)
foreach(shader IN LISTS shaders)
  get_filename_component(name ${shader} NAME_WE)
  file(STRINGS ${shader} includes_element REGEX "^#include \"lib/element.glsl\"")
  file(STRINGS ${shader} has_newer_instructions REGEX "^#include \"lib/(matrix|linear_f16|matmul_f16|half_dot)\\.glsl\"")
  set(variants ${name})
  if(includes_element)
    list(APPEND variants ${name}_f16)
    string(APPEND f16_cases "    case Shader::${name}: return Shader::${name}_f16;\n")
  endif()
  foreach(variant IN LISTS variants)
    set(module ${RONDO_GENERATED_DIR}/spirv/${variant}.spv)
    set(module_with_lines ${RONDO_GENERATED_DIR}/spirv_with_lines/${variant}.spv)
    set(define "")
    if(NOT variant STREQUAL name)
      set(define -DRONDO_F16)
    endif()
    set(no_names -g0)
    set(complete "")  # a second command, for modules with matrices or dot products of halves; glslang 12 can't strip names from those
    set(complete_with_lines "")
    if(has_newer_instructions)
      set(no_names "")
      set(complete COMMAND ${rondo_matrix_types_COMMAND} --no-names ${module} DEPENDS ${rondo_matrix_types_COMMAND})
      set(complete_with_lines COMMAND ${rondo_matrix_types_COMMAND} ${module_with_lines} DEPENDS ${rondo_matrix_types_COMMAND})
    endif()
    add_custom_command(
      OUTPUT ${module}
      COMMAND ${RONDO_GLSLANG} --quiet -V --target-env vulkan1.2 ${no_names} ${define} -I${PROJECT_SOURCE_DIR}/shaders -I${RONDO_GENERATED_DIR}/shaders
              --depfile ${module}.d -o ${module} ${shader}
      ${complete}
      DEPENDS ${shader} DEPFILE ${module}.d
      COMMENT "glslang ${variant}" VERBATIM)
    list(APPEND modules ${module})
    # For tools/simulator: the same, and its instructions know their lines.
    add_custom_command(
      OUTPUT ${module_with_lines}
      COMMAND ${RONDO_GLSLANG} --quiet -V --target-env vulkan1.2 -g ${define} -I${PROJECT_SOURCE_DIR}/shaders -I${RONDO_GENERATED_DIR}/shaders
              --depfile ${module_with_lines}.d -o ${module_with_lines} ${shader}
      ${complete_with_lines}
      DEPENDS ${shader} DEPFILE ${module_with_lines}.d
      COMMENT "glslang ${variant}, with lines" VERBATIM)
    list(APPEND modules_with_lines ${module_with_lines})
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

if(RONDO_BUILD_SIMULATOR)
  set(RONDO_SHADERS_WITH_LINES ${RONDO_GENERATED_DIR}/shaders_with_lines.inc)
  add_custom_command(
    OUTPUT ${RONDO_SHADERS_WITH_LINES}
    COMMAND ${rondo_pack_spirv_COMMAND} ${RONDO_SHADERS_WITH_LINES} ${modules_with_lines}
    DEPENDS ${rondo_pack_spirv_COMMAND} ${modules_with_lines}
    COMMENT "shaders_with_lines.inc" VERBATIM)
  add_custom_target(rondo_shaders_with_lines DEPENDS ${RONDO_SHADERS_WITH_LINES})
endif()

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
