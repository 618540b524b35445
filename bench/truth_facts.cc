// SPDX-License-Identifier: Apache-2.0
// truth_facts SPOOL...: for truth.py. Reads the samplers' spools as the aggregator does, merges
// each job as the data plane does and prints it as JSON, one a line. What the scheduler alone would
// add, that the job completed, is added here; truth.py has checked it.
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <google/protobuf/util/json_util.h>

#include "collect/core/spool.h"
#include "data_plane/merge/fold.h"
#include "data_plane/merge/merge.h"

namespace {

namespace v1 = expanse::common::v1;
namespace data = expanse::data::v1;
using RowKey = std::tuple<int, std::string, std::string>;  // origin, node, step
using Rows = std::map<RowKey, data::StoredFacts>;

void Fold(const data::Record& record, std::map<std::string, Rows>* jobs) {
  if (!record.has_facts()) return;
  const auto& facts = record.facts();
  auto& rows = (*jobs)[facts.key().native_id()];
  auto& row = rows[{facts.origin(), record.node(), facts.step_id()}];
  row.set_origin(facts.origin());
  row.set_node(record.node());
  row.set_step_id(facts.step_id());
  expanse::data_plane::FoldFacts(facts, record.observed_time_ms(), &row);
}

bool ReadSpool(const std::string& directory, std::map<std::string, Rows>* jobs) {
  auto reader = expanse::collect::SpoolReader::Open(directory);
  if (!reader.ok()) {
    std::cerr << directory << ": " << reader.error().message() << "\n";
    return false;
  }
  for (;;) {
    auto batch = (*reader)->Next(1000, 8 << 20);
    if (!batch.ok() || batch->empty()) return batch.ok();
    for (const auto& record : batch->records) Fold(record, jobs);
  }
}

data::StoredFacts Completed(int64_t observed_ms) {
  data::ExecutionFacts facts;
  facts.set_origin(data::FACT_ORIGIN_SACCT);
  auto* e = facts.mutable_execution();
  e->set_status(v1::EXECUTION_STATUS_SUCCEEDED);
  e->set_outcome(v1::EXECUTION_OUTCOME_SUCCESS);
  e->set_ending_cause(v1::ENDING_CAUSE_EXITED);
  e->set_scheduler_state("COMPLETED");
  data::StoredFacts row;
  row.set_origin(facts.origin());
  expanse::data_plane::FoldFacts(facts, observed_ms, &row);
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, Rows> jobs;
  for (int i = 1; i < argc; ++i)
    if (!ReadSpool(argv[i], &jobs)) return 1;
  for (const auto& [id, by_key] : jobs) {
    std::vector<data::StoredFacts> rows;
    int64_t last = 0;
    for (const auto& [key, row] : by_key) {
      rows.push_back(row);
      last = std::max(last, row.last_observed_ms());
    }
    rows.push_back(Completed(last));
    expanse::data_plane::MergeContext context;
    context.native_id = id;
    auto execution = expanse::data_plane::Merge(context, rows);
    execution.set_native_id(id);
    std::string json;
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    if (!google::protobuf::util::MessageToJsonString(execution, &json, options).ok()) return 1;
    std::cout << json << "\n";
  }
  return 0;
}
