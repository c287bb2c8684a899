// Choosing kernels by measurement: Model::wait_tuned.
//
// Each kernel that could do a model's linears, its other products or its attention is used for all of them in turn, in steps of every size that sessions
// record, with the model's own weights, and the device's clock says what each took. A choice that is faster is kept if the step
// as a whole is.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <rondo/model.h>

namespace rondo::models {

/// A kernel and what all its dispatches for one choice took in a step.
struct MeasuredKernel {
  std::string name;
  double us = 0;
};

struct Tuned {
  struct Choice {
    std::string choice;  ///< KernelChoice::key
    MeasuredKernel before, now;
  };
  struct Step {
    std::string name;
    double us_before = 0, us_now = 0;
    std::vector<Choice> choices;  ///< that changed
  };
  std::vector<Step> steps;
  std::string text;  ///< for ModelOptions::tuning
};

/// See Model::wait_tuned. `model` is that of `loader`, whose options and plan change.
Result<Tuned> tune(ModelLoader& loader, const Model& model, const std::function<void(std::size_t done, std::size_t total)>& on_progress);

}  // namespace rondo::models
