// SPDX-License-Identifier: Apache-2.0
// What intake counts of itself.
#pragma once

#include <algorithm>
#include <cstdint>

#include "expanse/data/v1/ingest.pb.h"
#include "platform/metrics/metrics.h"

namespace expanse::data_plane {

/// Records, by what became of them; one push counts when it was acknowledged.
struct IngestCounters {
  explicit IngestCounters(platform::MetricsRegistry& registry)
      : accepted(
            registry.GetCounter("expanse_ingest_records_total", kHelp, {{"result", "accepted"}})),
        duplicate(
            registry.GetCounter("expanse_ingest_records_total", kHelp, {{"result", "duplicate"}})),
        rejected(
            registry.GetCounter("expanse_ingest_records_total", kHelp, {{"result", "rejected"}})),
        missing(registry.GetCounter("expanse_ingest_missing_records_total",
                                    "Records that a source numbered and nobody sent in order.")),
        samples(registry.GetCounter("expanse_ingest_samples_total",
                                    "Samples in pushes that held nothing known already.")) {}

  void Count(const data::v1::PushRequest& request, const data::v1::PushResponse& response) {
    const auto sent = static_cast<uint64_t>(request.records_size());
    const auto refused = static_cast<uint64_t>(response.rejected_size());
    accepted.Add(sent - std::min(sent, response.duplicates() + refused));
    duplicate.Add(response.duplicates());
    rejected.Add(refused);
    missing.Add(response.missing_before());
    if (response.duplicates() > 0) return;
    uint64_t values = 0;
    for (const auto& record : request.records())
      for (const auto& series : record.samples().series())
        values += static_cast<uint64_t>(series.values_size());
    samples.Add(values);
  }

  platform::Counter& accepted;
  platform::Counter& duplicate;
  platform::Counter& rejected;
  platform::Counter& missing;
  platform::Counter& samples;

 private:
  static constexpr const char* kHelp = "Records of acknowledged pushes, by what became of them.";
};

}  // namespace expanse::data_plane
