// SPDX-License-Identifier: Apache-2.0
// Processes of a step from /proc: their tree, threads, memory, and what they read and wrote.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/host/cgroup_parse.h"
#include "platform/fs/fs.h"

namespace expanse::collect::host {

/// One process now. Absent: not readable for this user, or it ended while reading.
struct Process {
  int32_t pid = 0;
  int32_t parent = 0;
  std::string name;         // of its program, at most 15 bytes
  std::string command;      // secrets removed
  int64_t start_ticks = 0;  // since boot; with pid it is one process
  int64_t cpu_ticks = 0;    // its own and of its ended, waited-for children
  int32_t threads = 0;
  int64_t resident_bytes = 0;
  IoBytes io;  // storage; of it and of its ended, waited-for children
};

/// All processes of one step.
struct StepProcesses {
  std::vector<Process> processes;
  std::optional<int64_t> threads;
  std::optional<int64_t> resident_bytes;
  IoBytes io;
  IoBytes network;              // received, sent; only with a network namespace of its own
  std::string io_problem;       // why io is absent or lacks processes
  std::string network_problem;  // why network is absent
};

/// The fields of /proc/<pid>/stat (proc(5)); nothing when malformed. The name may hold anything.
std::optional<Process> ParseProcessStat(std::string_view text, int64_t page_bytes);
/// read_bytes and write_bytes of /proc/<pid>/io.
IoBytes ParseProcessIo(std::string_view text);
/// Received and sent bytes over all interfaces but lo, of /proc/<pid>/net/dev.
IoBytes ParseNetDev(std::string_view text);

class ProcessReader {
 public:
  explicit ProcessReader(const platform::Fs& fs);
  /// Reads the processes; remembers command lines, so that each is read and filtered once.
  StepProcesses Read(const std::vector<int32_t>& pids);
  /// Forgets the processes that were not read since the last call.
  void ForgetOthers();

 private:
  struct Known {
    int64_t start_ticks = 0;
    std::string command;
    bool is_current = true;
  };
  std::optional<Process> ReadOne(int32_t pid, std::string* io_problem);
  void ReadNetwork(int32_t pid, StepProcesses* step) const;

  const platform::Fs& fs_;
  int64_t page_bytes_ = 4096;
  std::string own_network_;
  std::map<int32_t, Known> known_;
};

}  // namespace expanse::collect::host
