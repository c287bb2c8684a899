// The families of decoders that there are, each a row of one table (families.cpp).
#pragma once

#include <span>

#include "models/arch/decoder.h"

namespace rondo::models {

std::span<const Family> families();

}  // namespace rondo::models
