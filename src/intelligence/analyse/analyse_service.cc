// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/analyse_service.h"

#include <utility>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/log.h"
#include "base/strings.h"
#include "intelligence/analyse/submission_view.h"
#include "platform/crypto/crypto.h"

namespace expanse::intelligence::analyse {
namespace {

constexpr int kMostRuns = 500;
constexpr Millis kQueuedTimeout{120'000};

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

/// What of the cluster an answer can depend on; states and health change all the time.
data::v1::ComputeFacts Lasting(const data::v1::ComputeFacts& facts) {
  data::v1::ComputeFacts out = facts;
  out.clear_health();
  for (auto& node : *out.mutable_nodes()) {
    node.clear_state();
    node.clear_reason();
  }
  for (auto& partition : *out.mutable_partitions()) partition.clear_state();
  return out;
}

Status CheckRequest(const v1::AnalyseRequest& request) {
  if (!IsUuid(request.compute_id())) {
    return Error(Code::kInvalidArgument, "compute_id must be a compute's UUID");
  }
  if (request.bundle().files_size() > AnalyseApi::kMostBundleFiles) {
    return Error(Code::kInvalidArgument, "the bundle has too many files");
  }
  int64_t bytes = 0;
  for (const auto& file : request.bundle().files())
    bytes += static_cast<int64_t>(file.content().size());
  if (bytes > AnalyseApi::kMostBundleBytes) {
    return Error(Code::kInvalidArgument, "the bundle's contents exceed 16 MiB");
  }
  if (request.cpu_cores() < 0 || request.memory_bytes() < 0 || request.gpu_count() < 0 ||
      request.walltime_seconds() < 0) {
    return Error(Code::kInvalidArgument, "a requested resource is negative");
  }
  return {};
}

RunOwner OwnerOf(const rpc::CallContext& context) {
  return {context.caller.org, context.caller.user};
}

}  // namespace

std::string ContentKey(const AnalyseInputs& inputs) {
  v1::AnalyseRequest request = inputs.request;
  request.clear_no_cache();
  request.clear_queue();
  for (auto& file : *request.mutable_bundle()->mutable_files()) file.clear_content();  // by hash
  platform::Sha256Stream hash;
  // Length first, so that neighbouring parts cannot be taken for one another.
  const auto add = [&hash](std::string_view part) {
    hash.Update(fmt::format("{}:", part.size()));
    hash.Update(part);
  };
  add(kModelVersion);
  add(Bytes(request));
  add(inputs.facts ? Bytes(Lasting(*inputs.facts)) : inputs.facts_unknown_reason);
  for (const auto& run : inputs.runs) add(Bytes(run));
  return hash.FinishHex();
}

AnalyseApi::AnalyseApi(storage::Database& database, rpc::Channel& data_plane,
                       const platform::Clock& clock, platform::Random& random)
    : store_(database), executions_(data_plane), clock_(clock), random_(random) {
  const auto failed =
      store_.FailOpenRuns("the intelligence plane was restarted before the run was answered");
  if (!failed.ok()) {
    log::Warning("analyse.open_runs_not_closed", {{"reason", failed.error().message()}});
  }
  worker_ = std::thread([this] { Work(); });
}

AnalyseApi::~AnalyseApi() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  worker_.join();
}

Result<v1::AnalyseRun> AnalyseApi::Analyse(const rpc::CallContext& context,
                                           const v1::AnalyseRequest& request) {
  EXPANSE_CHECK_OK(CheckRequest(request));
  Job job{OwnerOf(context), context.caller.bearer, platform::NewUuid(clock_, random_), request};
  if (request.queue()) return Enqueue(std::move(job));
  return Answer(job, context.deadline);
}

Result<v1::AnalyseRun> AnalyseApi::Enqueue(Job job) {
  // What can never be answered is refused now, not an hour later.
  EXPANSE_TRY(const auto view, ReadSubmission(job.request, nullptr));
  v1::AnalyseRun run;
  run.set_run_id(job.run_id);
  run.set_status(v1::RUN_STATUS_QUEUED);
  run.set_target(ToUtf8(job.request.target()));
  run.set_job_name(view.job_name);
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= kMostQueued) {
      return Error(Code::kResourceExhausted,
                   fmt::format("{} analyses are queued already; try again later", kMostQueued));
    }
  }
  // Stored before it can be taken from the queue, so that its answer is the later write.
  EXPANSE_CHECK_OK(store_.Put(job.owner, run, "", std::nullopt, clock_.Now()));
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
  return run;
}

