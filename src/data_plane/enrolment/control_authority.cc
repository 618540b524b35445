// SPDX-License-Identifier: Apache-2.0
#include "data_plane/enrolment/control_authority.h"

#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/strings.h"

namespace expanse::data_plane {
namespace {

constexpr Millis kQuestionTimeout{3'000};
constexpr Millis kAskAgainAfter{10'000};

/// A Connect error: a JSON object that names its code.
bool IsConnectError(std::string_view body) {
  boost::system::error_code ec;
  const auto value = boost::json::parse(boost::json::string_view(body.data(), body.size()), ec);
  if (ec || !value.is_object()) return false;
  const auto* code = value.as_object().if_contains("code");
  return code != nullptr && code->is_string() &&
         CodeFromName(std::string_view(code->as_string())).has_value();
}

/// Passes on only what the control plane itself says. A page of a proxy, a captive portal or a
/// gateway with a bare status 403 is no verdict on a credential: it is an absence.
class OwnAnswers final : public platform::HttpClient {
 public:
  explicit OwnAnswers(platform::HttpClient& inner) : inner_(inner) {}
  Result<platform::HttpResponse> Do(const platform::HttpCall& call) override {
    EXPANSE_TRY(auto answer, inner_.Do(call));
    if (answer.status == 200 || IsConnectError(answer.body)) return answer;
    return Error(Code::kUnavailable,
                 fmt::format("{}: HTTP status {}, not from the control plane: {}",
                             platform::WithoutUserInfo(call.url), answer.status,
                             EscapeForTerminal(Trim(answer.body).substr(0, 200))));
  }

 private:
  platform::HttpClient& inner_;
};

}  // namespace

bool IsAbsence(const Error& error) {
  switch (error.code()) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kInternal:
    case Code::kUnknown:
    case Code::kUnimplemented:
    case Code::kResourceExhausted:
    case Code::kAborted:
    case Code::kCanceled:
    case Code::kDataLoss:
    // Our own plane credential was refused: an operator's mistake, no verdict on the compute.
    case Code::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

ControlAuthority::ControlAuthority(std::string url, Secret plane_credential,
                                   const platform::Clock& clock, platform::HttpClientOptions http)
    : clock_(clock),
      http_(platform::NewCurlHttpClient(std::move(http))),
      own_answers_(std::make_unique<OwnAnswers>(*http_)),
      channel_(*own_answers_, std::move(url)),
      client_(channel_),
      credential_(std::move(plane_credential)) {}

template <typename T>
Result<T> ControlAuthority::Note(Result<T> result) {
  const std::lock_guard lock(mutex_);
  if (!result.ok() && IsAbsence(result.error()))
    away_since_ = clock_.Mono();
  else
    away_since_.reset();
  return result;
}

bool ControlAuthority::IsAway() {
  const std::lock_guard lock(mutex_);
  return away_since_ && clock_.Mono() - *away_since_ < kAskAgainAfter;
}

Result<control::v1::ExchangeInstallTokenResponse> ControlAuthority::Exchange(
    const control::v1::ExchangeInstallTokenRequest& request, Deadline deadline) {
  return Note(client_.ExchangeInstallToken(credential_.Reveal(), request, deadline));
}

Result<control::v1::VerifyComputeCredentialResponse> ControlAuthority::Verify(
    const std::string& credential) {
  if (IsAway()) return Error(Code::kUnavailable, "the control plane could not be reached");
  control::v1::VerifyComputeCredentialRequest request;
  request.set_credential(credential);
  return Note(client_.VerifyComputeCredential(credential_.Reveal(), request,
                                              Deadline::In(kQuestionTimeout)));
}

Status ControlAuthority::RecordHeartbeat(const control::v1::RecordHeartbeatRequest& request) {
  if (IsAway()) return Error(Code::kUnavailable, "the control plane could not be reached");
  auto result =
      Note(client_.RecordHeartbeat(credential_.Reveal(), request, Deadline::In(kQuestionTimeout)));
  if (!result.ok()) return result.error();
  return {};
}

Status ControlAuthority::Deprovision(const std::string& compute_id, Deadline deadline) {
  control::v1::DeprovisionRequest request;
  request.set_compute_id(compute_id);
  auto result = Note(client_.Deprovision(credential_.Reveal(), request, deadline));
  if (!result.ok()) return result.error();
  return {};
}

}  // namespace expanse::data_plane
