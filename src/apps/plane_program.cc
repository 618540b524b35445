// SPDX-License-Identifier: Apache-2.0
#include "apps/plane_program.h"

#include "base/log.h"
#include "platform/service/service.h"

namespace expanse::apps {

void Connect(PlaneServer& server, ServedPlane& plane) {
  auto router = std::make_unique<rpc::Router>(plane.authenticator());
  plane.Register(*router);
  server.Serve(std::move(router), [&plane] { return plane.CheckReady(); });
}

Status ServePlane(const platform::Config& config, const std::string& plane, const OpenPlane& open,
                  const std::function<void(PlaneServerOptions*)>& adjust) {
  platform::StopSignal stop;
  EXPANSE_CHECK_OK(ConfigureLog(config));
  EXPANSE_TRY(PlaneServerOptions options, ServerOptionsFrom(config, plane));
  if (adjust) adjust(&options);
  platform::SystemClock clock;
  platform::SystemRandom random;
  std::unique_ptr<ServedPlane> opened;  // outlives the server, which calls it
  EXPANSE_TRY(auto server, PlaneServer::Start(std::move(options)));
  EXPANSE_TRY(opened, open(*server, clock, random));
  Connect(*server, *opened);
  ServeUntilStopped(stop, plane, {server.get()});
  const platform::StopDeadline limit = LimitStop(config);
  server.reset();
  opened.reset();
  log::Info("server.stopped", {{"program", plane}});
  return {};
}

platform::HttpClientOptions ClientOptionsFrom(const platform::Config& config) {
  platform::HttpClientOptions options;
  options.ca_file = config.GetString("ca-file");
  return options;
}

}  // namespace expanse::apps
