// SPDX-License-Identifier: Apache-2.0
#include "data_plane/ingest/ingest_service.h"

#include <utility>

#include "base/log.h"
#include "base/time.h"
#include "data_plane/ingest/store_batch.h"
#include "data_plane/ingest/validate.h"

namespace expanse::data_plane {
namespace {

// Names of runs whose samples need no SQL; forgotten all at once when there are too many.
constexpr size_t kMaxKnownRuns = 200'000;

std::string RunName(const Scope& scope, const Alias& alias) {
  return scope.org.str() + "/" + scope.compute.str() + "/" + alias.kind + "/" + alias.value;
}

// Everything that is not certainly the record's fault (a constraint, a value that no store takes,
// one too large for it) is of the moment, of the machine (a full or read-only disk, a directory
// that is not mounted) or of this program: the same batch can be taken later.
bool MayPass(const Error& error) {
  switch (error.code()) {
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kAlreadyExists:
    case Code::kOutOfRange:
      return false;
    default:
      return true;
  }
}

// What a sender must not take for a fault of its batch ("too large", "not allowed").
Error NotStored(const Error& error) {
  return Error(Code::kUnavailable,
               "nothing of this batch is acknowledged, send it again later: " + error.message());
}

void Report(const Scope& scope, const data::v1::PushRequest& request,
            const data::v1::PushResponse& response) {
  if (response.missing_before() > 0)
    log::Warning("ingest.gap", {{"compute", scope.compute.str()},
                                {"source", request.source_id()},
                                {"missing", response.missing_before()},
                                {"before", request.first_sequence()}});
  if (response.rejected_size() > 0)
    log::Warning("ingest.records_rejected", {{"compute", scope.compute.str()},
                                             {"source", request.source_id()},
                                             {"count", response.rejected_size()},
                                             {"first_reason", response.rejected(0).reason()}});
}

}  // namespace

Result<IngestService::Source> IngestService::ReadSource(const Scope& scope,
                                                        const std::string& source_id) {
  auto read = database_.Query(
      "SELECT compute_id, next_sequence, gaps, missing_records, rejected_records FROM "
      "ingest_sources WHERE org_id = $1 AND source_id = $2",
      {scope.org, source_id});
  if (!read.ok()) return NotStored(read.error());
  const auto& rows = *read;
  Source source;
  if (rows.empty()) return source;
  if (rows[0].Text(0) != scope.compute.str())
    return Error(Code::kPermissionDenied,
                 "source " + source_id +
                     " belongs to another compute; a spool that was copied from another host "
                     "needs a new source id");
  source.is_new = false;
  source.state.next = rows[0].Int64(1);
  // Without its gaps a source only takes a late record of one for a duplicate.
  if (auto gaps = ParseGaps(rows[0].Text(2)); gaps.ok())
    source.state.gaps = *std::move(gaps);
  else
    log::Error("ingest.gaps_damaged", {{"source", source_id}, {"reason", gaps.error().message()}});
  source.state.missing = rows[0].Int64(3);
  source.rejected = rows[0].Int64(4);
  return source;
}

std::vector<SeriesRun> IngestService::UnknownRuns(const Scope& scope, const Batch& batch) {
  const std::lock_guard lock(known_mutex_);
  std::vector<SeriesRun> out;
  for (const SeriesRun& run : batch.series_runs())
    if (!known_series_runs_.contains(RunName(scope, run.alias))) out.push_back(run);
  return out;
}

void IngestService::RememberRuns(const Scope& scope, const std::vector<SeriesRun>& runs) {
  const std::lock_guard lock(known_mutex_);
  if (known_series_runs_.size() > kMaxKnownRuns) known_series_runs_.clear();
  for (const SeriesRun& run : runs) known_series_runs_.insert(RunName(scope, run.alias));
}

Status IngestService::SaveSource(storage::Transaction& transaction, const Scope& scope,
                                 const data::v1::PushRequest& request, const Source& source,
                                 int64_t now_ms) {
  EXPANSE_CHECK_OK(transaction.Execute(
      "INSERT INTO ingest_sources (org_id, source_id, compute_id, next_sequence, gaps, "
      "missing_records, dropped_records, rejected_records, last_push_ms) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) "
      "ON CONFLICT (org_id, source_id) DO UPDATE SET next_sequence = excluded.next_sequence, "
      "gaps = excluded.gaps, missing_records = excluded.missing_records, "
      "dropped_records = CASE WHEN excluded.dropped_records > ingest_sources.dropped_records "
      "THEN excluded.dropped_records ELSE ingest_sources.dropped_records END, "
      "rejected_records = excluded.rejected_records, last_push_ms = excluded.last_push_ms",
      {scope.org, request.source_id(), scope.compute, source.state.next,
       FormatGaps(source.state.gaps), source.state.missing,
       static_cast<int64_t>(request.dropped_records()), source.rejected, now_ms}));
  return {};
}

void IngestService::Reject(const data::v1::PushRequest& request, int64_t index,
                           const std::string& reason, Source* source,
                           data::v1::PushResponse* response) {
  auto* rejected = response->add_rejected();
  rejected->set_sequence(request.first_sequence() + static_cast<uint64_t>(index));
  rejected->set_reason(reason);
  ++source->rejected;
}

Status IngestService::Commit(const Scope& scope, const data::v1::PushRequest& request,
                             const Source& source, Batch* batch, int64_t now_ms) {
  EXPANSE_CHECK_OK(batch->PutBlobs(blobs_));
  if (!batch->blocks().empty())
    EXPANSE_CHECK_OK(series_.Append(
        batch->blocks(), request.source_id() + "/" + std::to_string(request.first_sequence())));
  const std::vector<SeriesRun> unknown_runs = UnknownRuns(scope, *batch);
  EXPANSE_CHECK_OK(database_.Write([&](storage::Transaction& transaction) -> Status {
    EXPANSE_CHECK_OK(StoreBatch(transaction, scope, *batch, unknown_runs, new_id_));
    return SaveSource(transaction, scope, request, source, now_ms);
  }));
  RememberRuns(scope, unknown_runs);
  return {};
}

Status IngestService::CommitOneByOne(const Scope& scope, const data::v1::PushRequest& request,
                                     Source source, int64_t now_ms,
                                     data::v1::PushResponse* response) {
  const auto first = static_cast<int64_t>(request.first_sequence());
  response->clear_rejected();
  for (int i = 0; i < request.records_size(); ++i) {
    const bool is_new = source.state.IsNew(first + i);
    source.state.Take(first + i, 1);
    if (!is_new) continue;
    Batch batch(scope, now_ms);
    const Status added = batch.Add(request.records(i));
    if (!added.ok()) Reject(request, i, added.error().message(), &source, response);
    const Status stored = Commit(scope, request, source, &batch, now_ms);
    if (stored.ok()) continue;
    if (MayPass(stored.error())) return stored;
    log::Error("ingest.record_not_stored", {{"compute", scope.compute.str()},
                                            {"source", request.source_id()},
                                            {"sequence", first + i},
                                            {"reason", stored.error().message()}});
    Reject(request, i, "could not be stored: " + stored.error().message(), &source, response);
    Batch nothing(scope, now_ms);
    EXPANSE_CHECK_OK(Commit(scope, request, source, &nothing, now_ms));
  }
  return {};
}

Result<data::v1::PushResponse> IngestService::Push(const rpc::CallContext& context,
                                                   const data::v1::PushRequest& request) {
  EXPANSE_CHECK_OK(ValidateRequest(request));
  const Scope scope{context.caller.org, context.caller.compute};
  const int64_t now_ms = ToUnixMillis(clock_.Now());
  const std::lock_guard lock(
      source_locks_[std::hash<std::string>()(request.source_id()) % source_locks_.size()]);
  EXPANSE_TRY(const Source before, ReadSource(scope, request.source_id()));
  Source source = before;

  data::v1::PushResponse response;
  response.set_server_clock_ms(now_ms);
  const auto first = static_cast<int64_t>(request.first_sequence());
  const int64_t count = request.records_size();
  Batch batch(scope, now_ms);
  size_t series = 0;
  for (const auto& record : request.records())
    series += static_cast<size_t>(record.samples().series_size());
  batch.Reserve(series);
  int64_t fresh = 0;
  for (int i = 0; i < request.records_size(); ++i) {
    if (!source.state.IsNew(first + i)) continue;
    ++fresh;
    const Status added = batch.Add(request.records(i));
    if (!added.ok()) Reject(request, i, added.error().message(), &source, &response);
  }
  response.set_duplicates(static_cast<uint64_t>(count - fresh));
  response.set_missing_before(static_cast<uint64_t>(source.state.Take(first, count)));
  response.set_acknowledged_through(
      static_cast<uint64_t>(count > 0 ? first + count - 1 : source.state.next - 1));

  const Status stored = Commit(scope, request, source, &batch, now_ms);
  // One record that cannot be stored must not hold up its source for ever.
  if (!stored.ok()) {
    if (MayPass(stored.error()) || fresh == 0) return NotStored(stored.error());
    const Status one_by_one = CommitOneByOne(scope, request, before, now_ms, &response);
    if (!one_by_one.ok()) return NotStored(one_by_one.error());
  }
  Report(scope, request, response);
  if (counters_ != nullptr) counters_->Count(request, response);
  return response;
}

}  // namespace expanse::data_plane
