// SPDX-License-Identifier: Apache-2.0
// The intelligence plane: analyse and diagnose, on evidence that it reads from the data plane with
// the caller's own token. It stores its answers, no workload data of its own.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "platform/clock/clock.h"
#include "platform/net/http_client.h"
#include "platform/random/random.h"
#include "rpc/router.h"

namespace expanse::intelligence {

struct Options {
  /// Holds intelligence.db and the cached key set; made when absent.
  std::string data_dir;
  std::string data_plane_url;
  std::string control_plane_url;     // for the key set that signs session tokens
  platform::HttpClientOptions http;  // for calls to both
};

class Intelligence {
 public:
  /// clock and random outlive it. Does not call the other planes: they may start later.
  static Result<std::unique_ptr<Intelligence>> Open(Options options, platform::Clock& clock,
                                                    platform::Random& random);
  ~Intelligence();
  Intelligence(const Intelligence&) = delete;
  Intelligence& operator=(const Intelligence&) = delete;

  /// Adds every rpc of expanse.intelligence.v1; this outlives the router.
  void Register(rpc::Router& router);
  /// Session tokens only.
  rpc::Authenticator& authenticator();
  /// Whether requests can be answered: the database answers.
  Status CheckReady();

 private:
  struct Parts;
  explicit Intelligence(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace expanse::intelligence
