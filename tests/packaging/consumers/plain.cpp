// A program that knows only Rondo.
#include <cstring>

#include "generate_some.h"

static_assert(RONDO_VERSION >= RONDO_MAKE_VERSION(0, 1, 0) && rondo::kVersion == RONDO_VERSION);

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::printf("rondo %s\n", rondo::kVersionString);
  if (std::strcmp(rondo::library_version(), rondo::kVersionString) != 0) return 1;
  const rondo::Result<rondo::ByteSource> missing = rondo::open_file("no/such/file");
  if (missing.ok() || missing.status().code() != rondo::StatusCode::kNotFound) return 1;
  return exit_status(generate_on_own_device(argv[1]));
}
