// SPDX-License-Identifier: Apache-2.0
// The signed-in caller: turns the stored key into short-lived tokens and gives channels to the
// planes that carry them. A token is minted when less than a minute of it is left, and once when a
// plane rejects it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "cli/context.h"
#include "cli/credentials.h"
#include "expanse/control/v1/control.pb.h"
#include "rpc/channel.h"

namespace expanse::cli {

/// What `expanse up` listens on by default.
inline constexpr std::string_view kDefaultControlPlane = "http://127.0.0.1:7701";

/// The store below $HOME; kFailedPrecondition without HOME.
Result<CredentialStore> OpenCredentialStore(const Context& context);

/// One MintSession. Errors name the URL and what to do.
Result<control::v1::MintSessionResponse> MintSession(Context& context, const std::string& url,
                                                     const Secret& api_key,
                                                     const std::string& organisation_id);

class Session {
 public:
  /// kUnauthenticated when nobody signed in. Mints when the cached token is old, unless the caller
  /// is about to Refresh anyway.
  static Result<std::unique_ptr<Session>> Open(Context& context, bool mint_when_old = true);

  ~Session();

  /// Channels ignore the bearer they are given and use the session's.
  rpc::Channel& control() { return *control_; }
  rpc::Channel& data() { return *data_; }
  rpc::Channel& intelligence() { return *intelligence_; }

  const std::string& control_plane_url() const { return control_plane_url_; }
  const control::v1::Identity& identity() const { return credentials_.session.identity(); }
  const control::v1::PlaneEndpoints& endpoints() const { return credentials_.session.endpoints(); }
  const control::v1::MintSessionResponse& minted() const { return credentials_.session; }

  /// Mints now, for this organisation when it is not empty, and stores the result.
  Status Refresh(const std::string& organisation_id);

 private:
  class PlaneChannel;
  enum class Plane { kControl, kData, kIntelligence };

  Session(Context& context, CredentialStore store, Credentials credentials,
          std::string control_plane_url);
  bool IsFresh() const;
  /// Takes the lock and mints, unless another process did meanwhile. rejected: a token that a
  /// plane refused, which does not count as fresh.
  Status Mint(const std::string& rejected);
  Result<std::string> UrlOf(Plane plane) const;

  Context& context_;
  CredentialStore store_;
  Credentials credentials_;
  std::string control_plane_url_;
  std::unique_ptr<rpc::Channel> control_;
  std::unique_ptr<rpc::Channel> data_;
  std::unique_ptr<rpc::Channel> intelligence_;
};

}  // namespace expanse::cli
