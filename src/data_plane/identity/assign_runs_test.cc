// SPDX-License-Identifier: Apache-2.0
#include "data_plane/identity/assign_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace expanse::data_plane {
namespace {

using testing::ElementsAre;

Fragment Attempt(const std::string& id, int64_t submit_s, int restart) {
  Fragment f;
  f.id = id;
  f.submit_ms = submit_s * 1000;
  f.restart_count = restart;
  f.first_observed_ms = f.last_observed_ms = submit_s * 1000;
  f.flags = kAnchored;
  return f;
}
Fragment Row(const std::string& id, int64_t submit_s, int64_t db, int64_t start_s, int64_t end_s) {
  Fragment f;
  f.id = id;
  f.submit_ms = submit_s * 1000;
  f.db_index = db;
  f.start_ms = start_s * 1000;
  f.end_ms = end_s * 1000;
  f.first_observed_ms = f.last_observed_ms = end_s * 1000;
  f.flags = kAnchored | kTerminal;
  return f;
}
Fragment Hook(const std::string& id, int64_t at_ms, int64_t flags) {
  Fragment f;
  f.id = id;
  f.weak = true;
  f.first_observed_ms = f.last_observed_ms = at_ms;
  f.flags = kRunsHere | flags;
  return f;
}
Fragment Running(Fragment f, int64_t start_s) {
  f.start_ms = start_s * 1000;
  f.alive_until_ms = start_s * 1000;
  return f;
}
Fragment Ended(Fragment f, int64_t end_s) {
  f.end_ms = end_s * 1000;
  f.flags |= kTerminal;
  return f;
}

std::vector<std::vector<std::string>> Groups(const std::vector<Fragment>& fragments) {
  std::vector<std::vector<std::string>> out;
  for (const auto& run : AssignRuns(fragments)) {
    out.emplace_back();
    for (const size_t i : run.members) out.back().push_back(fragments[i].id);
  }
  return out;
}

TEST(AssignRuns, OneNativeIdWithTwoSubmissionsIsTwoRuns) {
  const auto runs = AssignRuns({Attempt("a", 100, 0), Attempt("b", 9000, 0)});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].attempt, 1);
  EXPECT_EQ(runs[1].first_attempt, 1u);
  // Nobody saw the first end, but its id was given away.
  EXPECT_EQ(runs[0].superseded, Superseded::kByReuse);
  EXPECT_EQ(runs[1].superseded, Superseded::kNo);
}

TEST(AssignRuns, ARequeueWithTheSameSubmissionIsTheNextAttempt) {
  const auto runs = AssignRuns({Attempt("r1", 100, 1), Running(Attempt("r0", 100, 0), 110)});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_THAT(runs[0].members, ElementsAre(1));
  EXPECT_EQ(runs[0].superseded, Superseded::kByAttempt);
  EXPECT_EQ(runs[1].attempt, 2);
  EXPECT_EQ(runs[1].first_attempt, 0u);
}

// The records of a requeue by Slurm 22.05.8: node failure, requeue, and while it completes the new
// restart count with the old submission time.
TEST(AssignRuns, Slurm2205GivesAnAttemptANewSubmissionTime) {
  std::vector<Fragment> fragments{
      Running(Attempt("running", 28, 0), 28),
      Running(Attempt("completing", 28, 1), 32),
      Attempt("pending", 32, 1),
      Row("db42", 28, 42, 28, 32),
      Row("db46", 32, 46, 44, 45),
  };
  fragments[1].first_observed_ms = fragments[1].last_observed_ms = 33'000;
  EXPECT_THAT(Groups(fragments), ElementsAre(ElementsAre("running", "db42"),
                                             ElementsAre("completing", "pending", "db46")));
  EXPECT_EQ(AssignRuns(fragments)[1].attempt, 2);
}

TEST(AssignRuns, AccountingAloneLinksTheAttemptsOfARequeue) {
  const auto runs = AssignRuns({Row("db24", 8, 24, 13, 13), Row("db40", 14, 40, 25, 26)});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].attempt, 2);
  EXPECT_EQ(runs[1].first_attempt, 0u);
}

TEST(AssignRuns, AnAccountingRowJoinsTheAttemptThatWasStillWaitingWhenPolled) {
  Fragment waiting = Attempt("squeue", 100, 0);
  waiting.pending_until_ms = 110'000;
  EXPECT_THAT(Groups({waiting, Row("sacct", 100, 7, 120, 130)}),
              ElementsAre(ElementsAre("squeue", "sacct")));
}

