// SPDX-License-Identifier: Apache-2.0
// Recorded tool outputs for the tests of this folder.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "collect/slurm/job_record.h"
#include "platform/fs/fs.h"

namespace expanse::collect::slurm {

/// The mark of the recordings in testdata/slurm-22.05/lab2.
inline constexpr char kRecordedMark[] =
    "\x1f"
    "0123456789abcdef"
    "\x1f";

inline std::string Recorded(const std::string& name) {
  auto bytes = platform::Fs().Read(std::string(EXPANSE_TESTDATA) + "/slurm-22.05/" + name);
  if (!bytes.ok()) ADD_FAILURE() << bytes.error().message();
  return bytes.value_or("");
}

/// The n-th record of a job (0: the first).
inline const JobRecord* FindJob(const RecordBatch& batch, int64_t id, int n = 0) {
  for (const auto& job : batch.jobs)
    if (job.job_id == id && n-- == 0) return &job;
  return nullptr;
}

inline const StepRecord* FindStep(const JobRecord& job, const std::string& id) {
  for (const auto& step : job.steps)
    if (step.step_id == id) return &step;
  return nullptr;
}

}  // namespace expanse::collect::slurm
