#include <rondo/version.h>

namespace rondo {

const char* library_version() { return kVersionString; }

}  // namespace rondo
