// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/run_store.h"

#include "base/strings.h"

namespace expanse::intelligence::analyse {
namespace {

Error NoSuchRun() { return Error(Code::kNotFound, "there is no such analyse run"); }

Result<v1::AnalyseRun> Parse(const storage::Row& row) {
  v1::AnalyseRun run;
  if (!run.ParseFromString(row.Bytes("run"))) {
    return Error(Code::kDataLoss, "a stored analysis cannot be read");
  }
  // The columns are the newer truth: a restart changes them alone.
  run.set_status(static_cast<v1::RunStatus>(row.Int64("status")));
  if (const auto error = row.OptText("error")) run.set_error(*error);
  return run;
}

}  // namespace

Status RunStore::Put(const RunOwner& owner, const v1::AnalyseRun& run,
                     const std::string& content_key,
                     const std::optional<v1::ArtifactContent>& patch, WallTime now) {
  return database_.Write([&](storage::Transaction& tx) -> Status {
    std::optional<std::string> error;
    if (!run.error().empty()) error = run.error();
    auto stored = tx.Execute(
        "INSERT INTO analyse_run (org_id, run_id, user_id, content_key, status, error, created_ms, "
        "run) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (org_id, run_id) DO UPDATE SET "
        "content_key = excluded.content_key, status = excluded.status, error = excluded.error, "
        "run = excluded.run",
        {owner.org, run.run_id(), owner.user, content_key, static_cast<int64_t>(run.status()),
         error, ToUnixMillis(now), storage::Blob{run.SerializeAsString()}});
    if (!stored.ok()) return stored.error();
    if (!patch) return {};
    stored = tx.Execute(
        "INSERT INTO analyse_artifact (org_id, run_id, artifact_id, content) "
        "VALUES ($1, $2, $3, $4) ON CONFLICT (org_id, run_id, artifact_id) DO NOTHING",
        {owner.org, run.run_id(), patch->artifact_id(), storage::Blob{patch->SerializeAsString()}});
    if (!stored.ok()) return stored.error();
    return {};
  });
}

Result<v1::AnalyseRun> RunStore::Get(const RunOwner& owner, const std::string& run_id) {
  EXPANSE_TRY(const auto rows,
              database_.Query("SELECT status, error, run FROM analyse_run WHERE org_id = $1 AND "
                              "run_id = $2 AND user_id = $3",
                              {owner.org, ToUtf8(run_id), owner.user}));
  if (rows.size() != 1) return NoSuchRun();
  return Parse(rows[0]);
}

Result<v1::ArtifactContent> RunStore::GetArtifact(const RunOwner& owner, const std::string& run_id,
                                                  const std::string& artifact_id) {
  EXPANSE_TRY(
      const auto rows,
      database_.Query("SELECT a.content FROM analyse_artifact a JOIN analyse_run r ON r.org_id = "
                      "a.org_id AND r.run_id = a.run_id WHERE a.org_id = $1 AND a.run_id = $2 AND "
                      "a.artifact_id = $3 AND r.user_id = $4",
                      {owner.org, ToUtf8(run_id), ToUtf8(artifact_id), owner.user}));
  if (rows.size() != 1) {
    return Error(Code::kNotFound, "there is no such artefact of an analyse run");
  }
  v1::ArtifactContent content;
  if (!content.ParseFromString(rows[0].Bytes(0))) {
    return Error(Code::kDataLoss, "a stored artefact cannot be read");
  }
  return content;
}

Result<std::optional<v1::AnalyseRun>> RunStore::FindAnswer(const RunOwner& owner,
                                                           const std::string& content_key) {
  EXPANSE_TRY(const auto rows,
              database_.Query("SELECT status, error, run FROM analyse_run WHERE org_id = $1 AND "
                              "user_id = $2 AND content_key = $3 AND status = $4 "
                              "ORDER BY created_ms DESC LIMIT 1",
                              {owner.org, owner.user, content_key,
                               static_cast<int64_t>(v1::RUN_STATUS_SUCCEEDED)}));
  if (rows.empty()) return std::optional<v1::AnalyseRun>();
  EXPANSE_TRY(auto run, Parse(rows[0]));
  return std::optional<v1::AnalyseRun>(std::move(run));
}

Status RunStore::FailOpenRuns(const std::string& reason) {
  const auto changed =
      database_.Execute("UPDATE analyse_run SET status = $1, error = $2 WHERE status IN (1, 2)",
                        {static_cast<int64_t>(v1::RUN_STATUS_FAILED), reason});
  if (!changed.ok()) return changed.error();
  return {};
}

}  // namespace expanse::intelligence::analyse