Result<AnalyseInputs> AnalyseApi::Collect(const Job& job, Deadline deadline) const {
  AnalyseInputs inputs;
  inputs.request = job.request;
  // Unreadable submissions fail before anything is asked for.
  EXPANSE_TRY(const auto view, ReadSubmission(job.request, nullptr));
  data::v1::ListRunsOfSourceRequest runs;
  runs.set_compute_id(job.request.compute_id());
  runs.set_limit(kMostRuns);
  if (view.is_batch_script) {
    const auto& bundle = job.request.bundle();
    runs.set_script_hash(bundle.script_hash());
    runs.set_tree_hash(bundle.tree_hash());
    runs.set_args_hash(bundle.args_hash());
    runs.set_job_name(view.job_name);
    runs.set_user(job.request.user());
    EXPANSE_TRY(auto found, executions_.ListRunsOfSource(job.bearer, runs, deadline));
    inputs.runs.assign(found.runs().begin(), found.runs().end());
  }
  data::v1::GetComputeFactsRequest compute;
  compute.set_compute_id(job.request.compute_id());
  auto facts = executions_.GetComputeFacts(job.bearer, compute, deadline);
  if (facts.ok() && facts->has_facts()) {
    inputs.facts = facts->facts();
  } else {
    inputs.facts_unknown_reason =
        facts.ok() ? "its collector has not reported them yet" : facts.error().message();
  }
  return inputs;
}

Result<v1::AnalyseRun> AnalyseApi::Answer(const Job& job, Deadline deadline) {
  EXPANSE_TRY(auto inputs, Collect(job, deadline));
  const std::string key = ContentKey(inputs);
  // A queued run has its own id to be answered under.
  if (!job.request.no_cache() && !job.request.queue()) {
    auto known = store_.FindAnswer(job.owner, key);
    if (known.ok() && known->has_value()) {
      (*known)->set_cached(true);
      return **std::move(known);
    }
  }
  inputs.artifact_id = platform::NewUuid(clock_, random_);
  EXPANSE_TRY(auto answer, analyse::Analyse(inputs));
  v1::AnalyseRun run;
  run.set_run_id(job.run_id);
  run.set_status(v1::RUN_STATUS_SUCCEEDED);
  *run.mutable_result() = std::move(answer.result);
  run.set_target(ToUtf8(job.request.target()));
  run.set_job_name(answer.job_name);
  EXPANSE_CHECK_OK(store_.Put(job.owner, run, key, answer.patch, clock_.Now()));
  return run;
}

void AnalyseApi::Work() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    AnswerQueued(job);
  }
}

void AnalyseApi::AnswerQueued(const Job& job) {
  v1::AnalyseRun run;
  run.set_run_id(job.run_id);
  run.set_target(ToUtf8(job.request.target()));
  run.set_status(v1::RUN_STATUS_RUNNING);
  auto stored = store_.Put(job.owner, run, "", std::nullopt, clock_.Now());
  if (stored.ok()) {
    const auto answer = Answer(job, Deadline::In(kQueuedTimeout));
    if (answer.ok()) return;
    run.set_status(v1::RUN_STATUS_FAILED);
    run.set_error(answer.error().message());
    stored = store_.Put(job.owner, run, "", std::nullopt, clock_.Now());
  }
  if (!stored.ok()) {
    log::Error("analyse.run_not_stored",
               {{"run", job.run_id}, {"reason", stored.error().message()}});
  }
}

Result<v1::AnalyseRun> AnalyseApi::GetAnalyseRun(const rpc::CallContext& context,
                                                 const v1::GetAnalyseRunRequest& request) {
  return store_.Get(OwnerOf(context), request.run_id());
}

Result<v1::ArtifactContent> AnalyseApi::GetArtifact(const rpc::CallContext& context,
                                                    const v1::GetArtifactRequest& request) {
  return store_.GetArtifact(OwnerOf(context), request.run_id(), request.artifact_id());
}

}  // namespace expanse::intelligence::analyse
