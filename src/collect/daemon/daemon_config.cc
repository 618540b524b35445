// SPDX-License-Identifier: Apache-2.0
#include "collect/daemon/daemon_config.h"

#include <boost/json.hpp>

#include "base/strings.h"

namespace expanse::collect::daemon {
namespace {

namespace json = boost::json;

constexpr size_t kMostConfigBytes = 64 << 10;

Result<std::string> Text(const json::object& object, const char* name, bool required) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) {
    if (required) return Error(Code::kInvalidArgument, std::string("has no member ") + name);
    return std::string();
  }
  if (!value->is_string())
    return Error(Code::kInvalidArgument, std::string("member ") + name + " is no text");
  std::string text(value->get_string().data(), value->get_string().size());
  if (required && text.empty())
    return Error(Code::kInvalidArgument, std::string("member ") + name + " is empty");
  return text;
}

Status Absolute(const std::string& path, const char* name) {
  if (path.starts_with('/')) return {};
  return Error(Code::kInvalidArgument, std::string("member ") + name + " is no absolute path");
}

Result<DaemonConfig> Parse(const std::string& text, const std::string& path) {
  json::error_code failed;
  const json::value root = json::parse(text, failed);
  if (failed || !root.is_object())
    return Error(Code::kInvalidArgument, "is not a JSON object: " + failed.message());
  const json::object& object = root.get_object();
  DaemonConfig config;
  EXPANSE_TRY(config.compute_id, Text(object, "compute_id", true));
  EXPANSE_TRY(config.organisation_id, Text(object, "organisation_id", false));
  EXPANSE_TRY(config.compute_name, Text(object, "compute_name", false));
  EXPANSE_TRY(std::string credential, Text(object, "credential", true));
  config.credential = Secret(std::move(credential));
  const json::value* endpoints = object.if_contains("endpoints");
  if (endpoints == nullptr || !endpoints->is_object())
    return Error(Code::kInvalidArgument, "has no member endpoints");
  EXPANSE_TRY(config.data_plane_url, Text(endpoints->get_object(), "data_plane_url", true));
  EXPANSE_TRY(config.shared_prefix, Text(object, "shared_prefix", true));
  EXPANSE_CHECK_OK(Absolute(config.shared_prefix, "shared_prefix"));
  EXPANSE_TRY(config.slurm_conf, Text(object, "slurm_conf", false));
  EXPANSE_TRY(config.state_dir, Text(object, "state_dir", false));
  if (config.state_dir.empty())
    config.state_dir = platform::JoinPath(platform::DirName(path), "state");
  EXPANSE_CHECK_OK(Absolute(config.state_dir, "state_dir"));
  EXPANSE_TRY(const std::string hook_spool, Text(object, "hook_spool", false));
  if (!hook_spool.empty()) config.hook_spool = hook_spool;
  EXPANSE_CHECK_OK(Absolute(config.hook_spool, "hook_spool"));
  return config;
}

}  // namespace

Result<DaemonConfig> LoadDaemonConfig(const platform::Fs& fs, const std::string& path) {
  EXPANSE_TRY(const platform::FileInfo info, fs.Stat(path));
  const mode_t permissions = info.mode & 0777;
  if ((permissions & ~mode_t{0640}) != 0) {
    char octal[8];
    std::snprintf(octal, sizeof octal, "%04o", static_cast<unsigned>(permissions));
    return Error(Code::kFailedPrecondition,
                 path + " has mode " + octal +
                     ", broader than 0640: others may have read the credential in it; chmod 0640 "
                     "it, and register the compute anew if they did");
  }
  EXPANSE_TRY(const std::string text, fs.Read(path, kMostConfigBytes));
  auto config = Parse(text, path);
  if (!config.ok()) return config.error().WithContext(path);
  return config;
}

Result<std::string> SamplerHookSpool(const platform::Fs& fs, const std::string& shared_prefix) {
  const std::string path = platform::JoinPath(shared_prefix, "etc/sampler.conf");
  const auto text = fs.Read(path, kMostConfigBytes);
  if (!text.ok()) {
    if (text.error().code() == Code::kNotFound) return std::string(kDefaultHookSpool);
    return text.error();
  }
  for (std::string_view line : Split(*text, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || Trim(line).starts_with('#')) continue;
    if (Trim(line.substr(0, equals)) != "hook_spool") continue;
    const std::string value(Trim(line.substr(equals + 1)));
    if (!value.starts_with('/'))
      return Error(Code::kInvalidArgument, path + ": hook_spool is no absolute path");
    return value;
  }
  return std::string(kDefaultHookSpool);
}

}  // namespace expanse::collect::daemon
