// SPDX-License-Identifier: Apache-2.0
// The kernel's exit records over netlink: registered for every CPU, each thread that ends sends one
// (Documentation/accounting/taskstats.rst). Needs CAP_NET_ADMIN in the first user namespace.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/host/exit_ledger.h"

namespace expanse::collect::host {

/// The records of one netlink datagram; what is malformed or of another kind is left out. family:
/// the generic netlink family of taskstats.
std::vector<ExitRecord> ParseExitRecords(std::string_view datagram, uint16_t family);

/// What the listener cost and missed.
struct TaskstatsState {
  double cpu_seconds = 0;
  uint64_t records = 0;
  uint64_t losses = 0;  // times the kernel dropped records because nobody read them in time
};

/// A thread that reads the records into a ledger.
class TaskstatsListener {
 public:
  /// kPermissionDenied: without CAP_NET_ADMIN; kUnimplemented: a kernel without taskstats.
  static Result<std::unique_ptr<TaskstatsListener>> Start(ExitLedger::Locate locate);
  ~TaskstatsListener();
  TaskstatsListener(const TaskstatsListener&) = delete;
  TaskstatsListener& operator=(const TaskstatsListener&) = delete;

  /// The ledger, under its lock and with every record that has come so far.
  void With(const std::function<void(ExitLedger&)>& use);
  TaskstatsState state() const;

 private:
  struct Impl;
  explicit TaskstatsListener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::collect::host
