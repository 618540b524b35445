// SPDX-License-Identifier: Apache-2.0
#include "collect/host/exit_ledger.h"

#include <algorithm>
#include <iterator>

namespace expanse::collect::host {
namespace {

constexpr int kForgetAfter = 60;   // seconds; process ids come again
constexpr int kKeepEnded = 15;     // seconds
constexpr int kWaitFor = 10;       // seconds for a parent's record
constexpr int kStayForgotten = 3;  // seconds; a requeued job comes back later
constexpr size_t kMaxKnown = 1 << 16;
constexpr size_t kMaxWaiting = 1 << 14;

}  // namespace

ExitLedger::KnownProcess ExitLedger::Ended(const std::string& step) {
  return KnownProcess{step, kForgetAfter - kKeepEnded};
}

void ExitLedger::Learn(int32_t pid, const std::string& step) {
  KnownProcess& known = known_[pid];
  known.step = step;
  known.age = 0;
  Explain(pid, step);
}

const ExitLedger::KnownProcess* ExitLedger::Find(int32_t pid, bool may_locate) {
  const auto found = known_.find(pid);
  if (found != known_.end()) return &found->second;
  if (pid <= 1 || !may_locate) return nullptr;
  auto step = locate_(pid);
  if (!step) return nullptr;
  if (known_.size() >= kMaxKnown) known_.clear();
  KnownProcess known{std::move(*step)};
  // One that belongs to none may be moved into a step.
  if (known.step.empty()) known.age = kForgetAfter - 2;
  return &known_.emplace(pid, std::move(known)).first->second;
}

void ExitLedger::Count(const ExitRecord& record, const std::string& step) {
  if (step.empty() || forgotten_.contains(step)) return;
  ExitTotals& totals = totals_[step];
  ++totals.threads;
  if (record.pid == record.process) ++totals.processes;
  totals.cpu_user_us += record.cpu_user_us;
  totals.cpu_system_us += record.cpu_system_us;
  totals.read_bytes += record.read_bytes;
  totals.write_bytes += record.write_bytes;
  totals.peak_resident_bytes = std::max(totals.peak_resident_bytes, record.peak_resident_bytes);
}

void ExitLedger::Explain(int32_t parent, const std::string& step) {
  auto waiting = waiting_.extract(parent);
  if (waiting.empty()) return;
  for (const Waiting& child : waiting.mapped()) {
    Count(child.record, step);
    if (child.record.pid != child.record.process) continue;
    known_[child.record.process] = Ended(step);
    Explain(child.record.process, step);
  }
}

void ExitLedger::Add(const ExitRecord& record) {
  ++records_;
  // SLURM's step daemon is in the step's cgroup, but no work of the user's.
  if (record.name == "slurmstepd") return;
  // A process that ends is in no cgroup any more; one of which a thread ended still is.
  const KnownProcess* own = Find(record.process, record.pid != record.process);
  if (own == nullptr) own = Find(record.parent, true);
  if (own == nullptr) {
    if (record.parent <= 1 || waiting_.size() >= kMaxWaiting) {
      if (record.uid != 0) ++unexplained_[record.uid];
      return;
    }
    waiting_[record.parent].push_back({record, seconds_});
    return;
  }
  const std::string step = own->step;
  Count(record, step);
  if (step.empty() || record.pid != record.process) return;
  // Its children may have ended before it, or end later as orphans.
  known_[record.process] = Ended(step);
  Explain(record.process, step);
}

void ExitLedger::Age() {
  for (auto it = known_.begin(); it != known_.end();)
    it = ++it->second.age > kForgetAfter ? known_.erase(it) : std::next(it);
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    std::erase_if(it->second, [this](const Waiting& child) {
      if (seconds_ - child.since <= kWaitFor) return false;
      if (child.record.uid != 0) ++unexplained_[child.record.uid];
      return true;
    });
    it = it->second.empty() ? waiting_.erase(it) : std::next(it);
  }
  ++seconds_;
  std::erase_if(forgotten_,
                [this](const auto& entry) { return seconds_ - entry.second > kStayForgotten; });
}

void ExitLedger::Forget(const std::string& step) {
  totals_.erase(step);
  forgotten_[step] = seconds_;
}

uint64_t ExitLedger::UnexplainedOf(std::optional<uint32_t> uid) const {
  return CountOf(unexplained_, uid);
}

uint64_t ExitLedger::CountOf(const Unexplained& counts, std::optional<uint32_t> uid) {
  uint64_t sum = 0;
  for (const auto& [user, count] : counts)
    if (!uid || user == *uid) sum += count;
  return sum;
}

ExitTotals ExitLedger::TotalsOf(const std::string& step) const {
  const auto found = totals_.find(step);
  return found == totals_.end() ? ExitTotals{} : found->second;
}

}  // namespace expanse::collect::host
