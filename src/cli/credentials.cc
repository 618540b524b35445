// SPDX-License-Identifier: Apache-2.0
#include "cli/credentials.h"

#include <boost/json.hpp>

#include "base/strings.h"
#include "rpc/json.h"

namespace expanse::cli {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

std::string Member(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(boost::json::string_view(name.data(), name.size()));
  if (value == nullptr || !value->is_string()) return "";
  return std::string(value->get_string().data(), value->get_string().size());
}

}  // namespace

CredentialStore::CredentialStore(const platform::Fs& fs, const std::string& home)
    : fs_(fs),
      directory_(platform::JoinPath(home, ".expanse")),
      path_(platform::JoinPath(directory_, "credentials.json")) {}

Result<std::optional<Credentials>> CredentialStore::Load() const {
  const auto bytes = fs_.Read(path_, kMaxFileBytes);
  if (!bytes.ok()) {
    if (bytes.error().code() == Code::kNotFound) return std::optional<Credentials>();
    return bytes.error();
  }
  boost::json::error_code error;
  const auto value = boost::json::parse(*bytes, error);
  if (error || !value.is_object())
    return Error(Code::kFailedPrecondition,
                 path_ + " is not a credentials file; remove it and run `expanse login`");
  const auto& object = value.get_object();
  Credentials credentials;
  credentials.control_plane_url = Member(object, "control_plane");
  credentials.api_key = Secret(Member(object, "api_key"));
  credentials.organisation_id = Member(object, "organisation_id");
  credentials.session_url = Member(object, "session_url");
  if (credentials.control_plane_url.empty() || credentials.api_key.empty())
    return Error(Code::kFailedPrecondition,
                 path_ + " names no control plane or no key; run `expanse login` again");
  const auto* session = object.if_contains("session");
  // The cache is expendable: one that cannot be read is minted anew.
  if (session == nullptr ||
      !rpc::FromJson(boost::json::serialize(*session), &credentials.session).ok())
    credentials.session_url.clear();
  return std::optional<Credentials>(std::move(credentials));
}

Status CredentialStore::Save(const Credentials& credentials) const {
  EXPANSE_TRY(const auto session, rpc::ToJson(credentials.session));
  boost::json::object object;
  object["control_plane"] = credentials.control_plane_url;
  object["api_key"] = credentials.api_key.Reveal();
  object["organisation_id"] = credentials.organisation_id;
  object["session_url"] = credentials.session_url;
  object["session"] = boost::json::parse(session);
  EXPANSE_CHECK_OK(fs_.MakeDirs(directory_, 0700));
  return fs_.WriteAtomic(path_, boost::json::serialize(object) + "\n", 0600);
}

std::optional<mode_t> CredentialStore::Tighten() const {
  const auto info = fs_.Stat(path_);
  if (!info.ok() || (info->mode & 077U) == 0) return std::nullopt;
  const mode_t was = info->mode & 07777U;
  if (!fs_.Chmod(path_, 0600).ok()) return was;
  return was;
}

std::unique_ptr<platform::FileLock> CredentialStore::Lock() const {
  if (!fs_.MakeDirs(directory_, 0700).ok()) return nullptr;
  auto lock =
      platform::FileLock::Wait(fs_.Host(platform::JoinPath(directory_, "credentials.lock")));
  return lock.ok() ? std::move(*lock) : nullptr;
}

}  // namespace expanse::cli
