// SPDX-License-Identifier: Apache-2.0
// Every reader of foreign text; the first byte chooses which.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collect/slurm/facts_builder.h"
#include "collect/slurm/log_path.h"
#include "collect/slurm/node_reader.h"
#include "collect/slurm/sacct_reader.h"
#include "collect/slurm/scontrol_job_parser.h"
#include "collect/slurm/secrets_filter.h"
#include "collect/slurm/segments.h"
#include "collect/slurm/slurm_version.h"
#include "collect/slurm/squeue_reader.h"
#include "collect/slurm/submit_line.h"

namespace expanse::collect::slurm {
namespace {

/// What is made of a row must be whole whatever the row holds.
void Build(const RecordBatch& batch) {
  for (const auto& job : batch.jobs) {
    const auto facts = BuildFacts(job, {job.job_id, job.submit.value_or(0), 0}, {});
    std::string bytes;
    if (job.job_id <= 0 || !facts.SerializeToString(&bytes)) std::abort();
  }
}

int ReadOne(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr std::string_view kMark =
      "\x1f"
      "0123456789abcdef"
      "\x1f";
  switch (data[0]) {
    case 'c':
      Build(ParseScontrolJobs(text, nullptr));
      break;
    case 'q':
      if (const auto batch = ParseSqueueJson(text); batch.ok()) Build(*batch);
      break;
    case 't':
      if (const auto batch = ParseSqueueText(text, kMark); batch.ok()) Build(*batch);
      break;
    case 'a':
      if (const auto batch = ParseSacctText(text, kMark); batch.ok()) Build(*batch);
      break;
    case 'A':  // as 26.05 is read
      if (const auto batch = ParseSacctText(text, kMark, {true, MaxRssKind::kCgroupPeak});
          batch.ok())
        Build(*batch);
      break;
    case 'k':
      if (const auto batch = ParseScontrolJson(text); batch.ok()) Build(*batch);
      break;
    case 'f':
      (void)SacctTextArguments({}, kMark, ParseSacctFields(text));
      (void)ParseSlurmVersion(text);
      break;
    case 'l':
      (void)ReadSubmitRequest(text);
      (void)SubmitLineOption(std::string(text), "output", 'o');
      if (const auto index = IndexOfSluid(text); index && SluidOfIndex(*index) != text)
        std::abort();
      break;
    case 'j':
      if (const auto batch = ParseSacctJson(text); batch.ok()) Build(*batch);
      break;
    case 'n': {
      data::v1::ComputeFacts facts;
      ParseNodes(text, &facts);
      ParsePartitions(text, &facts);
      break;
    }
    case 'N': {
      data::v1::ComputeFacts facts;
      (void)ParseNodesJson(text, &facts);
      std::string bytes;
      if (!facts.SerializeToString(&bytes)) std::abort();
      break;
    }
    case 's': {
      const FilteredText out = FilterSecrets(text);
      if (out.replaced == 0 && out.text != text) std::abort();
      break;
    }
    case 'p':
      (void)ExpandLogPath(text, {});
      (void)ExpandHostList(text, 1000);
      break;
    default:
      break;
  }
  return 0;
}

}  // namespace
}  // namespace expanse::collect::slurm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return expanse::collect::slurm::ReadOne(data, size);
}
