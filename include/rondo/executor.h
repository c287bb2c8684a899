// How a caller lends its threads to Rondo, which has none of its own.
#pragma once

#include <cstddef>
#include <functional>

namespace rondo {

/// Runs the jobs 0 to n - 1, in any order and perhaps at once on several threads, and returns when all are done. A job
/// neither throws nor waits for another one.
using Executor = std::function<void(std::size_t n, const std::function<void(std::size_t)>& job)>;

}  // namespace rondo
