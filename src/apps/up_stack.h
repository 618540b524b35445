// SPDX-License-Identifier: Apache-2.0
// `expanse up`: every plane in one process, each behind its own port, talking over loopback HTTP
// exactly as when apart.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/plane_program.h"
#include "base/result.h"
#include "base/secret.h"
#include "control_plane/control_plane.h"
#include "data_plane/data_plane.h"
#include "intelligence/intelligence.h"
#include "platform/clock/clock.h"
#include "platform/fs/file_lock.h"
#include "platform/random/random.h"

namespace expanse::apps {

struct UpOptions {
  std::string data_dir;  // absolute
  std::string address = "127.0.0.1";
  std::string public_host;    // in the URLs that others are told; "": the address
  uint16_t base_port = 7701;  // 0: free ports
  std::string organisation = "local";
  std::string owner_email = "owner@localhost";
  std::string console_url;
  std::string record_received_by_control;
  std::string ready_file;  // one left by a start that was killed is removed
  /// PEM, for every port; empty: plain HTTP. The planes call each other by the public host and
  /// trust exactly this certificate.
  std::string tls_certificate_file;
  std::string tls_key_file;
  Millis stop_timeout{10'000};  // of all planes together
};

class UpStack {
 public:
  /// Opens and serves everything; the first start makes organisation, owner and keys. A lost or
  /// dead key file is replaced by a new key: who can write the data directory owns it anyway.
  /// kFailedPrecondition when another process serves this data directory.
  static Result<std::unique_ptr<UpStack>> Start(UpOptions options);
  /// Stops in the reverse order: no plane loses one that it asks while it still answers.
  ~UpStack();
  UpStack(const UpStack&) = delete;
  UpStack& operator=(const UpStack&) = delete;

  /// The URLs that the planes answer on here.
  struct Urls {
    std::string control_plane;
    std::string data_plane;
    std::string intelligence;
  };
  const Urls& urls() const { return urls_; }
  std::string owner_key_file() const;

  /// For certificates that are renewed.
  std::vector<PlaneServer*> servers() const;

  /// Asks every /readyz; the first that does not answer 200 is the error.
  Status CheckHealth() const;

 private:
  explicit UpStack(UpOptions options);
  Status Open();
  Result<std::unique_ptr<PlaneServer>> Listen(const std::string& plane, uint16_t offset);
  Status OpenControlPlane();
  Status OpenDataPlane(Secret plane_credential);
  Status OpenIntelligence();
  /// The plane credential.
  Result<Secret> EnsureKeys();
  std::string PublicUrl(const PlaneServer& server) const;
  /// By which the planes of this process reach each other.
  std::string LocalUrl(const PlaneServer& server) const;
  std::string UrlOf(const std::string& host, uint16_t port) const;
  std::string LocalAddress() const;
  platform::HttpClientOptions LocalClient() const;
  std::string plane_key_file() const;

  const UpOptions options_;
  platform::SystemClock clock_;
  platform::SystemRandom random_;
  std::unique_ptr<platform::FileLock> lock_;
  Urls urls_;
  // The control plane is also asked directly: it makes the first keys.
  control_plane::ControlPlane* bootstrap_ = nullptr;
  std::unique_ptr<ServedPlane> control_plane_;
  std::unique_ptr<ServedPlane> data_plane_;
  std::unique_ptr<ServedPlane> intelligence_;
  std::unique_ptr<PlaneServer> control_server_;
  std::unique_ptr<PlaneServer> data_server_;
  std::unique_ptr<PlaneServer> intelligence_server_;
};

}  // namespace expanse::apps
