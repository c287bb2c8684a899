// Where the command keeps what it finds out about devices, and how it writes it: whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <system_error>

namespace rondo::tools {

/// $XDG_CACHE_HOME/rondo, else ~/.cache/rondo; "" where neither is set.
std::string cache_directory();

/// A file of this name beside the pipeline cache, whose setting is a file, "none", or "" for one in the cache directory; "" where there is none.
std::string path_beside_cache(const std::string& pipeline_cache, const std::string& name);

/// Puts `bytes` into a new file beside `path`, which then takes the name; its folders are made. Returns why that failed.
std::error_code replace_file(const std::string& path, std::span<const std::byte> bytes);

/// Prints `rondo: warn: message`.
void warn(const std::string& message);

}  // namespace rondo::tools
