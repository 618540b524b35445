// SPDX-License-Identifier: Apache-2.0
// Recorded tool outputs for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "collect/slurm/job_record.h"
#include "platform/fs/fs.h"

namespace expanse::collect::slurm {

/// The mark of the recordings in testdata/slurm-22.05/lab2.
inline constexpr char kRecordedMark[] =
    "\x1f"
    "0123456789abcdef"
    "\x1f";

/// version: "22.05", "24.11", "26.05".
inline std::string Recorded(const std::string& name, const std::string& version = "22.05") {
  auto bytes =
      platform::Fs().Read(std::string(EXPANSE_TESTDATA) + "/slurm-" + version + "/" + name);
  if (!bytes.ok()) ADD_FAILURE() << bytes.error().message();
  return bytes.value_or("");
}

/// Rows of a recorded `sacct -P`, the header first. Fields may hold line breaks: a row is a number
/// of fields.
inline std::vector<std::vector<std::string>> RowsOf(const std::string& psv) {
  std::vector<std::vector<std::string>> rows;
  std::string row;
  for (std::string_view line : Split(psv, '\n')) {
    if (row.empty() && line.empty()) continue;
    row += (row.empty() ? "" : "\n") + std::string(line);
    const auto fields = Split(row, '|');
    if (!rows.empty() && fields.size() < rows[0].size()) continue;
    rows.emplace_back(fields.begin(), fields.end());
    row.clear();
  }
  if (!row.empty()) ADD_FAILURE() << "a row that is not whole: " << row;
  return rows;
}
inline std::vector<std::vector<std::string>> RecordedRows(const std::string& name,
                                                          const std::string& version) {
  return RowsOf(Recorded(name, version));
}

/// The same in the form with a mark after each field.
inline std::string Marked(const std::string& psv, const std::string& mark = "|") {
  std::string out;
  for (const auto& row : RowsOf(psv)) {
    for (const std::string& field : row) out += field + mark;
    out += "\n";
  }
  return out;
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
