// Models of well-known shapes without a file: the header of a checkpoint, whose weights the device makes.
#pragma once

#include <string>

#include <rondo/byte_source.h>

namespace rondo::tools {

/// The names that random_model takes, for messages: "15m, 135m, ...".
std::string random_shapes();
std::string random_types();
/// The shapes whose matrices the K types fit.
std::string random_shapes_of_k_types();

/// CLI11 checks: what is wrong with a name, or "".
std::string check_random_shape(const std::string& name);
std::string check_random_type(const std::string& name);
/// What keeps a shape's matrices from having this type, or "". Names as checked.
std::string check_random_model(const std::string& shape, const std::string& type);

/// A GGUF header of this shape with all its tensors, whose bytes read as zeros. Names as checked, together too.
ByteSource random_model(const std::string& shape, const std::string& type);

}  // namespace rondo::tools