TEST(AssignRuns, AHookJoinsTheYoungestRunWhoseLifeCanContainIt) {
  const std::vector<Fragment> fragments{Ended(Running(Attempt("r0", 100, 0), 110), 500),
                                        Running(Attempt("r1", 100, 1), 510),
                                        Hook("prolog0", 109'500, kProlog),
                                        Hook("epilog0", 503'000, kEpilog),
                                        Hook("prolog1", 509'800, kProlog),
                                        Hook("epilog1", 900'000, kEpilog)};
  EXPECT_THAT(Groups(fragments), ElementsAre(ElementsAre("r0", "prolog0", "epilog0"),
                                             ElementsAre("r1", "prolog1", "epilog1")));
}

// Recorded on Slurm 22.05.8: job 107, put back at 45 s, epilog at 47.8 s with the restart count of
// the attempt that starts at 58 s.
TEST(AssignRuns, TheEpilogOfAnAttemptThatWasPutBackShowsTheNextRestartCount) {
  Fragment epilog = Hook("epilog0", 47'761, kEpilog);
  Fragment cgroup = Hook("cgroup0", 46'777, 0);
  Fragment prolog1 = Hook("prolog1", 57'400, kProlog);
  for (Fragment* f : {&epilog, &cgroup, &prolog1}) f->restart_count = 1;
  EXPECT_THAT(Groups({Ended(Running(Attempt("r0", 45, 0), 46), 45),
                      Ended(Running(Attempt("r1", 45, 1), 58), 59), epilog, cgroup, prolog1}),
              ElementsAre(ElementsAre("r0", "epilog0", "cgroup0"), ElementsAre("r1", "prolog1")));
}

TEST(AssignRuns, AHookIsNotOfARunThatWasCancelledWhileItWaited) {
  Fragment cancelled = Ended(Attempt("cancelled", 100, 0), 200);
  cancelled.pending_until_ms = 190'000;
  const auto runs = AssignRuns({cancelled, Hook("epilog", 150'000, kEpilog)});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_TRUE(runs[1].provisional);
}

// Seen with Slurm 22.05.8: a job that requeues itself within its first second leaves an accounting
// row without a start, while its Prolog (restart count 0) ran a moment after that second began.
TEST(AssignRuns, AHookIsOfAnAttemptRequeuedBeforeItsStartWasRecorded) {
  Fragment requeued = Ended(Attempt("r0", 612, 0), 612);
  requeued.flags |= kRequeueCause;
  Fragment prolog = Hook("prolog0", 612'276, kProlog);
  prolog.restart_count = 0;
  const std::vector<Fragment> fragments{requeued, Running(Attempt("r1", 614, 1), 625), prolog,
                                        Hook("prolog1", 624'900, kProlog)};
  EXPECT_THAT(Groups(fragments),
              ElementsAre(ElementsAre("r0", "prolog0"), ElementsAre("r1", "prolog1")));
}

TEST(AssignRuns, HooksWithoutAnyKeyMakeProvisionalRunsApartByEpilog) {
  EXPECT_THAT(Groups({Hook("prolog1", 100'000, kProlog), Hook("epilog1", 200'000, kEpilog),
                      Hook("epilog1b", 201'000, kEpilog), Hook("prolog2", 300'000, kProlog)}),
              ElementsAre(ElementsAre("prolog1", "epilog1", "epilog1b"), ElementsAre("prolog2")));
}

TEST(AssignRuns, ANativeIdAloneNeverJoinsTwoRuns) {
  // A day after the end nothing else is known of the id: the sight is another run.
  EXPECT_EQ(Groups({Ended(Running(Attempt("old", 100, 0), 110), 500),
                    Hook("prolog", 86'900'000, kProlog)})
                .size(),
            2u);
}

TEST(AssignRuns, SegmentsOfAResizeAreOneRun) {
  Fragment before = Row("before", 100, 7, 110, 200);
  before.flags |= kResizing;
  EXPECT_THAT(Groups({before, Row("after", 100, 8, 200, 300), Attempt("scontrol", 100, 0)}),
              ElementsAre(ElementsAre("before", "after", "scontrol")));
}

}  // namespace
}  // namespace expanse::data_plane
