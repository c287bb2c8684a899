#include "tools/check/case_text.h"

#include <algorithm>
#include <charconv>
#include <cctype>
#include <cmath>
#include <limits>

#include "runtime/fmt.h"

namespace rondo::check {

namespace {

/// Of an input: more than any case needs, and less than what a host would miss.
constexpr std::int64_t kMostElements = std::int64_t{1} << 26;

/// The pieces of a text: words, numbers, and the characters that stand alone.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : text_(text) { next(); }

  std::string_view now() const { return piece_; }
  bool at_end() const { return piece_.empty(); }
  bool is(std::string_view piece) const { return piece_ == piece; }
  std::string_view take() {
    const std::string_view taken = piece_;
    next();
    return taken;
  }
  bool take_if(std::string_view piece) {
    if (piece_ != piece) return false;
    next();
    return true;
  }

 private:
  void next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::size_t begin = at_;
    constexpr std::string_view kAlone = "(),[]*";
    if (at_ < text_.size() && kAlone.find(text_[at_]) != std::string_view::npos) ++at_;
    else while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_])) && kAlone.find(text_[at_]) == std::string_view::npos) ++at_;
    piece_ = text_.substr(begin, at_ - begin);
  }

  std::string_view text_, piece_;
  std::size_t at_ = 0;
};

template <typename T>
std::optional<T> number(std::string_view piece) {
  T value{};
  const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), value);
  if (error != std::errc() || end != piece.data() + piece.size()) return std::nullopt;
  return value;
}

std::optional<graph::Type> find_type(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(graph::Type::kI32); ++i) {
    if (name == graph::type_name(static_cast<graph::Type>(i))) return static_cast<graph::Type>(i);
  }
  return std::nullopt;
}

