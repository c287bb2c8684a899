// Takes the attributes of a named node one by one, each into the field that it sets.
//
// An operator's `read_attributes` asks for every attribute that it has; what a node carries beside those is refused. The same
// function tells documents and tests what there is: read from a node without attributes, `known()` has names and defaults.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <rondo/status.h>

#include "graph/named_node.h"

namespace rondo::graph {

/// An attribute that was asked for.
struct KnownAttribute {
  const char* name;
  std::optional<AttributeValue> fallback;  ///< what it is where a node does not carry it; nothing where it must, or says nothing
};

/// Reads the attributes of one node, which must outlive it. Fields keep what they have, their defaults, where there is none.
class AttributeReader {
 public:
  explicit AttributeReader(const NamedNode& node) : node_(node) {}

  void read(const char* name, bool& field);
  /// An integer of at most 31 bits.
  void read(const char* name, std::int64_t& field);
  /// A number that fits f32.
  void read(const char* name, double& field);
  /// A list of at most kMaxRank integers of at most 31 bits.
  void read(const char* name, std::vector<std::int64_t>& field);
  void read(const char* name, Activation& field);
  /// `activation`, `limit` and `up_bias`.
  void read(GluAttributes& glu);
  /// The field becomes the first value of its enum for the first name, the second one for the second name.
  template <typename Choice>
  void read_choice(const char* name, Choice& field, const char* first, const char* second) {
    static_assert(std::is_enum_v<Choice>);
    field = static_cast<Choice>(take_choice(name, static_cast<int>(field), first, second));
  }
  /// The same of a field that has no default.
  template <typename Choice>
  void read_choice(const char* name, std::optional<Choice>& field, const char* first, const char* second) {
    const int chosen = take_choice(name, field ? static_cast<int>(*field) : -1, first, second);
    if (chosen >= 0) field = static_cast<Choice>(chosen);
  }
  /// Whether the node carries it.
  bool has(const char* name) const { return find(name) != nullptr; }
  /// The node must carry it. To be called before `read`.
  void require(const char* name);

  /// For attributes that do not go together; "[op] " is put in front.
  void refuse(const std::string& message);

  /// What was asked for so far, in order.
  const std::vector<KnownAttribute>& known() const { return known_; }
  /// The first refusal; of attributes that nobody asked for if there was none before. Errors: kInvalidArgument.
  Status finish() const;

 private:
  const AttributeValue* find(std::string_view name) const;
  const AttributeValue* take(const char* name, std::optional<AttributeValue> fallback);
  int take_choice(const char* name, int fallback, const char* first, const char* second);
  void fail(const char* name, const std::string& expected);

  const NamedNode& node_;
  std::vector<KnownAttribute> known_;
  std::vector<std::string_view> required_;
  Status status_;
};

}  // namespace rondo::graph
