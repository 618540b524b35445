// SPDX-License-Identifier: Apache-2.0
// DiagnoseService: collects, asks the engine, keeps the answer under the content it was made from.
#pragma once

#include <string>

#include "expanse/intelligence/v1/intelligence.rpc.h"
#include "intelligence/diagnose/collector.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"
#include "storage/relational/database.h"

namespace expanse::intelligence::diagnose {

class DiagnoseApi final : public v1::DiagnoseService {
 public:
  /// Every argument outlives this.
  DiagnoseApi(storage::Database& database, rpc::Channel& data_plane, const platform::Clock& clock,
              platform::Random& random)
      : database_(database), collector_(data_plane), clock_(clock), random_(random) {}

  /// kInvalidArgument: no UUID, or sources above kMaxAddedBytes. Otherwise the data plane's error
  /// for the execution itself; parts that are missing degrade their stage.
  Result<v1::DiagnoseRun> Diagnose(const rpc::CallContext& context,
                                   const v1::DiagnoseRequest& request) override;
  /// kNotFound also when the caller may not read the execution behind the run.
  Result<v1::DiagnoseRun> GetDiagnoseRun(const rpc::CallContext& context,
                                         const v1::GetDiagnoseRunRequest& request) override;

  static constexpr int64_t kMaxAddedBytes = int64_t{10} << 20;

 private:
  storage::Database& database_;
  Collector collector_;
  const platform::Clock& clock_;
  platform::Random& random_;
};

/// SHA-256 over everything the engine looks at, and the engine's version.
std::string ContentKey(const CaseInputs& inputs);

}  // namespace expanse::intelligence::diagnose