std::optional<Layout> find_layout(std::string_view name) {
  constexpr std::string_view kNames[] = {"dense", "transposed", "permuted", "sliced", "stepped", "joined"};
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Layout>(found - std::begin(kNames));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : pieces_(text) { parsed_.text = std::string(text); }

  Result<CaseText> parse() {
    parsed_.op = std::string(pieces_.take());
    inputs_ = graph::named_inputs(parsed_.op);
    if (inputs_.empty()) return Status(StatusCode::kInvalidArgument, fmt::format("case '{}': {}", parsed_.text, graph::no_such_operator(parsed_.op)));
    bool more = !pieces_.at_end();
    while (more) {
      RONDO_TRY(parse_term());
      more = pieces_.take_if(",");
      if (!more && !pieces_.at_end()) return refuse("a comma");
    }
    return std::move(parsed_);
  }

 private:
  Status refuse(std::string_view expected) const {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("case '{}': expected {} {}", parsed_.text, expected, pieces_.at_end() ? std::string("at its end") : fmt::format("where there is '{}'", pieces_.now())));
  }

  Status parse_term() {
    if (pieces_.at_end() || pieces_.is(",")) return refuse("an input or attribute");
    const std::string name(pieces_.take());
    for (const graph::NamedInput& input : inputs_) {
      if (name == input.name) return parse_input(input);
    }
    if (name == "valid") return parse_integers(parsed_.valid);
    if (name == "inactive") return parse_integers(parsed_.inactive);
    if (name == "state.stop") return parse_integers(parsed_.stop_ids);
    if (name.starts_with("state.")) return parse_number(parsed_.state[name.substr(6)]);
    return parse_attribute(name);
  }

  Status parse_input(const graph::NamedInput& named) {
    CaseInput input;
    input.name = named.name;
    input.role = named.role;
    if (named.role == graph::InputRole::kIntegers || named.role == graph::InputRole::kStepState) input.type = graph::Type::kI32;
    if (const auto type = find_type(pieces_.now())) {
      input.type = *type;
      pieces_.take();
    } else if (pieces_.is("bool") && named.role == graph::InputRole::kMask) {
      input.boolean = true;
      input.type = graph::Type::kI32;
      pieces_.take();
    }
    const bool has_shape = pieces_.is("(");
    if (has_shape) RONDO_TRY(parse_shape(input.shape));
    if (pieces_.is("[")) {
      std::vector<std::int64_t> given;
      RONDO_TRY(parse_integers(given));
      input.integers.assign(given.begin(), given.end());
      if (!has_shape) input.shape = {static_cast<std::int64_t>(given.size())};
    }
    if (!has_shape && input.integers.empty()) return refuse(fmt::format("the shape of '{}'", input.name));
    if (const auto layout = find_layout(pieces_.now())) {
      input.layout = *layout;
      pieces_.take();
    }
    if (pieces_.take_if("*")) {
      double scale = 1;
      RONDO_TRY(parse_number(scale));
      input.scale = static_cast<float>(scale);
    }
    parsed_.inputs.push_back(std::move(input));
    return {};
  }

  Status parse_shape(graph::Shape& shape) {
    pieces_.take();
    while (!pieces_.take_if(")")) {
      const auto extent = number<std::int64_t>(pieces_.now());
      if (!extent || *extent < 1 || shape.rank == graph::kMaxRank) return refuse(fmt::format("at most {} extents of at least 1 and a closing parenthesis", graph::kMaxRank));
      if (shape.n_elements() > kMostElements / *extent) return refuse(fmt::format("a shape of at most {} elements", kMostElements));
      shape[shape.rank++] = *extent;
      pieces_.take();
      if (!pieces_.is(")") && !pieces_.take_if(",")) return refuse("a comma or a closing parenthesis");
    }
    return {};
  }

  Status parse_integers(std::vector<std::int64_t>& integers) {
    if (!pieces_.take_if("[")) return refuse("a list of integers in brackets");
    while (!pieces_.take_if("]")) {
      const auto value = number<std::int64_t>(pieces_.now());
      if (!value || *value < std::numeric_limits<std::int32_t>::min() || *value > std::numeric_limits<std::int32_t>::max()) return refuse("an integer of 32 bits or a closing bracket");
      integers.push_back(*value);
      pieces_.take();
      if (!pieces_.is("]") && !pieces_.take_if(",")) return refuse("a comma or a closing bracket");
    }
    return {};
  }

  Status parse_number(double& value) {
    const auto found = number<double>(pieces_.now());
    if (!found || !(std::abs(*found) <= std::numeric_limits<float>::max())) return refuse("a number that fits f32");
    value = *found;
    pieces_.take();
    return {};
  }

  Status parse_attribute(const std::string& name) {
    graph::AttributeValue value = true;
    if (pieces_.is("[")) {
      std::vector<std::int64_t> list;
      RONDO_TRY(parse_integers(list));
      value = list;
    } else if (const auto integer = number<std::int64_t>(pieces_.now())) {
      value = *integer;
      pieces_.take();
    } else if (const auto real = number<double>(pieces_.now())) {
      value = *real;
      pieces_.take();
    } else if (!pieces_.at_end() && !pieces_.is(",")) {
      const std::string word(pieces_.take());
      if (word == "true" || word == "false") value = word == "true";
      else value = word;
    }
    parsed_.attributes.emplace_back(name, std::move(value));
    return {};
  }

  Pieces pieces_;
  CaseText parsed_;
  std::span<const graph::NamedInput> inputs_;
};

}  // namespace

Result<CaseText> parse_case(std::string_view text) { return Parser(text).parse(); }

const graph::Operator& table_of(std::string_view op) { return graph::operator_of(graph::find_operator(op).value_or(graph::Op::copy)); }

bool has_f16_activations(const CaseText& text) {
  if (text.op == "widen") return false;  // reads them only
  const auto is_f16 = [](const CaseInput& input) {
    const bool computed = input.role == graph::InputRole::kActivation || (input.role == graph::InputRole::kKeys && input.layout != Layout::kDense);
    return computed && input.type == graph::Type::kF16;
  };
  const auto makes_f16 = [](const auto& attribute) { return attribute.first == "type" && attribute.second == graph::AttributeValue("f16"); };
  return std::any_of(text.inputs.begin(), text.inputs.end(), is_f16) || std::any_of(text.attributes.begin(), text.attributes.end(), makes_f16);
}

const char* values_name(Values values) {
  switch (values) {
    case Values::kInteger: return "integer";
    case Values::kRandom: return "random";
    case Values::kLarge: return "large";
    case Values::kNan: return "nan";
    case Values::kInfinity: return "infinity";
    case Values::kBytes: return "byte";
  }
  return "";
}

}  // namespace rondo::check
