// Products of f16 two at a time, for devices that have VK_VALVE_shader_mixed_float_dot_product. Needs GL_EXT_spirv_intrinsics and GL_EXT_shader_explicit_arithmetic_types_float16.

// sum + a.x b.x + a.y b.y, in f32: OpFDot2MixAcc32VALVE.
spirv_instruction(extensions = ["SPV_VALVE_mixed_float_dot_product"], capabilities = [6912], id = 6916)
float add_dot(f16vec2 a, f16vec2 b, float sum);
f16vec2 pair_of(uint halves) { return unpackFloat2x16(halves); }
