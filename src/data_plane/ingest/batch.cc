// SPDX-License-Identifier: Apache-2.0
#include "data_plane/ingest/batch.h"

#include <algorithm>

#include "data_plane/ingest/validate.h"

namespace expanse::data_plane {
namespace {

constexpr int64_t kHourMs = 3'600'000;

bool IsOfNode(data::v1::FactOrigin origin) {
  switch (origin) {
    case data::v1::FACT_ORIGIN_SQUEUE:
    case data::v1::FACT_ORIGIN_SCONTROL:
    case data::v1::FACT_ORIGIN_SACCT:
    case data::v1::FACT_ORIGIN_SUBMISSION:
      return false;
    default:
      return true;
  }
}

// True when both keys make the same aliases: a record's series are mostly those of one run, and its
// name is a hash.
bool SameNames(const common::v1::RunKey& a, const common::v1::RunKey& b) {
  return a.native_id() == b.native_id() && a.source_type() == b.source_type() &&
         a.has_submit_time_ms() == b.has_submit_time_ms() &&
         a.submit_time_ms() == b.submit_time_ms() &&
         a.has_restart_count() == b.has_restart_count() && a.restart_count() == b.restart_count() &&
         a.has_start_time_ms() == b.has_start_time_ms() && a.start_time_ms() == b.start_time_ms() &&
         a.has_db_index() == b.has_db_index() && a.db_index() == b.db_index() &&
         a.sluid() == b.sluid() && a.original_sluid() == b.original_sluid() &&
         a.has_observed_time_ms() == b.has_observed_time_ms() &&
         a.observed_time_ms() == b.observed_time_ms();
}

}  // namespace

Status Batch::Add(const data::v1::Record& record) {
  EXPANSE_CHECK_OK(ValidateRecord(record));
  // A clock far ahead would otherwise win every "newest" for good.
  const int64_t observed = std::min(record.observed_time_ms(), now_ms_ + kMaxClockAheadMs);
  switch (record.body_case()) {
    case data::v1::Record::kFacts:
      AddFacts(record.facts(), record.node(), observed);
      return {};
    case data::v1::Record::kSamples:
      return AddSamples(record, observed);
    case data::v1::Record::kBundle:
      AddBundle(record.bundle(), observed);
      return {};
    case data::v1::Record::kLogTail:
      log_tails_.push_back(
          {SightOfKey(record.log_tail().key(), observed, "log", record.log_tail().stream(), ""),
           &record.log_tail(), "", observed});
      return {};
    case data::v1::Record::kCompute:
      computes_.push_back({&record.compute(), observed});
      return {};
    case data::v1::Record::BODY_NOT_SET:
      break;
  }
  return Error(Code::kInvalidArgument, "record without a body that this version knows");
}

void Batch::AddFacts(const data::v1::ExecutionFacts& facts, const std::string& node,
                     int64_t observed) {
  const std::string of_node = IsOfNode(facts.origin()) ? node : "";
  facts_.push_back({SightOfFacts(facts, observed, of_node), &facts, of_node, observed});
}

Status Batch::AddSamples(const data::v1::Record& record, int64_t observed) {
  std::string refused;
  int refused_count = 0;
  for (const auto& series : record.samples().series()) {
    const Status added = AddSeries(series, record.node(), observed);
    if (added.ok()) continue;
    if (refused_count++ == 0)
      refused = "series '" + series.metric().substr(0, 100) + "': " + added.error().message();
  }
  if (refused_count == 0) return {};
  return Error(Code::kInvalidArgument, std::to_string(refused_count) + " of " +
                                           std::to_string(record.samples().series_size()) +
                                           " series refused, the first: " + refused);
}

Status Batch::AddSeries(const data::v1::Series& series, const std::string& node, int64_t observed) {
  if (series.timestamps_ms_size() > kMaxSamplesInSeries)
    return Error(Code::kInvalidArgument, "more than 100000 samples");
  if (series.timestamps_ms_size() == 0) return Error(Code::kInvalidArgument, "no samples");
  if (node.empty()) return Error(Code::kInvalidArgument, "samples without a node");
  storage::SeriesBlock block;
  block.key.org = scope_.org;
  block.key.compute = scope_.compute;
  block.key.node = node;
  block.key.step_id = series.step_id();
  block.key.metric = series.metric();
  block.key.source = series.source();
  if (series.has_gpu_index()) block.key.gpu_index = series.gpu_index();
  block.key.gpu_uuid = series.gpu_uuid();
  block.timestamps_ms = {series.timestamps_ms().data(),
                         static_cast<size_t>(series.timestamps_ms_size())};
  block.values = {series.values().data(), static_cast<size_t>(series.values_size())};
  if (series.has_run() && last_run_.key != nullptr && SameNames(series.run(), *last_run_.key)) {
    block.key.execution = last_run_.owner;
    EXPANSE_CHECK_OK(storage::ValidateBlock(block));
  } else if (series.has_run()) {
    EXPANSE_CHECK_OK(ValidateKey(series.run()));
    const std::vector<Alias> aliases = StrongAliases(series.run());
    SeriesRun run;
    if (aliases.empty()) {
      block.key.execution = SightSeriesOwner(scope_.org, scope_.compute, series.run().source_type(),
                                             series.run().native_id());
      // One sight an hour and node is enough to know that somebody ran.
      const int64_t first = series.timestamps_ms(0);
      run.sight = SightOfKey(series.run(), std::min(first, observed), "samples", node, "");
      common::v1::RunKey hour = series.run();
      hour.clear_observed_time_ms();
      run.sight.weak = WeakAlias(hour, first - first % kHourMs, "samples", node, "");
      run.alias = run.sight.weak;
    } else {
      block.key.execution = ExecutionId(DerivedId(scope_.org, scope_.compute, aliases.front()));
      run.sight = SightOfKey(series.run(), observed, "samples", node, "");
      run.alias = aliases.front();
    }
    EXPANSE_CHECK_OK(storage::ValidateBlock(block));
    run.sight.seen.flags |= kRunsHere;
    // Only a strong name is the same whatever the node and the time.
    last_run_.key = aliases.empty() ? nullptr : &series.run();
    last_run_.owner = block.key.execution;
    if (series_aliases_.insert(run.alias).second) series_runs_.push_back(std::move(run));
  } else {
    EXPANSE_CHECK_OK(storage::ValidateBlock(block));
  }
  blocks_.push_back(std::move(block));
  return {};
}

void Batch::AddBundle(const data::v1::SourceBundle& bundle, int64_t observed) {
  BundleItem item;
  item.bundle = &bundle;
  item.observed_ms = observed;
  item.manifest.set_script_path(bundle.script_path());
  *item.manifest.mutable_arguments() = bundle.arguments();
  *item.manifest.mutable_unknown() = bundle.unknown();
  for (const auto& file : bundle.files()) {
    auto* stored = item.manifest.add_files();
    stored->set_path(file.path());
    stored->set_sha256(file.sha256());
    stored->set_size(file.size());
  }
  bundles_.push_back(std::move(item));

  data::v1::ExecutionFacts& facts = made_.emplace_back();
  *facts.mutable_key() = bundle.key();
  facts.set_origin(data::v1::FACT_ORIGIN_SUBMISSION);
  auto* execution = facts.mutable_execution();
  execution->set_bundle_id(bundle.bundle_id());
  execution->set_script_hash(bundle.script_hash());
  execution->set_tree_hash(bundle.tree_hash());
  execution->set_args_hash(bundle.args_hash());
  if (bundle.bundle_id().empty()) {
    const auto& [field, reason] =
        *std::min_element(bundle.unknown().begin(), bundle.unknown().end(),
                          [](const auto& a, const auto& b) { return a.first < b.first; });
    (*execution->mutable_unknown())["bundle_id"] = field + ": " + reason;
  }
  AddFacts(facts, "", observed);
}

Status Batch::PutBlobs(storage::BlobStore& blobs) {
  for (LogTailItem& item : log_tails_) {
    if (item.tail->content().empty()) continue;
    EXPANSE_TRY(const auto key, blobs.Put(scope_.org, "log-tail", item.tail->content()));
    item.blob_sha256 = key.sha256;
  }
  for (BundleItem& item : bundles_)
    for (int i = 0; i < item.bundle->files_size(); ++i) {
      if (!item.bundle->files(i).has_content()) continue;
      EXPANSE_TRY(const auto key, blobs.Put(scope_.org, "bundle", item.bundle->files(i).content()));
      item.manifest.mutable_files(i)->set_blob_sha256(key.sha256);
    }
  return {};
}

}  // namespace expanse::data_plane
