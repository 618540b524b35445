// SPDX-License-Identifier: Apache-2.0
#include "collect/host/event_backlog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace expanse::collect::host {
namespace {

using ::testing::ElementsAre;

MonoTime At(int seconds) { return MonoTime(std::chrono::seconds(seconds)); }

TEST(EventBacklog, AFilesAgeCountsFromItsFirstRound) {
  EventBacklog backlog;
  backlog.Begin({"a"}, At(5));
  EXPECT_EQ(backlog.AgeOf("a"), Millis(0));
  backlog.Begin({"a", "b"}, At(8));
  EXPECT_EQ(backlog.AgeOf("a"), Millis(3'000));
  EXPECT_EQ(backlog.AgeOf("b"), Millis(0));
  backlog.Begin({"b"}, At(9));
  backlog.Begin({"a"}, At(10));
  EXPECT_EQ(backlog.AgeOf("a"), Millis(0)) << "another file of the name";
}

TEST(EventBacklog, OfOneUserOnlySoManyFilesWait) {
  EventBacklog backlog;
  std::vector<std::string> names;
  for (size_t i = 0; i <= kMostWaitingOfUser; ++i) names.push_back(std::to_string(i));
  names.emplace_back("other");
  backlog.Begin(names, At(1));
  for (size_t i = 0; i < kMostWaitingOfUser; ++i) EXPECT_TRUE(backlog.Wait(names[i], 7, 41));
  EXPECT_FALSE(backlog.Wait(names[kMostWaitingOfUser], 7, 41));
  EXPECT_TRUE(backlog.Wait("other", 8, 41));
  EXPECT_EQ(backlog.WaitsFor("other"), 41);
  backlog.Begin({"other", "new"}, At(2));
  EXPECT_TRUE(backlog.Wait("new", 7, 41)) << "the others are gone";
}

TEST(EventBacklog, TheSchedulersFilesComeFirstThenEveryUsersInTurn) {
  const auto owner = [](const std::string& name) -> std::optional<uid_t> {
    if (name == "gone") return std::nullopt;
    return static_cast<uid_t>(name[0] - '0');
  };
  EXPECT_THAT(EventBacklog::Choose({"2a", "2b", "2c", "3a", "gone", "0a"}, 4, {0}, owner),
              ElementsAre("0a", "2a", "3a", "2b"));
  EXPECT_THAT(EventBacklog::Choose({"2a", "0a"}, 2, {0}, owner), ElementsAre("2a", "0a"));
}

}  // namespace
}  // namespace expanse::collect::host
