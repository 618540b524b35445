// SPDX-License-Identifier: Apache-2.0
// Runs SLURM's client programs: fixed environment (UTC, C locale, epoch seconds, the cluster's
// slurm.conf), bounded time and output. A tool that is missing, slow, cut off or empty with exit
// status 0 is an error with its name, never an empty world. Which form of a tool is used follows
// from its version (slurm_version.h), asked at the start and once an hour.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/slurm/job_record.h"
#include "collect/slurm/sacct_reader.h"
#include "collect/slurm/slurm_version.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/clock/clock.h"
#include "platform/process/process.h"
#include "platform/random/random.h"

namespace expanse::collect::slurm {

struct SlurmToolsOptions {
  std::string slurm_conf;  // SLURM_CONF of the tools; empty: their own default
  std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  Millis timeout{30'000};
  Millis sacct_timeout{120'000};
  Millis ask_version_every{3'600'000};
  Millis ask_version_again{60'000};  // after it was not told
};

/// Which degraded state a tool is in, for the health table.
struct ToolHealth {
  std::string status = "ok";  // "ok", "degraded", "disabled"
  std::string reason;
  int64_t since_ms = 0;
};

class SlurmTools {
 public:
  SlurmTools(SlurmToolsOptions options, platform::ProcessRunner& runner,
             const platform::Clock& clock, platform::Random& random);

  /// Every job slurmctld knows. JSON first; the text form after every JSON form was refused.
  Result<RecordBatch> Squeue();
  /// Every job. JSON where scontrol has it (24.11 and newer); the text is checked against the names
  /// of Squeue's answer.
  Result<RecordBatch> ScontrolJobs(const RecordBatch& squeue);
  /// True: slurmctld says it does not know the id. False: it does. An error: it was not asked.
  Result<bool> IsForgotten(int64_t job_id);
  /// Text first; JSON after the text form was refused once. kFailedPrecondition: this cluster has
  /// no accounting storage.
  Result<RecordBatch> Sacct(const SacctQuery& query);
  /// The batch script from slurmctld, else from accounting. kNotFound with both reasons.
  Result<std::string> BatchScript(int64_t job_id);
  /// Nodes, partitions, version and cluster name. Text in every version: only an administrator
  /// chooses its words, and no serializer has to be installed.
  Result<data::v1::ComputeFacts> Cluster();
  /// The text of `scontrol show config`: slurm.conf as slurmctld has it.
  Result<std::string> Config();
  /// ClusterName of it.
  Result<std::string> ClusterName();

  /// "squeue", "scontrol", "sacct" to their state.
  std::map<std::string, ToolHealth> health() const;

 private:
  Result<platform::ProcessResult> Run(const std::vector<std::string>& argv, Millis timeout,
                                      bool epoch_times = true);
  /// Notes success or failure of a tool; returns the status unchanged.
  template <typename T>
  Result<T> Note(const std::string& tool, Result<T> result);
  /// Asks for the version and sacct's fields when it is time to.
  void LearnForms();
  /// Asks once what MaxRSS means here.
  void LearnMaxRss();
  void NoteMaxRss(const std::string& config, const data::v1::ComputeFacts& nodes);
  Result<std::string> Show(const char* what);
  Result<RecordBatch> SqueueJson(const std::vector<std::string>& argv);
  Result<RecordBatch> ScontrolJson();
  Result<RecordBatch> ScontrolText(const RecordBatch& squeue);
  Result<RecordBatch> SqueueText();
  Result<RecordBatch> SacctText(const SacctQuery& query);
  Result<RecordBatch> SacctJson(const SacctQuery& query);

  SlurmToolsOptions options_;
  platform::ProcessRunner& runner_;
  const platform::Clock& clock_;
  platform::Random& random_;
  ToolForms forms_;
  SacctFields sacct_fields_;
  MaxRssKind max_rss_kind_ = MaxRssKind::kUnknown;
  bool max_rss_known_ = false;
  std::optional<MonoTime> ask_forms_at_;
  bool sacct_text_refused_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, ToolHealth> health_;
};

}  // namespace expanse::collect::slurm
