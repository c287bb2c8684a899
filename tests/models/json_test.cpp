#include "models/json.h"

#include <string>

#include <gtest/gtest.h>

namespace rondo::models::json_test {
namespace {

using nlohmann::json;

json parsed(const std::string& text) {
  Result<json> result = parse_json(text, "config.json");
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : json();
}

std::string refusal(const std::string& text, const JsonLimits& limits = {}) {
  const Result<json> result = parse_json(text, "config.json", limits);
  EXPECT_FALSE(result.ok()) << text.substr(0, 100);
  if (result.ok()) return "";
  EXPECT_EQ(result.status().code(), StatusCode::kCorruptData);
  EXPECT_EQ(result.status().message().find("config.json: "), 0U);
  EXPECT_EQ(result.status().message().find('\n'), std::string::npos);
  return result.status().message();
}

std::string repeated(const std::string& text, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += text;
  return out;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(JsonTest, BuildsTheTree) {
  const std::string text = R"({"a":[1,-2,2.5,"x\n\u00e9",true,null,{}],"b":{"c":[[]]}})";
  EXPECT_EQ(parsed(text).dump(), json::parse(text).dump());
  EXPECT_NE(parsed(text).dump(), json::parse(R"({"a":[]})").dump());
  EXPECT_EQ(parsed(" 7 ").dump(), "7");
}

TEST(JsonTest, RefusesWhatIsNotJson) {
  for (const std::string text : {"", "{", "[1,", "{\"a\":}", "{} {}", "nul", "1e999", "{'a':1}", "[01]", "\"\x01\"",
                                 "\"\xff\"", "NaN", "[1,]", "{\"a\":1,}", "// x\n1"}) {
    EXPECT_TRUE(contains(refusal(text), "not valid JSON")) << text;
  }
  EXPECT_TRUE(contains(refusal(std::string("{}\0{}", 5)), "byte 2 is NUL"));
}

TEST(JsonTest, RefusesDuplicateKeys) {
  EXPECT_TRUE(contains(refusal(R"({"a":1,"b":{"c":1,"c":2}})"), "'c' twice"));
  EXPECT_EQ(parsed(R"({"a":{"a":1},"b":{"a":2}})").size(), 2U);
}

TEST(JsonTest, BoundsNesting) {
  EXPECT_TRUE(parse_json(repeated("[", 64) + repeated("]", 64), "config.json").ok());
  EXPECT_TRUE(contains(refusal(repeated("[", 65) + repeated("]", 65)), "nested more than 64 deep"));
  EXPECT_TRUE(contains(refusal(repeated("[", 100000)), "nested more than 64 deep"));
  EXPECT_TRUE(contains(refusal(repeated("{\"a\":", 100000)), "nested more than 64 deep"));
}

TEST(JsonTest, BoundsTokensValuesAndText) {
  JsonLimits limits;
  limits.max_token_bytes = 100;
  EXPECT_TRUE(contains(refusal("\"" + repeated("a", 200) + "\"", limits), "longer than 100 bytes"));
  EXPECT_TRUE(contains(refusal(repeated(" ", 200) + "1", limits), "longer than 100 bytes"));
  EXPECT_TRUE(contains(refusal("[" + repeated("true,", 50) + "1]", limits), "longer than 100 bytes"));
  EXPECT_TRUE(contains(refusal(repeated("1", 200), limits), "longer than 100 bytes"));
  EXPECT_TRUE(parse_json("[" + repeated("-1,\n", 500) + "1]", "config.json", limits).ok());
  EXPECT_TRUE(parse_json("[" + repeated("\"\\\"\",", 500) + "1]", "config.json", limits).ok());
  EXPECT_TRUE(contains(refusal("[" + repeated("0,", 250000) + "0]"), "more than 250000 values"));
  limits.max_text_bytes = 10;
  EXPECT_TRUE(contains(refusal("[1,2,3,4,5]", limits), "at most 10"));
}

TEST(JsonTest, AccessorsCheckTypes) {
  const json object = parsed(R"({"u":7,"i":-7,"f":0.5,"s":"text","b":true,"a":[1],"o":{},"n":null,
                                 "big":18446744073709551615})");
  EXPECT_EQ(find_u64(object, "u", "c").value(), 7U);
  EXPECT_EQ(find_string(object, "s", "c").value(), "text");
  EXPECT_EQ(find_array(object, "a", "c").value()->size(), 1U);
  EXPECT_TRUE(find_object(object, "o", "c").value()->is_object());
  EXPECT_TRUE(has_field(object, "u"));
  EXPECT_FALSE(has_field(object, "n"));

  EXPECT_EQ(find_u64(object, "i", "c").status().message(), "c: 'i' is -7, expected an unsigned integer");
  EXPECT_EQ(find_u64(object, "f", "c").status().message(), "c: 'f' is 0.5, expected an unsigned integer");
  EXPECT_EQ(find_string(object, "u", "c").status().code(), StatusCode::kCorruptData);
  EXPECT_EQ(find_array(object, "o", "c").status().code(), StatusCode::kCorruptData);
  EXPECT_EQ(find_object(object, "a", "c").status().code(), StatusCode::kCorruptData);
  EXPECT_EQ(find_u64(object, "n", "c").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(find_u64(object, "x", "c").status().message(), "c: 'x' is missing");
  EXPECT_EQ(find_u64(parsed("[1]"), "u", "c").status().message(), "c: is array, expected an object");
}

TEST(JsonTest, FallbacksAreForAbsentFieldsOnly) {
  const json object = parsed(R"({"u":7,"n":null,"s":"text"})");
  EXPECT_EQ(find_u64_or(object, "u", 1, "c").value(), 7U);
  EXPECT_EQ(find_u64_or(object, "n", 1, "c").value(), 1U);
  EXPECT_EQ(find_u64_or(object, "x", 1, "c").value(), 1U);
  EXPECT_FALSE(find_u64_or(object, "s", 1, "c").ok());
  EXPECT_FALSE(find_u64_or(parsed("[]"), "s", 1, "c").ok());
}

}  // namespace
}  // namespace rondo::models::json_test
