// SPDX-License-Identifier: Apache-2.0
// Evidence of one execution from the data plane, with the caller's own token: nothing can be
// answered that the caller could not have read.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "expanse/data/v1/data.rpc.h"
#include "intelligence/diagnose/case_inputs.h"
#include "rpc/channel.h"

namespace expanse::intelligence::diagnose {

class Collector {
 public:
  /// channel: of the data plane; outlives the collector.
  explicit Collector(rpc::Channel& channel) : executions_(channel), metrics_(channel) {}

  /// Fails only when the execution itself cannot be read (the data plane's error). Any other part
  /// that is not answered is named in CaseInputs::not_seeable and the rest goes on.
  Result<CaseInputs> Collect(std::string_view bearer, const std::string& execution_id,
                             Deadline deadline) const;
  /// ok when the caller may read the execution.
  Status CheckReadable(std::string_view bearer, const std::string& execution_id,
                       Deadline deadline) const;

 private:
  void Logs(std::string_view bearer, CaseInputs* in, Deadline deadline) const;
  void Bundle(std::string_view bearer, CaseInputs* in, Deadline deadline) const;
  void Similar(std::string_view bearer, CaseInputs* in, Deadline deadline) const;
  void Metrics(std::string_view bearer, CaseInputs* in, Deadline deadline) const;
  void Compute(std::string_view bearer, CaseInputs* in, Deadline deadline) const;

  data::v1::ExecutionServiceClient executions_;
  data::v1::MetricsServiceClient metrics_;
};

}  // namespace expanse::intelligence::diagnose
