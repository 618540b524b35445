// SPDX-License-Identifier: Apache-2.0
// The small notations of SLURM's tools: TRES lists, sizes, durations, host lists, exit codes.
// Every parser is total: text that is not the notation gives nothing, never a guess.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::collect::slurm {

/// From here on a 32-bit number of SLURM means "not set" (NO_VAL) or "without limit" (INFINITE).
inline constexpr int64_t kSlurmNotSet = 4'294'967'294;

/// "100M", "999G", "1.50T", "4096" in bytes. A bare number has the unit given (SLURM's memory
/// fields are MiB without a suffix, its usage fields bytes). A trailing "n" or "c" of versions
/// before 21.08 is ignored.
std::optional<int64_t> ParseSlurmSize(std::string_view text, int64_t bare_unit);

/// "[days-]hours:minutes:seconds[.fraction]", "minutes:seconds[.fraction]" in seconds. Nothing for
/// UNLIMITED, Partition_Limit, N/A and INVALID, nor for more than a century: steps that were never
/// sampled have an AveCPU of 213503982334 days.
std::optional<double> ParseSlurmDuration(std::string_view text);

/// Epoch seconds as SLURM_TIME_FORMAT=%s prints them, or ISO without a zone read as UTC. Nothing
/// for Unknown, None, N/A and 0.
std::optional<int64_t> ParseSlurmTime(std::string_view text);

/// A count of CPUs, nodes or tasks, of which a job has at least one. Nothing for 0: a row that the
/// accounting daemon has not filled yet, and the allocation of a job that never started, show that.
std::optional<int64_t> ParseSlurmCount(std::string_view text);

/// A TRES list: "billing=1,cpu=4,gres/gpu:a100=2,mem=400M,node=2". Memory is in bytes.
struct Tres {
  std::optional<int64_t> cpus;  // at least 1, as nodes
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> nodes;
  std::optional<int64_t> gpus;        // gres/gpu of any type
  std::string gpu_type;               // empty when the list names none or several
  std::optional<double> cpu_seconds;  // usage lists carry "cpu=00:00:07"
  bool empty = true;
};
/// memory_unit: of a bare "mem=" value (allocation lists: MiB; usage lists: bytes).
Tres ParseTres(std::string_view text, int64_t memory_unit);

/// "n[1-2,05],m3" as names, in order; zero padding kept, several brackets in one name allowed.
/// Nothing for a malformed list, or for one of more than max_hosts names.
std::optional<std::vector<std::string>> ExpandHostList(std::string_view text,
                                                       size_t max_hosts = 100'000);

/// What a program ended with, in one normal form for every tool.
struct ExitStatus {
  std::optional<int> code;
  std::optional<int> signal;
  /// Pseudo signal 125: SLURM's mark for "killed for memory".
  bool out_of_memory = false;
  /// Why code and signal cannot be told apart; empty when they can.
  std::string ambiguity;
};

/// A wait status as squeue --json prints it: 768, 35584 (139 << 8), 15, 253 (out of memory).
ExitStatus FromWaitStatus(int64_t wait_status);
/// "139:0", "0:15", "0:125" of scontrol: the shell's 128 + signal becomes the signal.
std::optional<ExitStatus> ParseScontrolExit(std::string_view text);
/// "11:0", "0:125" of sacct up to 24.11, which prints codes from 128 on less 128: 11:0 is exit
/// code 11 or signal 11. Numbers that are hardly ever exit codes are read as the signal, others
/// as the code; `ambiguity` says so. DerivedExitCode is not shifted, nor is any code of 26.05: use
/// ParseScontrolExit.
std::optional<ExitStatus> ParseSacctExit(std::string_view text);

/// True for words that SLURM prints in place of a value: "", "(null)", "None", "N/A", "Unknown",
/// "None assigned", "Not Set".
bool IsSlurmNull(std::string_view text);

}  // namespace expanse::collect::slurm
