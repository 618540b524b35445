// SPDX-License-Identifier: Apache-2.0
// AnalyseService: reads runs and cluster facts from the data plane with the caller's token, asks
// the analyser, keeps run and patch. A queued run is answered by one background thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "expanse/data/v1/data.rpc.h"
#include "expanse/intelligence/v1/intelligence.rpc.h"
#include "intelligence/analyse/analyser.h"
#include "intelligence/analyse/run_store.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"
#include "rpc/channel.h"

namespace expanse::intelligence::analyse {

class AnalyseApi final : public v1::AnalyseService {
 public:
  /// Every argument outlives this. Runs left open by an earlier process become failed.
  AnalyseApi(storage::Database& database, rpc::Channel& data_plane, const platform::Clock& clock,
             platform::Random& random);
  /// Ends the run that is being answered; queued ones stay open and fail at the next start.
  ~AnalyseApi() override;
  AnalyseApi(const AnalyseApi&) = delete;
  AnalyseApi& operator=(const AnalyseApi&) = delete;

  /// kInvalidArgument, kUnimplemented: see ReadSubmission. kResourceExhausted: the queue is full.
  /// Errors of the data plane keep their code.
  Result<v1::AnalyseRun> Analyse(const rpc::CallContext& context,
                                 const v1::AnalyseRequest& request) override;
  Result<v1::AnalyseRun> GetAnalyseRun(const rpc::CallContext& context,
                                       const v1::GetAnalyseRunRequest& request) override;
  Result<v1::ArtifactContent> GetArtifact(const rpc::CallContext& context,
                                          const v1::GetArtifactRequest& request) override;

  static constexpr size_t kMostQueued = 256;
  static constexpr int64_t kMostBundleBytes = int64_t{16} << 20;
  static constexpr int kMostBundleFiles = 2000;

 private:
  struct Job {
    RunOwner owner;
    std::string bearer;  // the caller's; in memory only
    std::string run_id;
    v1::AnalyseRequest request;
  };
  Result<AnalyseInputs> Collect(const Job& job, Deadline deadline) const;
  Result<v1::AnalyseRun> Answer(const Job& job, Deadline deadline);
  Result<v1::AnalyseRun> Enqueue(Job job);
  void Work();
  void AnswerQueued(const Job& job);

  RunStore store_;
  data::v1::ExecutionServiceClient executions_;
  const platform::Clock& clock_;
  platform::Random& random_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> queue_;  // guarded by mutex_
  bool stop_ = false;      // guarded by mutex_
  std::thread worker_;     // last: it uses everything above
};

/// SHA-256 over everything the answer depends on: the submission, the request, the runs and facts
/// that were read, and the model version.
std::string ContentKey(const AnalyseInputs& inputs);

}  // namespace expanse::intelligence::analyse
