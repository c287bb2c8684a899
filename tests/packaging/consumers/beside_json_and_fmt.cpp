// A program with nlohmann-json and fmt of its own: what they throw is still thrown.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generate_some.h"

namespace {

bool json_throws() {
  try {
    return nlohmann::json::parse("{\"a\":") == 1;
  } catch (const nlohmann::json::parse_error&) {
    return true;
  }
}

bool fmt_throws() {
  try {
    return fmt::format(fmt::runtime("{"), 1).empty();
  } catch (const fmt::format_error&) {
    return true;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !json_throws() || !fmt_throws()) return 1;
  if (const int failed = exit_status(generate_on_own_device(argv[1]))) return failed;
  return json_throws() && fmt_throws() ? 0 : 1;
}
