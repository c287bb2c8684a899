// The dispatch that moves a view, for the operators that do only that.
#pragma once

#include "graph/lowering.h"

namespace rondo::graph {

/// Emits the copy of `from` into `to`: views of equal shape in different storages, of one type or from f16 to f32.
void dispatch_copy(Lowering& lowering, const char* label, const Tensor& from, const Tensor& to);

}  // namespace rondo::graph
