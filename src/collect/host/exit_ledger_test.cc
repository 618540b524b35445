// SPDX-License-Identifier: Apache-2.0
#include "collect/host/exit_ledger.h"

#include <cstring>
#include <map>

#include <gtest/gtest.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>

#include "collect/host/taskstats.h"

namespace expanse::collect::host {
namespace {

constexpr char kStep[] = "/slurm_n1/uid_1001/job_7/step_batch";

ExitRecord Ended(int32_t pid, int32_t parent, int64_t written, int32_t process = 0) {
  ExitRecord record;
  record.pid = pid;
  record.process = process == 0 ? pid : process;
  record.parent = parent;
  record.uid = 1001;
  record.name = "work";
  record.cpu_user_us = 10;
  record.write_bytes = written;
  return record;
}

class ExitLedgerTest : public ::testing::Test {
 protected:
  std::map<int32_t, std::string> living_;
  ExitLedger ledger_{[this](int32_t pid) -> std::optional<std::string> {
    const auto found = living_.find(pid);
    if (found == living_.end()) return std::nullopt;
    return found->second;
  }};
};

TEST_F(ExitLedgerTest, AShortProcessCountsForTheStepOfItsParent) {
  living_[100] = kStep;
  ledger_.Add(Ended(101, 100, 4096));
  ledger_.Add(Ended(102, 100, 4096));
  const ExitTotals totals = ledger_.TotalsOf(kStep);
  EXPECT_EQ(totals.processes, 2);
  EXPECT_EQ(totals.write_bytes, 8192);
  EXPECT_EQ(totals.cpu_user_us, 20);
}

TEST_F(ExitLedgerTest, AChildThatEndedBeforeAnUnknownParentIsCountedWhenThatOneIsKnown) {
  living_[100] = kStep;
  ledger_.Add(Ended(103, 102, 1));  // grandchild; 102 is gone already
  EXPECT_EQ(ledger_.TotalsOf(kStep).processes, 0);
  ledger_.Add(Ended(102, 100, 2));
  EXPECT_EQ(ledger_.TotalsOf(kStep).processes, 2);
  EXPECT_EQ(ledger_.TotalsOf(kStep).write_bytes, 3);
}

TEST_F(ExitLedgerTest, AnOrphanIsCountedWhenItsProcessWasSeenInTheStep) {
  ledger_.Learn(150, kStep);
  ledger_.Add(Ended(150, 1, 7));
  EXPECT_EQ(ledger_.TotalsOf(kStep).write_bytes, 7);
  ledger_.Add(Ended(151, 1, 7));
  EXPECT_EQ(ledger_.TotalsOf(kStep).write_bytes, 7);
  EXPECT_EQ(ledger_.UnexplainedOf(1001), 1u) << "an orphan that nobody saw may be the step's";
  EXPECT_EQ(ledger_.UnexplainedOf(1002), 0u);
}

TEST_F(ExitLedgerTest, ThreadsAddUpButAreOneProcess) {
  living_[100] = kStep;
  ledger_.Add(Ended(201, 100, 5, 200));
  ledger_.Add(Ended(202, 100, 5, 200));
  ledger_.Add(Ended(200, 100, 5));
  EXPECT_EQ(ledger_.TotalsOf(kStep).threads, 3);
  EXPECT_EQ(ledger_.TotalsOf(kStep).processes, 1);
  EXPECT_EQ(ledger_.TotalsOf(kStep).write_bytes, 15);
}

TEST_F(ExitLedgerTest, WhatRunsOutsideEveryStepIsNotCounted) {
  living_[300] = "";
  ledger_.Add(Ended(301, 300, 5));
  EXPECT_EQ(ledger_.UnexplainedOf(std::nullopt), 0u);
  EXPECT_EQ(ledger_.records(), 1u);
}

TEST_F(ExitLedgerTest, TheStepDaemonIsNoWorkOfTheUsers) {
  living_[100] = kStep;
  ExitRecord record = Ended(101, 100, 9);
  record.name = "slurmstepd";
  ledger_.Add(record);
  EXPECT_EQ(ledger_.TotalsOf(kStep).threads, 0);
}

TEST_F(ExitLedgerTest, WhatComesLateOfAStepIsNotTheNextAttempts) {
  living_[100] = kStep;
  ledger_.Forget(kStep);
  ledger_.Add(Ended(101, 100, 1));
  EXPECT_EQ(ledger_.TotalsOf(kStep).processes, 0);
  for (int i = 0; i < 5; ++i) ledger_.Age();
  ledger_.Add(Ended(102, 100, 1));
  EXPECT_EQ(ledger_.TotalsOf(kStep).processes, 1);
}

TEST_F(ExitLedgerTest, ARecordWhoseParentNeverComesIsNamedUnexplained) {
  ledger_.Add(Ended(401, 400, 5));
  for (int i = 0; i < 15; ++i) ledger_.Age();
  EXPECT_EQ(ledger_.UnexplainedOf(1001), 1u);
}

TEST_F(ExitLedgerTest, AProcessNumberThatComesAgainIsAnotherProcess) {
  living_[100] = kStep;
  ledger_.Add(Ended(101, 100, 1));
  for (int i = 0; i < 20; ++i) ledger_.Age();
  living_[100] = "";
  for (int i = 0; i < 61; ++i) ledger_.Age();
  ledger_.Add(Ended(101, 100, 1));
  EXPECT_EQ(ledger_.TotalsOf(kStep).processes, 1);
}

// ---- the bytes of a datagram

std::string Attribute(uint16_t type, const std::string& value) {
  const nlattr header{static_cast<uint16_t>(sizeof(nlattr) + value.size()), type};
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out += value;
  out.resize(NLA_ALIGN(out.size()), '\0');
  return out;
}

std::string Datagram(const taskstats& stats, size_t size = sizeof(taskstats)) {
  const std::string bytes(reinterpret_cast<const char*>(&stats), size);
  const std::string pid(4, '\1');
  const std::string group =
      Attribute(TASKSTATS_TYPE_AGGR_PID,
                Attribute(TASKSTATS_TYPE_PID, pid) + Attribute(TASKSTATS_TYPE_STATS, bytes));
  const std::string process =
      Attribute(TASKSTATS_TYPE_AGGR_TGID, Attribute(TASKSTATS_TYPE_STATS, bytes));
  nlmsghdr header{};
  header.nlmsg_len =
      static_cast<uint32_t>(NLMSG_HDRLEN + GENL_HDRLEN + group.size() + process.size());
  header.nlmsg_type = 33;
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
         std::string(GENL_HDRLEN, '\0') + group + process;
}

taskstats Sample() {
  taskstats stats{};
  stats.version = 13;
  stats.ac_pid = 4711;
  stats.ac_tgid = 4700;
  stats.ac_ppid = 4000;
  stats.ac_uid = 1001;
  stats.ac_utime = 1'500'000;
  stats.ac_stime = 20'000;
  stats.read_bytes = 1 << 20;
  stats.write_bytes = 1 << 21;
  stats.hiwater_rss = 2048;
  std::memcpy(stats.ac_comm, "python3", 8);
  return stats;
}

TEST(Taskstats, ARecordIsReadOnceThoughTheProcessRepeatsIt) {
  const auto records = ParseExitRecords(Datagram(Sample()), 33);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].pid, 4711);
  EXPECT_EQ(records[0].process, 4700);
  EXPECT_EQ(records[0].parent, 4000);
  EXPECT_EQ(records[0].uid, 1001u);
  EXPECT_EQ(records[0].name, "python3");
  EXPECT_EQ(records[0].cpu_user_us, 1'500'000);
  EXPECT_EQ(records[0].cpu_system_us, 20'000);
  EXPECT_EQ(records[0].read_bytes, 1 << 20);
  EXPECT_EQ(records[0].write_bytes, 1 << 21);
  EXPECT_EQ(records[0].peak_resident_bytes, 2 << 20);
  EXPECT_TRUE(ParseExitRecords(Datagram(Sample()), 34).empty()) << "of another family";
}

TEST(Taskstats, AnOlderKernelsShorterRecordIsRead) {
  taskstats stats = Sample();
  stats.version = 8;
  const auto records = ParseExitRecords(Datagram(stats, offsetof(taskstats, ac_tgid)), 33);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].process, 4711) << "each thread stands for itself";
}

TEST(Taskstats, CutAndFlippedDatagramsAreHarmless) {
  const std::string whole = Datagram(Sample());
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_TRUE(ParseExitRecords(whole.substr(0, n), 33).empty()) << n;
  for (size_t n = 0; n < whole.size(); ++n) {
    std::string damaged = whole;
    damaged[n] = static_cast<char>(~damaged[n]);
    (void)ParseExitRecords(damaged, 33);
  }
}

}  // namespace
}  // namespace expanse::collect::host
