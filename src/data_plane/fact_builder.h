// SPDX-License-Identifier: Apache-2.0
// Records as collectors send them, in few words. For the tests here.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "expanse/data/v1/ingest.pb.h"

namespace expanse::data_plane {

inline common::v1::RunKey Job(const std::string& id) {
  common::v1::RunKey key;
  key.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  key.set_native_id(id);
  return key;
}
inline common::v1::RunKey Job(const std::string& id, int64_t submit_ms, int restart) {
  common::v1::RunKey key = Job(id);
  key.set_submit_time_ms(submit_ms);
  key.set_restart_count(restart);
  return key;
}

using Fill = std::function<void(common::v1::Execution&)>;

inline data::v1::Record Facts(data::v1::FactOrigin origin, common::v1::RunKey key, int64_t at_ms,
                              const Fill& fill = {}, const std::string& node = "",
                              const std::string& step = "") {
  data::v1::Record record;
  record.set_observed_time_ms(at_ms);
  record.set_node(node);
  auto* facts = record.mutable_facts();
  *facts->mutable_key() = std::move(key);
  facts->set_origin(origin);
  facts->set_step_id(step);
  if (fill) fill(*facts->mutable_execution());
  return record;
}

inline data::v1::Record Samples(common::v1::RunKey key, const std::string& node,
                                const std::string& step, const std::string& metric,
                                int64_t first_ms, int64_t every_ms, std::vector<double> values,
                                const std::string& source = "cgroup") {
  data::v1::Record record;
  record.set_observed_time_ms(first_ms);
  record.set_node(node);
  auto* series = record.mutable_samples()->add_series();
  series->set_metric(metric);
  series->set_source(source);
  if (key.source_type() != common::v1::SOURCE_TYPE_UNSPECIFIED)
    *series->mutable_run() = std::move(key);
  series->set_step_id(step);
  for (size_t i = 0; i < values.size(); ++i) {
    series->add_timestamps_ms(first_ms + static_cast<int64_t>(i) * every_ms);
    series->add_values(values[i]);
  }
  return record;
}

}  // namespace expanse::data_plane
