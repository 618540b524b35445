// SPDX-License-Identifier: Apache-2.0
// The control plane as the authority behind this plane.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "base/time.h"
#include "expanse/control/v1/control.rpc.h"
#include "platform/clock/clock.h"
#include "platform/net/http_client.h"
#include "rpc/channel.h"

namespace expanse::data_plane {

/// Calls with the plane credential. After a call that did not get through, background questions
/// (Verify) are not asked for a while: intake must not wait for an absent plane again and again.
class ControlAuthority {
 public:
  /// clock outlives this.
  ControlAuthority(std::string url, Secret plane_credential, const platform::Clock& clock,
                   platform::HttpClientOptions http = {});

  Result<control::v1::ExchangeInstallTokenResponse> Exchange(
      const control::v1::ExchangeInstallTokenRequest& request, Deadline deadline);
  /// kUnavailable at once while the plane is known to be away.
  Result<control::v1::VerifyComputeCredentialResponse> Verify(const std::string& credential);
  Status RecordHeartbeat(const control::v1::RecordHeartbeatRequest& request);
  Status Deprovision(const std::string& compute_id, Deadline deadline);
  rpc::Channel& channel() { return channel_; }

 private:
  template <typename T>
  Result<T> Note(Result<T> result);
  bool IsAway();

  const platform::Clock& clock_;
  std::unique_ptr<platform::HttpClient> http_;
  std::unique_ptr<platform::HttpClient> own_answers_;  // on http_
  rpc::HttpChannel channel_;
  control::v1::PlaneServiceClient client_;
  Secret credential_;
  std::mutex mutex_;
  std::optional<MonoTime> away_since_;
};

/// False only for what the control plane itself answers to a question: not known, refused, a
/// request that it does not take. True for errors that say nothing about it: no connection, no
/// answer in time, a plane that is starting or broken, a proxy's page (ControlAuthority reports
/// those as kUnavailable).
bool IsAbsence(const Error& error);

}  // namespace expanse::data_plane
