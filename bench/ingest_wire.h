// SPDX-License-Identifier: Apache-2.0
// One batch in the forms that the two sides take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "expanse/data/v1/ingest.pb.h"
#include "ingest_data.h"

namespace expanse::bench {

/// Records as a sampler sends them: one for each node and job of the batch. Returns how many.
int AddRecords(const DataSet& data, size_t batch, data::v1::PushRequest* request);
/// What the scheduler told of the jobs: they run since their first sample.
int AddFacts(const DataSet& data, data::v1::PushRequest* request);

/// VictoriaMetrics' ways in.
enum class VictoriaForm { kNative, kJson, kInflux, kRemoteWrite };
std::string VictoriaPath(VictoriaForm form);
/// A metric's name as Prometheus allows it.
std::string VictoriaName(const std::string& metric);
/// Labels and names are rendered once, as a client would.
class VictoriaEncoder {
 public:
  VictoriaEncoder(VictoriaForm form, const DataSet& data);
  std::string Encode(const DataSet& data, size_t batch) const;

 private:
  void Native(std::string& out, const std::string& name, const SeriesSamples& samples) const;
  VictoriaForm form_;
  std::vector<std::string> names_;  // of each series, in the form's own spelling
};

}  // namespace expanse::bench
