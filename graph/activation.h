// The functions of one element, as the references compute them: in double. Pure.
#pragma once

#include "graph/graph.h"

namespace rondo::graph {

/// The function's value; kIdentity gives x. NaN gives NaN.
double activate(Activation activation, double x);

/// activation(min(gate, limit)) * (clamp(up, -limit, limit) + up_bias). NaN gives NaN.
double gated(const GluAttributes& attributes, double gate, double up);

/// The name of the operator and of the attribute in files: "gelu_tanh"; "none" for kIdentity.
const char* activation_name(Activation activation);

/// All of them, "none" first.
std::span<const char* const> activation_names();

/// The function that `name` stands for, if there is one.
std::optional<Activation> find_activation(std::string_view name);

}  // namespace rondo::graph
