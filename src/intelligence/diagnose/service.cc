// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/service.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/ids.h"
#include "base/log.h"
#include "intelligence/diagnose/diagnose.h"
#include "platform/crypto/crypto.h"

namespace expanse::intelligence::diagnose {
namespace {

// Maps have no order of their own: only the deterministic form is a key.
std::string Bytes(const google::protobuf::Message& message) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return out;
}

class Hasher {
 public:
  // Length first, so that neighbouring parts cannot be taken for one another.
  void Add(std::string_view part) {
    hash_.Update(std::to_string(part.size()) + ":");
    hash_.Update(part);
  }
  std::string Finish() { return hash_.FinishHex(); }

 private:
  platform::Sha256Stream hash_;
};

Result<v1::DiagnoseRun> ParseRun(const std::string& bytes) {
  v1::DiagnoseRun run;
  if (!run.ParseFromString(bytes))
    return Error(Code::kDataLoss, "a stored diagnosis cannot be read");
  return run;
}

}  // namespace

std::string ContentKey(const CaseInputs& in) {
  Hasher hash;
  hash.Add(kEngineVersion);
  hash.Add(Bytes(in.execution));
  hash.Add(in.compute_name);
  for (const auto& text : in.texts) {
    hash.Add(text.name);
    hash.Add(text.path);
    hash.Add(std::to_string(text.offset));
    hash.Add(text.content);
  }
  for (const auto& o : in.observations) hash.Add(o.source + "\n" + o.key + "\n" + o.value);
  if (in.bundle) hash.Add(Bytes(*in.bundle));
  for (const auto& file : in.added_sources) hash.Add(Bytes(file));
  for (const auto& recorded : in.similar) hash.Add(Bytes(recorded));
  for (const auto& series : in.series) hash.Add(Bytes(series));
  for (const auto& node : in.nodes) hash.Add(Bytes(node));
  for (const auto& [input, reason] : in.not_seeable) hash.Add(input + "\n" + reason);
  return hash.Finish();
}

Result<v1::DiagnoseRun> DiagnoseApi::Diagnose(const rpc::CallContext& context,
                                              const v1::DiagnoseRequest& request) {
  if (!IsUuid(request.execution_id()))
    return Error(Code::kInvalidArgument, "execution_id must be an execution's UUID");
  int64_t added = 0;
  for (const auto& file : request.sources()) added += static_cast<int64_t>(file.content().size());
  if (added > kMaxAddedBytes)
    return Error(Code::kInvalidArgument, "the added sources exceed 10 MiB in all");

  EXPANSE_TRY(auto inputs,
              collector_.Collect(context.caller.bearer, request.execution_id(), context.deadline));
  inputs.added_sources.assign(request.sources().begin(), request.sources().end());
  const std::string key = ContentKey(inputs);
  const std::string org = context.caller.org.str();
  if (!request.no_cache()) {
    // What the caller read hashes to this key, so an answer found under it tells nothing new.
    auto rows = database_.Query(
        "SELECT run FROM diagnose_run WHERE org_id = $1 AND content_key = $2 "
        "ORDER BY created_ms DESC LIMIT 1",
        {org, key});
    if (rows.ok() && rows->size() == 1) {
      auto cached = ParseRun((*rows)[0].Bytes("run"));
      if (cached.ok()) {
        cached->set_cached(true);
        return cached;
      }
    }
  }

  v1::DiagnoseRun run;
  run.set_run_id(platform::NewUuid(clock_, random_));
  run.set_status(v1::RUN_STATUS_SUCCEEDED);
  *run.mutable_result() = diagnose::Diagnose(inputs);
  auto stored = database_.Execute(
      "INSERT INTO diagnose_run (org_id, run_id, execution_id, content_key, created_ms, run) "
      "VALUES ($1, $2, $3, $4, $5, $6)",
      {org, run.run_id(), request.execution_id(), key, ToUnixMillis(clock_.Now()),
       storage::Blob{run.SerializeAsString()}});
  if (!stored.ok())  // the answer is right all the same; only its later retrieval is lost
    log::Warning("diagnose.run_not_stored", {{"reason", stored.error().message()}});
  return run;
}

Result<v1::DiagnoseRun> DiagnoseApi::GetDiagnoseRun(const rpc::CallContext& context,
                                                    const v1::GetDiagnoseRunRequest& request) {
  const Error not_found(Code::kNotFound, "there is no such diagnose run");
  EXPANSE_TRY(auto rows, database_.Query("SELECT execution_id, run FROM diagnose_run "
                                         "WHERE org_id = $1 AND run_id = $2",
                                         {context.caller.org.str(), request.run_id()}));
  if (rows.size() != 1) return not_found;
  // The run holds log lines: whoever may not read the execution must not read them here.
  const auto readable = collector_.CheckReadable(context.caller.bearer,
                                                 rows[0].Text("execution_id"), context.deadline);
  if (!readable.ok()) {
    const Code code = readable.error().code();
    if (code == Code::kNotFound || code == Code::kPermissionDenied) return not_found;
    return readable.error();
  }
  return ParseRun(rows[0].Bytes("run"));
}

}  // namespace expanse::intelligence::diagnose
