# Compiles shaders/*.comp to SPIR-V arrays in headers, and lists them in shader_list.h (the enum) and shader_code.inc.
file(MAKE_DIRECTORY ${RONDO_GENERATED_DIR}/spirv)
file(GLOB shaders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/*.comp)

set(enumerators "")
set(code "")
set(RONDO_SHADER_HEADERS "")
foreach(shader IN LISTS shaders)
  get_filename_component(name ${shader} NAME_WE)
  set(header ${RONDO_GENERATED_DIR}/spirv/${name}.h)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${RONDO_GLSLANG} --quiet -V --target-env vulkan1.2 -g0 -I${PROJECT_SOURCE_DIR}/shaders
            --depfile ${header}.d --vn spirv_${name} -o ${header} ${shader}
    DEPENDS ${shader} DEPFILE ${header}.d
    COMMENT "glslang ${name}.comp" VERBATIM)
  list(APPEND RONDO_SHADER_HEADERS ${header})
  string(APPEND enumerators "  ${name},\n")
  string(APPEND code "#include \"spirv/${name}.h\"\n")
  string(APPEND entries "    {\"${name}\", spirv_${name}, sizeof(spirv_${name})},\n")
endforeach()

file(CONFIGURE OUTPUT ${RONDO_GENERATED_DIR}/shader_list.h CONTENT
"// Generated from the folder shaders/.
#pragma once
#include <cstdint>
namespace rondo::runtime {
enum class Shader : std::uint16_t {
@enumerators@};
}
" @ONLY)
file(CONFIGURE OUTPUT ${RONDO_GENERATED_DIR}/shader_code.inc CONTENT
"// Generated from the folder shaders/: SPIR-V by enumerator of Shader.
#pragma once
@code@
struct ShaderCode { const char* name; const std::uint32_t* words; std::size_t size_bytes; };
constexpr ShaderCode kShaderCode[] = {
@entries@};
" @ONLY)
