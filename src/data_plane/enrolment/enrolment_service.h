// SPDX-License-Identifier: Apache-2.0
// Install tokens, heartbeats and the end of a compute, with the control plane behind.
#pragma once

#include <utility>

#include "base/result.h"
#include "data_plane/enrolment/compute_credentials.h"
#include "data_plane/enrolment/control_authority.h"
#include "expanse/data/v1/data.rpc.h"
#include "platform/clock/clock.h"
#include "storage/relational/database.h"

namespace expanse::data_plane {

class EnrolmentService final : public data::v1::EnrolmentService {
 public:
  /// Everything outlives the service. endpoints: fills what the control plane leaves empty.
  EnrolmentService(storage::Database& database, ControlAuthority& authority,
                   ComputeCredentials& credentials, const platform::Clock& clock,
                   control::v1::PlaneEndpoints endpoints)
      : database_(database),
        authority_(authority),
        credentials_(credentials),
        clock_(clock),
        endpoints_(std::move(endpoints)) {}

  Result<data::v1::ExchangeInstallTokenResponse> ExchangeInstallToken(
      const rpc::CallContext& context,
      const data::v1::ExchangeInstallTokenRequest& request) override;
  Result<data::v1::HeartbeatResponse> Heartbeat(const rpc::CallContext& context,
                                                const data::v1::HeartbeatRequest& request) override;
  Result<data::v1::DeprovisionResponse> Deprovision(
      const rpc::CallContext& context, const data::v1::DeprovisionRequest& request) override;

  /// Brings the control plane the heartbeats that it missed; called now and then.
  Status ForwardPending();

 private:
  Status Forward(const OrgId& org, const control::v1::RecordHeartbeatRequest& heartbeat);

  storage::Database& database_;
  ControlAuthority& authority_;
  ComputeCredentials& credentials_;
  const platform::Clock& clock_;
  control::v1::PlaneEndpoints endpoints_;
};

}  // namespace expanse::data_plane
