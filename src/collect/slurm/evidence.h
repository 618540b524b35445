// SPDX-License-Identifier: Apache-2.0
// What a job leaves as files: its batch script with the sources it runs, and the ends of its logs.
// Read with the rights of the job's user; secrets are taken out before a record is made.
#pragma once

#include <optional>
#include <string>

#include "collect/slurm/run_table.h"
#include "collect/slurm/slurm_tools.h"
#include "collect/slurm/user_access.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/fs/fs.h"

namespace expanse::collect::slurm {

/// Most bytes of a log that are kept.
inline constexpr size_t kLogTailBytes = 64 << 10;

class EvidenceReader {
 public:
  EvidenceReader(SlurmTools& tools, const platform::Fs& fs) : tools_(tools), fs_(fs) {}

  /// The bundle of a run. Always a record: what could not be read is named in it.
  data::v1::SourceBundle Bundle(const RunState& run);
  /// Ends of stdout and stderr.
  std::vector<data::v1::LogTail> LogTails(const RunState& run);

 private:
  data::v1::LogTail Tail(const RunState& run, const std::string& stream, const std::string& path,
                         const std::string& why_unknown);
  Result<UserAccess> Access(const std::string& user);
  struct LogPaths {
    std::string out;
    std::string err;
    std::string why_unknown;
  };
  LogPaths FindLogPaths(const RunState& run);
  const std::string* Script(const RunState& run, std::string* why);

  SlurmTools& tools_;
  const platform::Fs& fs_;
  // Tasks of one array have one script.
  int64_t cached_job_ = 0;
  int64_t cached_submit_ = 0;
  std::string cached_script_;
};

/// Splits "script arg arg" as scontrol prints it, joined by blanks: the script is the longest
/// leading part that is a file; without one, the first word.
struct CommandParts {
  std::string script;
  std::vector<std::string> arguments;
};
CommandParts SplitCommand(const std::string& command, const platform::Fs& fs);

}  // namespace expanse::collect::slurm
