// Work in child processes: what crashes, hangs or throws is named, and the rest goes on.
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/isa/isolated.h"

namespace rondo::isa::isa_isolated_test {
namespace {

using std::chrono::milliseconds;

struct Outcome {
  Status status;
  JobsDone done;
  std::string about;
  std::vector<std::string> results;  ///< "name: output" or "name! failure"
};

/// `behaviours`: "ok", "crash", "hang", "exit", "throw", or "poison", after which everything in that process crashes.
Outcome run(const std::vector<std::string>& behaviours, milliseconds limit = milliseconds(20000)) {
  Outcome outcome;
  const auto open = [&]() -> Result<Jobs> {
    Jobs jobs;
    jobs.n = behaviours.size();
    jobs.about = "about";
    jobs.name = [&](std::size_t i) { return behaviours[i] + std::to_string(i); };
    const auto poisoned = std::make_shared<bool>(false);
    jobs.run = [&behaviours, poisoned](std::size_t i) {
      if (behaviours[i] == "crash" || *poisoned) std::abort();
      if (behaviours[i] == "hang") pause();
      if (behaviours[i] == "exit") _exit(3);
      if (behaviours[i] == "throw") throw std::runtime_error("thrown");
      if (behaviours[i] == "poison") *poisoned = true;
      std::puts("what a driver prints");
      return std::string(i * 100000, 'x');
    };
    jobs.n_complaints = [] { return std::size_t{2}; };
    return jobs;
  };
  Result<JobsDone> done = run_isolated(
      open, limit, [&](const std::string& about) { outcome.about += about; },
      [&](const JobResult& result) {
        outcome.results.push_back(result.name + (result.failure.empty() ? ": " + std::to_string(result.output.size()) : "! " + result.failure));
        return true;
      });
  outcome.status = done.status();
  if (done.ok()) outcome.done = *done;
  return outcome;
}

TEST(IsaIsolatedTest, AllGoThroughOneChild) {
  const Outcome outcome = run({"ok", "ok", "ok"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.about, "about");
  EXPECT_EQ(outcome.results, (std::vector<std::string>{"ok0: 0", "ok1: 100000", "ok2: 200000"}));
  EXPECT_EQ(outcome.done.total, 3U);
  EXPECT_EQ(outcome.done.complaints, 2U);
}

TEST(IsaIsolatedTest, WhatCrashesIsNamedAndTheRestGoesOn) {
  const Outcome outcome = run({"crash", "ok", "exit", "ok", "crash"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.results, (std::vector<std::string>{"crash0! crashed (Aborted)", "ok1: 100000", "exit2! crashed (its process ended with status 3)", "ok3: 300000", "crash4! crashed (Aborted)"}));
  EXPECT_EQ(outcome.done.failed, 3U);
}

TEST(IsaIsolatedTest, WhatThrowsFailsAlone) {
  const Outcome outcome = run({"ok", "throw", "ok"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.results, (std::vector<std::string>{"ok0: 0", "throw1! thrown", "ok2: 200000"}));
  EXPECT_EQ(outcome.done.failed, 1U);
  EXPECT_EQ(outcome.done.complaints, 2U);
}

TEST(IsaIsolatedTest, ComplaintsOfAChildThatFellCount) {
  const Outcome outcome = run({"ok", "crash", "ok"});
  EXPECT_EQ(outcome.done.complaints, 4U);  // of two children with something done
}

TEST(IsaIsolatedTest, ALaterChildMayFailToBeginOnce) {
  for (const int n_failures : {1, 2}) {
    int opened = 0;
    std::size_t n_results = 0;
    char path[] = "/tmp/rondo_isolated.XXXXXX";
    const int file = mkstemp(path);
    ASSERT_GE(file, 0);
    const auto open = [&]() -> Result<Jobs> {
      opened = static_cast<int>(lseek(file, 0, SEEK_END));  // how many children there were: they share no memory
      EXPECT_EQ(write(file, "x", 1), 1);
      if (opened >= 1 && opened <= n_failures) std::abort();
      Jobs jobs;
      jobs.n = 3;
      jobs.name = [](std::size_t i) { return std::to_string(i); };
      jobs.run = [](std::size_t i) { return i == 0 ? (std::abort(), "") : "fine"; };
      return jobs;
    };
    const Result<JobsDone> done = run_isolated(open, milliseconds(20000), [](const std::string&) {}, [&](const JobResult&) { return ++n_results > 0; });
    EXPECT_EQ(done.ok(), n_failures == 1);
    EXPECT_EQ(n_results, n_failures == 1 ? 3U : 1U);
    close(file);
    unlink(path);
  }
}

TEST(IsaIsolatedTest, WhatHangsIsEnded) {
  const Outcome outcome = run({"ok", "hang", "ok"}, milliseconds(500));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.results, (std::vector<std::string>{"ok0: 0", "hang1! took longer than 0.5 s", "ok2: 200000"}));
}

TEST(IsaIsolatedTest, WhatFellBecauseOfOthersIsRunAgainByItself) {
  const Outcome outcome = run({"poison", "ok", "ok", "crash"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.results, (std::vector<std::string>{"poison0: 0", "ok1: 100000", "ok2: 200000", "crash3! crashed (Aborted)"}));
}

TEST(IsaIsolatedTest, WhatCantBeginIsAnError) {
  const auto no_result = [](const JobResult&) { return true; };
  const auto run_open = [&](const std::function<Result<Jobs>()>& open) { return run_isolated(open, milliseconds(500), [](const std::string&) {}, no_result).status(); };
  const Status refused = run_open([]() -> Result<Jobs> { return Status(StatusCode::kNotFound, "no device"); });
  EXPECT_EQ(refused.code(), StatusCode::kNotFound);
  EXPECT_EQ(refused.message(), "no device");
  EXPECT_EQ(run_open([]() -> Result<Jobs> { std::abort(); }).message(), "the driver crashed (Aborted) before its first kernel");
  EXPECT_EQ(run_open([]() -> Result<Jobs> { throw std::runtime_error("thrown"); }).message(), "thrown");
}

TEST(IsaIsolatedTest, ACallerCanEndIt) {
  std::size_t n = 0;
  Jobs jobs;
  jobs.n = 1000000;
  jobs.name = jobs.run = [](std::size_t) { return std::string("x"); };
  const Result<JobsDone> done = run_isolated([&]() -> Result<Jobs> { return jobs; }, milliseconds(20000), [](const std::string&) {}, [&](const JobResult&) { return ++n < 3; });
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(n, 3U);
}

}  // namespace
}  // namespace rondo::isa::isa_isolated_test
