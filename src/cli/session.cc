// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "expanse/control/v1/control.rpc.h"

namespace expanse::cli {
namespace {

constexpr int64_t kLeastLeftMillis = 60'000;
constexpr Millis kMintTimeout{30'000};

Error NotSignedIn() {
  return Error(Code::kUnauthenticated,
               "not signed in. Run `expanse login`; the key it needs is created in the console "
               "under Settings, or is in owner.key of the data directory of `expanse up`");
}

}  // namespace

class Session::PlaneChannel final : public rpc::Channel {
 public:
  PlaneChannel(Session& session, Plane plane) : session_(session), plane_(plane) {}

  Status Call(std::string_view path, std::string_view /*bearer*/,
              const google::protobuf::Message& request, google::protobuf::Message* response,
              Deadline deadline) override {
    auto status = CallOnce(path, request, response, deadline);
    if (status.ok() || status.error().code() != Code::kUnauthenticated) return status;
    const std::string rejected = session_.credentials_.session.access_token();
    EXPANSE_CHECK_OK(session_.Mint(rejected));
    status = CallOnce(path, request, response, deadline);
    if (!status.ok() && status.error().code() == Code::kUnauthenticated)
      return Error(Code::kUnauthenticated,
                   fmt::format("{} rejected the session: {}. Run `expanse login`", url_,
                               status.error().message()));
    return status;
  }

 private:
  Status CallOnce(std::string_view path, const google::protobuf::Message& request,
                  google::protobuf::Message* response, Deadline deadline) {
    // The endpoints can change with every minted session.
    EXPANSE_TRY(const std::string url, session_.UrlOf(plane_));
    if (!channel_ || url != url_) {
      channel_ = session_.context_.open_channel(url);
      url_ = url;
    }
    return channel_->Call(path, session_.credentials_.session.access_token(), request, response,
                          deadline);
  }

  Session& session_;
  Plane plane_;
  std::string url_;
  std::unique_ptr<rpc::Channel> channel_;
};

Result<CredentialStore> OpenCredentialStore(const Context& context) {
  const std::string home = context.Environment("HOME");
  if (!home.starts_with('/'))
    return Error(Code::kFailedPrecondition,
                 "HOME is not set, so there is no place for .expanse/credentials.json");
  return CredentialStore(context.fs, home);
}

Result<control::v1::MintSessionResponse> MintSession(Context& context, const std::string& url,
                                                     const Secret& api_key,
                                                     const std::string& organisation_id) {
  const auto channel = context.open_channel(url);
  const control::v1::AuthServiceClient client(*channel);
  control::v1::MintSessionRequest request;
  request.set_api_key(api_key.Reveal());
  request.set_organisation_id(organisation_id);
  auto response = client.MintSession("", request, Deadline::In(kMintTimeout));
  if (response.ok()) return response;
  const auto& error = response.error();
  if (error.code() == Code::kUnauthenticated)
    return Error(error.code(),
                 fmt::format("{} refused the API key: {}. Create a key in the console under "
                             "Settings and run `expanse login`",
                             url, error.message()));
  // What a web server says that is no control plane.
  if (error.code() == Code::kUnimplemented || error.code() == Code::kNotFound)
    return Error(error.code(), fmt::format("signing in at {}: {}. Is this a control plane?", url,
                                           error.message()));
  return error.WithContext("signing in at " + url);
}

Session::Session(Context& context, CredentialStore store, Credentials credentials,
                 std::string control_plane_url)
    : context_(context),
      store_(std::move(store)),
      credentials_(std::move(credentials)),
      control_plane_url_(std::move(control_plane_url)),
      control_(std::make_unique<PlaneChannel>(*this, Plane::kControl)),
      data_(std::make_unique<PlaneChannel>(*this, Plane::kData)),
      intelligence_(std::make_unique<PlaneChannel>(*this, Plane::kIntelligence)) {}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Open(Context& context, bool mint_when_old) {
  EXPANSE_TRY(auto store, OpenCredentialStore(context));
  EXPANSE_TRY(auto loaded, store.Load());
  if (!loaded) return NotSignedIn();
  if (const auto was = store.Tighten())
    context.Warn(
        fmt::format("{} was readable by others (mode {:04o}); made it 0600. When this "
                    "machine has other users, revoke the key and sign in again",
                    store.path(), *was));
  std::string url = context.Environment("EXPANSE_API_URL");
  if (url.empty()) url = loaded->control_plane_url;
  std::unique_ptr<Session> session(
      new Session(context, std::move(store), std::move(*loaded), std::move(url)));
  if (mint_when_old && !session->IsFresh()) EXPANSE_CHECK_OK(session->Mint(""));
  return session;
}

bool Session::IsFresh() const {
  return credentials_.session_url == control_plane_url_ &&
         !credentials_.session.access_token().empty() &&
         credentials_.session.expires_at_ms() - ToUnixMillis(context_.clock.Now()) >=
             kLeastLeftMillis;
}

Status Session::Mint(const std::string& rejected) {
  const auto lock = store_.Lock();
  EXPANSE_TRY(auto loaded, store_.Load());
  if (!loaded) return NotSignedIn();
  credentials_ = std::move(*loaded);
  if (IsFresh() && credentials_.session.access_token() != rejected) return {};
  EXPANSE_TRY(credentials_.session, MintSession(context_, control_plane_url_, credentials_.api_key,
                                                credentials_.organisation_id));
  credentials_.session_url = control_plane_url_;
  // A home that cannot be written costs one more call each time, not the command.
  if (auto saved = store_.Save(credentials_); !saved.ok())
    context_.Warn("the session was not cached: " + saved.error().message());
  return {};
}

Status Session::Refresh(const std::string& organisation_id) {
  const auto lock = store_.Lock();
  EXPANSE_TRY(auto loaded, store_.Load());
  if (!loaded) return NotSignedIn();
  credentials_ = std::move(*loaded);
  const std::string organisation =
      organisation_id.empty() ? credentials_.organisation_id : organisation_id;
  EXPANSE_TRY(credentials_.session,
              MintSession(context_, control_plane_url_, credentials_.api_key, organisation));
  credentials_.organisation_id = organisation;
  credentials_.session_url = control_plane_url_;
  return store_.Save(credentials_);
}

Result<std::string> Session::UrlOf(Plane plane) const {
  const auto& endpoints = credentials_.session.endpoints();
  const auto named = [&](const std::string& url, std::string_view name) -> Result<std::string> {
    if (!url.empty()) return url;
    return Error(Code::kFailedPrecondition,
                 fmt::format("the control plane at {} names no {} for this organisation",
                             control_plane_url_, name));
  };
  switch (plane) {
    case Plane::kControl:
      return control_plane_url_;
    case Plane::kData:
      return named(endpoints.data_plane_url(), "data plane");
    case Plane::kIntelligence:
      return named(endpoints.intelligence_url(), "intelligence plane");
  }
  return Error(Code::kInternal, "no such plane");
}

}  // namespace expanse::cli
