// SPDX-License-Identifier: Apache-2.0
#include "collect/daemon/daemon_config.h"

#include "domain/layout.h"
#include "expanse/data/v1/daemon.pb.h"
#include "rpc/json.h"

namespace expanse::collect::daemon {
namespace {

constexpr size_t kMostConfigBytes = 64 << 10;

Status Needed(const std::string& value, const char* name) {
  if (!value.empty()) return {};
  return Error(Code::kInvalidArgument, std::string("member ") + name + " is missing or empty");
}

Status Absolute(const std::string& path, const char* name) {
  if (path.starts_with('/')) return {};
  return Error(Code::kInvalidArgument, std::string("member ") + name + " is no absolute path");
}

Status CheckMode(const platform::Fs& fs, const std::string& path) {
  EXPANSE_TRY(const platform::FileInfo info, fs.Stat(path));
  const mode_t permissions = info.mode & 0777;
  if ((permissions & ~mode_t{0640}) == 0) return {};
  char octal[8];
  std::snprintf(octal, sizeof octal, "%04o", static_cast<unsigned>(permissions));
  return Error(Code::kFailedPrecondition,
               path + " has mode " + octal +
                   ", broader than 0640: others may have read the credential in it; chmod 0640 it, "
                   "and register the compute anew if they did");
}

Result<DaemonConfig> Read(const std::string& text, const std::string& path) {
  data::v1::DaemonConfig message;
  EXPANSE_CHECK_OK(rpc::FromJson(text, &message));
  EXPANSE_CHECK_OK(Needed(message.compute_id(), "compute_id"));
  EXPANSE_CHECK_OK(Needed(message.credential(), "credential"));
  EXPANSE_CHECK_OK(Needed(message.data_plane_url(), "data_plane_url"));
  EXPANSE_CHECK_OK(Absolute(message.shared_prefix(), "shared_prefix"));
  DaemonConfig config;
  config.compute_id = message.compute_id();
  config.organisation_id = message.organisation_id();
  config.credential = Secret(message.credential());
  config.data_plane_url = message.data_plane_url();
  config.shared_prefix = message.shared_prefix();
  config.slurm_conf = message.slurm_conf();
  config.state_dir = message.state_dir();
  if (config.state_dir.empty())
    config.state_dir = platform::JoinPath(platform::DirName(path), "state");
  EXPANSE_CHECK_OK(Absolute(config.state_dir, "state_dir"));
  return config;
}

}  // namespace

Result<DaemonConfig> LoadDaemonConfig(const platform::Fs& fs, const std::string& path) {
  EXPANSE_CHECK_OK(CheckMode(fs, path));
  EXPANSE_TRY(const std::string text, fs.Read(path, kMostConfigBytes));
  auto config = Read(text, path);
  if (!config.ok()) return config.error().WithContext(path);
  // The hooks of slurmctld are optional: without their place nothing else suffers.
  config->hook_spool =
      SamplerHookSpool(fs, config->shared_prefix).value_or(std::string(domain::kHookSpool));
  config->hook_directory = HookDirectory(fs, config->shared_prefix);
  return config;
}

std::string HookDirectory(const platform::Fs& fs, const std::string& shared_prefix) {
  const std::string path = platform::JoinPath(shared_prefix, domain::kSharedSamplerConfig);
  const auto text = fs.Read(path, kMostConfigBytes);
  data::v1::SamplerConfig message;
  const bool is_named =
      text.ok() && rpc::FromJson(*text, &message).ok() && message.hook_directory().starts_with('/');
  return is_named ? message.hook_directory() : std::string(domain::kHookDirectory);
}

Result<std::string> SamplerHookSpool(const platform::Fs& fs, const std::string& shared_prefix) {
  const std::string path = platform::JoinPath(shared_prefix, domain::kSharedSamplerConfig);
  const auto text = fs.Read(path, kMostConfigBytes);
  if (!text.ok()) {
    if (text.error().code() == Code::kNotFound) return std::string(domain::kHookSpool);
    return text.error();
  }
  data::v1::SamplerConfig message;
  if (const Status read = rpc::FromJson(*text, &message); !read.ok())
    return read.error().WithContext(path);
  if (message.hook_spool().empty()) return std::string(domain::kHookSpool);
  const Status absolute = Absolute(message.hook_spool(), "hook_spool");
  if (!absolute.ok()) return absolute.error().WithContext(path);
  return message.hook_spool();
}

}  // namespace expanse::collect::daemon
