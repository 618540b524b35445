// SPDX-License-Identifier: Apache-2.0
// What the programs of the three planes have in common: settings, start, service and end.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/plane_server.h"
#include "apps/settings.h"
#include "base/result.h"
#include "platform/clock/clock.h"
#include "platform/config/config.h"
#include "platform/net/http_client.h"
#include "platform/random/random.h"
#include "rpc/router.h"

namespace expanse::apps {

/// A plane, whichever it is.
class ServedPlane {
 public:
  virtual ~ServedPlane() = default;
  virtual rpc::Authenticator& authenticator() = 0;
  virtual void Register(rpc::Router& router) = 0;
  virtual Status CheckReady() = 0;
};

template <typename Plane>
class Served final : public ServedPlane {
 public:
  explicit Served(std::unique_ptr<Plane> plane) : plane_(std::move(plane)) {}
  rpc::Authenticator& authenticator() override { return plane_->authenticator(); }
  void Register(rpc::Router& router) override { plane_->Register(router); }
  Status CheckReady() override { return plane_->CheckReady(); }

 private:
  std::unique_ptr<Plane> plane_;
};

/// Result<std::unique_ptr<Plane>> as OpenPlane returns it.
template <typename Plane>
Result<std::unique_ptr<ServedPlane>> AsServed(Result<std::unique_ptr<Plane>> opened) {
  if (!opened.ok()) return opened.error();
  return std::unique_ptr<ServedPlane>(new Served<Plane>(std::move(opened).value()));
}

/// Opens a plane behind a server that listens already. clock and random outlive it.
using OpenPlane = std::function<Result<std::unique_ptr<ServedPlane>>(
    PlaneServer& server, platform::Clock& clock, platform::Random& random)>;

/// Listens, opens, serves until SIGTERM and stops. The settings are kLogLevel, kLogFormat,
/// kStopTimeout and those of ServerOptionsFrom.
/// adjust: the last word on the server's options; may be null.
Status ServePlane(const platform::Config& config, const std::string& plane, const OpenPlane& open,
                  const std::function<void(PlaneServerOptions*)>& adjust = nullptr);

/// A plane's endpoints on its server.
void Connect(PlaneServer& server, ServedPlane& plane);

/// Who calls whom, for every plane that calls another.
platform::HttpClientOptions ClientOptionsFrom(const platform::Config& config);

}  // namespace expanse::apps
