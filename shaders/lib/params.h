// Push constants that C++ and GLSL read from one declaration:
//   RONDO_PARAMS(ExampleParams) { uint n; float scale; } RONDO_PARAMS_END
// In GLSL the block's instance is `p`. Scalars only, so both sides have the same layout.
#ifndef RONDO_SHADERS_PARAMS_H
#define RONDO_SHADERS_PARAMS_H
#ifdef __cplusplus
#include <cstdint>
namespace rondo::shaders {
using uint = std::uint32_t;
}
#define RONDO_PARAMS(name) namespace rondo::shaders { struct name
#define RONDO_PARAMS_END ; }
#else
#define RONDO_PARAMS(name) layout(push_constant, std430) uniform name
#define RONDO_PARAMS_END p;
#endif
#endif
