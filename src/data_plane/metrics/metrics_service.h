// SPDX-License-Identifier: Apache-2.0
// Series of executions: by interval, aggregation and window within the life of the run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "data_plane/metrics/series_owners.h"
#include "expanse/data/v1/data.rpc.h"
#include "platform/clock/clock.h"
#include "storage/relational/database.h"
#include "storage/series/series_store.h"

namespace expanse::data_plane {

class MetricsService final : public data::v1::MetricsService {
 public:
  /// Everything outlives the service.
  MetricsService(storage::Database& database, storage::SeriesStore& series,
                 const platform::Clock& clock)
      : database_(database), series_(series), clock_(clock) {}

  Result<data::v1::QueryMetricsResponse> QueryMetrics(
      const rpc::CallContext& context, const data::v1::QueryMetricsRequest& request) override;
  Result<data::v1::ListMetricsResponse> ListMetrics(
      const rpc::CallContext& context, const data::v1::ListMetricsRequest& request) override;

 private:
  storage::Database& database_;
  storage::SeriesStore& series_;
  const platform::Clock& clock_;
};

}  // namespace expanse::data_plane
