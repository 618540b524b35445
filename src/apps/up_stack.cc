// SPDX-License-Identifier: Apache-2.0
#include "apps/up_stack.h"

#include "apps/settings.h"
#include "base/log.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "storage/backup/backup.h"

namespace expanse::apps {
namespace {

constexpr Millis kHealthTimeout{5'000};

bool IsEveryAddress(const std::string& address) { return address == "0.0.0.0" || address == "::"; }

/// A key that the store does not take any more is as good as none.
template <typename IsLiving>
Result<bool> HasLivingKey(const std::string& path, IsLiving is_living) {
  if (!platform::Fs().Exists(path)) return false;
  EXPANSE_TRY(const Secret key, ReadKeyFile(path));
  return is_living(key);
}

}  // namespace

UpStack::UpStack(UpOptions options) : options_(std::move(options)) {}

UpStack::~UpStack() {
  const Deadline deadline = Deadline::In(options_.stop_timeout);
  const auto end = [&](std::unique_ptr<PlaneServer>* server, std::unique_ptr<ServedPlane>* plane) {
    if (*server) (*server)->Stop(deadline.Remaining());
    server->reset();
    plane->reset();
  };
  end(&intelligence_server_, &intelligence_);
  end(&data_server_, &data_plane_);
  end(&control_server_, &control_plane_);
}

std::string UpStack::owner_key_file() const {
  return platform::JoinPath(options_.data_dir, "owner.key");
}
std::string UpStack::plane_key_file() const {
  return platform::JoinPath(options_.data_dir, "plane.key");
}

Result<std::unique_ptr<UpStack>> UpStack::Start(UpOptions options) {
  std::unique_ptr<UpStack> stack(new UpStack(std::move(options)));
  EXPANSE_CHECK_OK(stack->Open());
  return stack;
}

Result<std::unique_ptr<PlaneServer>> UpStack::Listen(const std::string& plane, uint16_t offset) {
  PlaneServerOptions server;
  server.plane = plane;
  server.address = options_.address;
  server.port =
      options_.base_port == 0 ? uint16_t{0} : static_cast<uint16_t>(options_.base_port + offset);
  server.tls_certificate_file = options_.tls_certificate_file;
  server.tls_key_file = options_.tls_key_file;
  server.data_dir = options_.data_dir;
  if (plane == "control-plane") server.record_received_file = options_.record_received_by_control;
  return PlaneServer::Start(std::move(server));
}

std::string UpStack::UrlOf(const std::string& host, uint16_t port) const {
  const bool is_v6 = host.find(':') != std::string::npos;
  const std::string scheme = options_.tls_certificate_file.empty() ? "http://" : "https://";
  return scheme + (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string UpStack::LocalAddress() const {
  if (!IsEveryAddress(options_.address)) return options_.address;
  return options_.address == "::" ? "::1" : "127.0.0.1";
}

std::string UpStack::LocalUrl(const PlaneServer& server) const {
  // A certificate is made for the public name; LocalClient leads it to this machine.
  const bool by_name = !options_.tls_certificate_file.empty() && !options_.public_host.empty();
  return UrlOf(by_name ? options_.public_host : LocalAddress(), server.port());
}

platform::HttpClientOptions UpStack::LocalClient() const {
  if (options_.tls_certificate_file.empty()) return {};
  return {options_.tls_certificate_file, LocalAddress()};
}

std::string UpStack::PublicUrl(const PlaneServer& server) const {
  return options_.public_host.empty() ? LocalUrl(server)
                                      : UrlOf(options_.public_host, server.port());
}

Status UpStack::Open() {
  const platform::Fs fs;
  EXPANSE_CHECK_OK(fs.MakeDirs(options_.data_dir, 0700));
  EXPANSE_CHECK_OK(storage::RefuseHalfRestored(options_.data_dir));
  auto lock = platform::FileLock::Try(platform::JoinPath(options_.data_dir, "up.lock"));
  if (!lock.ok())
    return Error(lock.error().code(), lock.error().message() +
                                          "; is `expanse up` running on this data directory "
                                          "already?");
  lock_ = std::move(lock).value();
  if (!options_.ready_file.empty()) EXPANSE_CHECK_OK(fs.Remove(options_.ready_file));

  // The ports come first, since every plane is told where the others are.
  EXPANSE_TRY(control_server_, Listen("control-plane", 0));
  EXPANSE_TRY(data_server_, Listen("data-plane", 1));
  EXPANSE_TRY(intelligence_server_, Listen("intelligence", 2));
  urls_ = {PublicUrl(*control_server_), PublicUrl(*data_server_), PublicUrl(*intelligence_server_)};
  EXPANSE_CHECK_OK(OpenControlPlane());
  EXPANSE_TRY(Secret plane_credential, EnsureKeys());
  EXPANSE_CHECK_OK(OpenDataPlane(std::move(plane_credential)));
  return OpenIntelligence();
}

Status UpStack::OpenControlPlane() {
  control_plane::Options options;
  options.data_dir = platform::JoinPath(options_.data_dir, "control");
  options.endpoints = {urls_.control_plane, urls_.data_plane, urls_.intelligence,
                       options_.console_url};
  EXPANSE_TRY(auto plane, control_plane::ControlPlane::Open(std::move(options), clock_, random_));
  bootstrap_ = plane.get();
  control_plane_ = std::make_unique<Served<control_plane::ControlPlane>>(std::move(plane));
  Connect(*control_server_, *control_plane_);
  return {};
}

Status UpStack::OpenDataPlane(Secret plane_credential) {
  data_plane::DataPlane::Options options;
  options.data_dir = platform::JoinPath(options_.data_dir, "data");
  options.control_plane_url = LocalUrl(*control_server_);
  options.plane_credential = std::move(plane_credential);
  options.endpoints = {urls_.control_plane, urls_.data_plane, urls_.intelligence,
                       options_.console_url};
  options.http = LocalClient();
  options.metrics = &data_server_->metrics();
  EXPANSE_TRY(data_plane_,
              AsServed(data_plane::DataPlane::Open(std::move(options), clock_, random_)));
  Connect(*data_server_, *data_plane_);
  return {};
}

Status UpStack::OpenIntelligence() {
  intelligence::Options options;
  options.data_dir = platform::JoinPath(options_.data_dir, "intelligence");
  options.data_plane_url = LocalUrl(*data_server_);
  options.control_plane_url = LocalUrl(*control_server_);
  options.http = LocalClient();
  EXPANSE_TRY(intelligence_,
              AsServed(intelligence::Intelligence::Open(std::move(options), clock_, random_)));
  Connect(*intelligence_server_, *intelligence_);
  return {};
}

Result<Secret> UpStack::EnsureKeys() {
  const control_plane::Bootstrap& bootstrap = bootstrap_->bootstrap();
  const std::string& organisation = options_.organisation;
  EXPANSE_TRY(const bool exists, bootstrap.Exists(organisation));
  if (!exists) {
    EXPANSE_TRY(const auto made,
                bootstrap.Create({organisation, options_.owner_email, "", UserId()}));
    EXPANSE_CHECK_OK(WriteKeyFile(owner_key_file(), made.api_key));
    EXPANSE_CHECK_OK(WriteKeyFile(plane_key_file(), made.plane_credential));
    return made.plane_credential;
  }
  EXPANSE_TRY(const bool has_owner_key, HasLivingKey(owner_key_file(), [&](const Secret& key) {
                return bootstrap.IsLivingApiKey(organisation, key);
              }));
  if (!has_owner_key) {
    EXPANSE_TRY(const Secret key, bootstrap.NewOwnerKey(organisation, options_.owner_email));
    EXPANSE_CHECK_OK(WriteKeyFile(owner_key_file(), key));
    log::Warning("up.owner_key_replaced", {{"file", owner_key_file()}});
  }
  EXPANSE_TRY(const bool has_plane_key, HasLivingKey(plane_key_file(), [&](const Secret& key) {
                return bootstrap.IsLivingPlaneCredential(organisation, key);
              }));
  if (has_plane_key) return ReadKeyFile(plane_key_file());
  EXPANSE_TRY(Secret key, bootstrap.NewPlaneCredential(organisation));
  EXPANSE_CHECK_OK(WriteKeyFile(plane_key_file(), key));
  log::Warning("up.plane_key_replaced", {{"file", plane_key_file()}});
  return key;
}

std::vector<PlaneServer*> UpStack::servers() const {
  return {control_server_.get(), data_server_.get(), intelligence_server_.get()};
}

Status UpStack::CheckHealth() const {
  const auto client = platform::NewCurlHttpClient(LocalClient());
  for (const PlaneServer* server : servers()) {
    platform::HttpCall call;
    call.method = "GET";
    call.url = LocalUrl(*server) + "/readyz";
    call.timeout = kHealthTimeout;
    EXPANSE_TRY(const auto response, client->Do(call));
    if (response.status != 200)
      return Error(Code::kUnavailable, call.url + " answered " + std::to_string(response.status) +
                                           ": " + response.body);
  }
  return {};
}

}  // namespace expanse::apps
