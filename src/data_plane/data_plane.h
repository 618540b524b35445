// SPDX-License-Identifier: Apache-2.0
// The data plane: intake from collectors, executions, series, bundles and logs of organisations,
// on the customer's machines. Everything it keeps lies below one directory: data.db, blobs/,
// series/. The control plane is the authority on identity and may be away.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "base/time.h"
#include "platform/clock/clock.h"
#include "platform/metrics/metrics.h"
#include "platform/net/http_client.h"
#include "platform/random/random.h"
#include "rpc/router.h"

namespace expanse::data_plane {

class DataPlane {
 public:
  /// Where each plane answers, as callers see it; "" for one that is not there.
  struct Endpoints {
    std::string control_plane_url;
    std::string data_plane_url;
    std::string intelligence_url;
    std::string console_url;
  };
  struct Options {
    std::string data_dir;           // made when absent
    std::string control_plane_url;  // where this plane reaches the control plane
    Secret plane_credential;        // exp_plane_…
    Endpoints endpoints;            // told to computes where the control plane leaves one empty
    Millis series_retention{Millis(86'400'000) * 30};  // raw samples; 0: kept for good
    /// How often missed heartbeats are forwarded and old samples dropped; 0: never (tests).
    Millis housekeeping_period{15'000};
    /// Withdrawn signing keys are forgotten after this; 0: never fetched in the background.
    Millis key_refresh_period{300'000};
    platform::HttpClientOptions http;  // for calls to the control plane
    /// Intake is counted here while requests are answered; null: nowhere.
    platform::MetricsRegistry* metrics = nullptr;
  };

  /// clock and random outlive the plane.
  static Result<std::unique_ptr<DataPlane>> Open(Options options, platform::Clock& clock,
                                                 platform::Random& random);
  ~DataPlane();
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;

  /// Adds every rpc of expanse.data.v1; this outlives the router.
  void Register(rpc::Router& router);
  rpc::Authenticator& authenticator();
  /// Whether requests can be answered: the database answers.
  Status CheckReady();
  /// One round of what housekeeping_period repeats.
  Status Housekeep();

 private:
  struct Parts;
  explicit DataPlane(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace expanse::data_plane
