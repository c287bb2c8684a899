#include "tools/check/cases.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "graph/operator.h"
#include "tools/check/case_text.h"
#include "tools/check/check.h"

namespace rondo::check {
namespace {

TEST(CheckCasesTest, EveryCaseIsTakenByItsOperator) {
  for (const std::string& text : all_cases(true)) {
    const Result<CaseText> parsed = parse_case(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const Result<OpCase> built = build_case(*parsed, Values::kRandom, 1);
    EXPECT_TRUE(built.ok()) << built.status().message();
  }
}

}  // namespace
}  // namespace rondo::check
