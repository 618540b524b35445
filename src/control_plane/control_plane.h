// SPDX-License-Identifier: Apache-2.0
// The control plane: identity, registration, discovery, audit. It is the authority that the other
// planes ask, and by its contract and its schema it cannot hold workload data.
#pragma once

#include <memory>

#include "base/result.h"
#include "control_plane/bootstrap.h"
#include "control_plane/options.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"
#include "rpc/router.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

class ControlPlane {
 public:
  /// Opens or makes the database and the keys below options.data_dir. clock and random outlive it.
  static Result<std::unique_ptr<ControlPlane>> Open(Options options, platform::Clock& clock,
                                                    platform::Random& random);
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  /// Adds every rpc of expanse.control.v1; this outlives the router.
  void Register(rpc::Router& router);
  rpc::Authenticator& authenticator();
  /// Whether requests can be answered: the database answers.
  Status CheckReady();
  const Bootstrap& bootstrap() const;
  storage::Database& database();

 private:
  struct Parts;
  explicit ControlPlane(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace expanse::control_plane
