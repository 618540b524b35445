// SPDX-License-Identifier: Apache-2.0
#include "collect/hook/event.h"

#include <gtest/gtest.h>

namespace expanse::collect::hook {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace): literals with NUL

std::string Event(const std::string& entries) {
  return "EXPHOOK1\0kind=task_epilog\0time_ns=1796073456395309843\0uid=1001\0pid=7\0"s + entries +
         "end=1\0"s;
}

TEST(HookEvent, ReadsKindTimeOwnerEnvironmentAndCgroups) {
  const auto event = ParseHookEvent(
      Event("env.SLURM_JOB_ID=41\0env.SLURM_JOB_NAME=a=b\nc\0step=batch\0"
            "job.peak=3518464\0step.peak=3350528\0step.cpu_ns=69575724\0step.limit=104857600\0"s));
  ASSERT_TRUE(event.ok()) << event.error().message();
  EXPECT_EQ(event->kind, HookKind::kTaskEpilog);
  EXPECT_EQ(ToUnixMillis(event->time()), 1796073456395);
  EXPECT_EQ(event->uid, 1001u);
  EXPECT_EQ(event->job_id(), 41);
  EXPECT_EQ(event->Env("SLURM_JOB_NAME"), "a=b\nc");
  EXPECT_EQ(event->step_id, "batch");
  EXPECT_EQ(event->job->peak, 3518464);
  EXPECT_EQ(event->step->peak, 3350528);
  EXPECT_EQ(event->step->cpu_ns, 69575724);
  EXPECT_FALSE(event->step->oom_kills.has_value());
}

TEST(HookEvent, RefusesEveryCutOfAWholeEvent) {
  const std::string whole = Event("env.SLURM_JOB_ID=41\0job.peak=3518464\0"s);
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(ParseHookEvent(std::string_view(whole).substr(0, n)).ok()) << n;
  EXPECT_TRUE(ParseHookEvent(whole).ok());
}

TEST(HookEvent, RefusesWhatIsNotAnEvent) {
  EXPECT_FALSE(ParseHookEvent("").ok());
  EXPECT_FALSE(ParseHookEvent("#!/bin/sh\n").ok());
  EXPECT_FALSE(ParseHookEvent(Event("step=../../etc\0"s)).ok());
  EXPECT_FALSE(ParseHookEvent(Event("job.peak=-5\0"s)).ok());
  EXPECT_FALSE(ParseHookEvent(Event("job.peak=1e9\0"s)).ok());
  EXPECT_FALSE(ParseHookEvent(Event("kind=shutdown\0"s)).ok());
  EXPECT_FALSE(ParseHookEvent(Event("novalue\0"s)).ok());
  EXPECT_FALSE(ParseHookEvent(Event("") + "x").ok());
  EXPECT_FALSE(ParseHookEvent(Event("note="s + std::string(20'000, 'x') + "\0"s)).ok());
}

TEST(HookEvent, TakesNoVariableThatIsNotOnItsList) {
  const auto event = ParseHookEvent(Event("env.AWS_SECRET_ACCESS_KEY=x\0env.SLURM_PROCID=0\0"s));
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->environment.size(), 1u);
}

TEST(HookEvent, EveryKindHasANameThatReadsBack) {
  for (const auto kind :
       {HookKind::kProlog, HookKind::kEpilog, HookKind::kTaskProlog, HookKind::kTaskEpilog,
        HookKind::kPrologSlurmctld, HookKind::kEpilogSlurmctld})
    EXPECT_EQ(HookKindFromName(HookKindName(kind)), kind);
}

}  // namespace
}  // namespace expanse::collect::hook
