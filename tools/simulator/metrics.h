// A report in the few numbers that kernels are judged by. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "tools/simulator/case_run.h"

namespace rondo::simulator {

/// Lines are of 64 bytes; what there is none of is 0.
struct Metrics {
  double useful_bytes_per_line = 0;         ///< of all loads from buffers: bytes that some lane asks for, for each line touched
  double useful_weight_bytes_per_line = 0;  ///< of weights
  double activation_bytes_per_weight_byte = 0;  ///< loaded by lanes, for each byte of weights that a subgroup's access fetches
  double bank_conflict_factor = 0;          ///< rounds of shared memory for each that would do
  double line_factor = 0;                   ///< lines that loads and stores of buffers touch for each that would do
  std::uint64_t barriers = 0;
  std::uint32_t dependent_loads = 0, loads_in_flight = 0;
  double idle_lanes = 0, divergence = 0;    ///< shares of all operations

  explicit Metrics(const SimulatedDispatch& done);
};

/// What was found and counted, for people: one line of figures, the findings, and a table of the accesses, those of the most lines
/// first.
std::string table_of(const SimulatedDispatch& done, const Metrics& metrics);

/// The same as a JSON object.
std::string json_of(const SimulatedDispatch& done, const Metrics& metrics);

/// The lines that one subgroup's first execution of each access touches, as an SVG document.
std::string picture_of(const SimulatedDispatch& done);

}  // namespace rondo::simulator
