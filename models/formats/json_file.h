// JSON documents in files.
#pragma once

#include <string>

#include <rondo/status.h>

#include "models/json.h"

namespace rondo::models {

/// The document in the file at `path`. Errors: those of open_file, and kCorruptData (no JSON, or beyond `limits`).
Result<nlohmann::json> read_json_file(const std::string& path, const JsonLimits& limits = {});

}  // namespace rondo::models
