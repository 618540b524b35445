// SPDX-License-Identifier: Apache-2.0
#include "install/release.h"

#include <boost/json.hpp>

#include "base/strings.h"
#include "platform/crypto/crypto.h"

namespace expanse::install {
namespace {

constexpr size_t kMaxProgram = size_t{1} << 30;
constexpr size_t kMaxManifest = 4 << 20;
constexpr Millis kDownloadTimeout{600'000};
constexpr Millis kExtractTimeout{120'000};

Error Failed(const std::string& what) { return Error(Code::kFailedPrecondition, what); }

bool IsProgram(std::string_view bytes) {
  return bytes.starts_with(
      "\x7f"
      "ELF");
}

bool IsArchive(std::string_view path) {
  return path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

/// "v1.5.0" and "daemon-v1.5.0" are the same release as "1.5.0".
std::string_view BareVersion(std::string_view version) {
  if (version.starts_with("daemon-")) version.remove_prefix(7);
  if (version.starts_with('v')) version.remove_prefix(1);
  return version;
}

std::string Platform() {
#if defined(__aarch64__)
  return "linux-arm64";
#else
  return "linux-amd64";
#endif
}

Result<std::string> ReleaseKey(const InstallOptions& options, Machine& machine) {
  if (options.cosign_key.empty())
    return Failed(
        "this build carries no release key, so that no signature can be verified: name the "
        "release's public key with --cosign-key, or give a bare program with --daemon-binary");
  EXPANSE_TRY(std::string key, machine.fs.Read(options.cosign_key, 64 << 10));
  return key;
}

Status VerifySignature(const std::string& key, std::string_view bytes, std::string_view signature,
                       const std::string& what) {
  if (platform::VerifyCosignSignature(key, bytes, Trim(signature))) return {};
  return Failed("the signature of " + what + " does not hold; nothing was placed");
}

Result<std::string> ReadProgram(const platform::Fs& fs, const std::string& path) {
  const auto info = fs.LStat(path);
  if (!info.ok() || !info->is_regular) return Failed(path + " is not a plain file");
  EXPANSE_TRY(std::string bytes, fs.Read(path, kMaxProgram));
  if (!IsProgram(bytes)) return Failed(path + " is not a Linux program");
  return bytes;
}

/// Unpacks into a private directory and takes the two programs from it. GNU tar itself refuses
/// members and links that leave the directory.
Result<ReleaseFiles> Unpack(const std::string& archive, const std::string& origin,
                            Machine& machine) {
  const platform::TempDir staging;
  const platform::Fs fs;
  EXPANSE_CHECK_OK(fs.WriteAtomic(staging.path() + "/archive.tar.gz", archive, 0600));
  platform::ProcessSpec spec;
  spec.argv = {"tar", "-xzf", "archive.tar.gz"};
  spec.env["PATH"] = "/usr/bin:/bin";
  spec.working_directory = staging.path();
  spec.timeout = kExtractTimeout;
  EXPANSE_TRY(const auto run, machine.runner.Run(spec));
  if (run.exit_code != 0)
    return Failed("unpacking " + origin + ": " + EscapeForTerminal(Trim(run.err)));
  ReleaseFiles files;
  files.origin = origin;
  for (const std::string& folder : {staging.path(), staging.path() + "/bin"}) {
    if (files.daemon.empty() && fs.Exists(folder + "/expanse-daemon")) {
      EXPANSE_TRY(files.daemon, ReadProgram(fs, folder + "/expanse-daemon"));
    }
    if (files.hook.empty() && fs.Exists(folder + "/expanse-hook")) {
      EXPANSE_TRY(files.hook, ReadProgram(fs, folder + "/expanse-hook"));
    }
  }
  if (files.daemon.empty() || files.hook.empty())
    return Failed(origin + " holds no expanse-daemon or no expanse-hook");
  return files;
}

Result<ReleaseFiles> FromArchive(const InstallOptions& options, Machine& machine) {
  const std::string& path = options.daemon_binary;
  EXPANSE_TRY(const std::string key, ReleaseKey(options, machine));
  EXPANSE_TRY(const std::string archive, machine.fs.Read(path, kMaxProgram));
  auto signature = machine.fs.Read(path + ".sig", 64 << 10);
  if (!signature.ok()) return Failed("no signature beside the archive: " + path + ".sig");
  EXPANSE_CHECK_OK(VerifySignature(key, archive, *signature, path));
  return Unpack(archive, path, machine);
}

Result<std::string> Download(const std::string& url, size_t max_bytes, Machine& machine) {
  if (machine.http == nullptr) return Failed("no way to download " + url + " from here");
  platform::HttpCall call;
  call.method = "GET";
  call.url = url;
  call.timeout = kDownloadTimeout;
  call.max_response_bytes = max_bytes;
  EXPANSE_TRY(auto response, machine.http->Do(call));
  if (response.status != 200)
    return Failed(url + " answered with status " + std::to_string(response.status));
  return std::move(response.body);
}

std::string Member(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

struct Artefact {
  std::string url;
  std::string sha256;
  std::string signature;
};

Result<Artefact> ChooseArtefact(const std::string& manifest, const std::string& version) {
  boost::system::error_code error;
  boost::json::parse_options limits;
  limits.max_depth = 16;
  const auto value = boost::json::parse(manifest, error, {}, limits);
  if (error || !value.is_object()) return Failed("the release manifest is not JSON");
  const auto& object = value.get_object();
  const std::string offered = Member(object, "version");
  if (BareVersion(offered) != BareVersion(version))
    return Failed("the release manifest offers version " + EscapeForTerminal(offered) + ", not " +
                  version);
  const auto* list = object.if_contains("artefacts");
  if (list == nullptr || !list->is_array()) return Failed("the release manifest has no artefacts");
  for (const auto& entry : list->get_array()) {
    if (!entry.is_object()) continue;
    const auto& fields = entry.get_object();
    if (Member(fields, "platform") != Platform() || Member(fields, "kind") != "daemon") continue;
    return Artefact{Member(fields, "url"), Member(fields, "sha256"), Member(fields, "signature")};
  }
  return Failed("release " + version + " has no daemon for " + Platform());
}

Result<ReleaseFiles> FromRelease(const InstallOptions& options, Machine& machine) {
  EXPANSE_TRY(const std::string key, ReleaseKey(options, machine));
  const std::string url = options.releases_url + "/daemon/manifest.json";
  EXPANSE_TRY(const std::string manifest, Download(url, kMaxManifest, machine));
  EXPANSE_TRY(const std::string signature, Download(url + ".sig", kMaxManifest, machine));
  EXPANSE_CHECK_OK(VerifySignature(key, manifest, signature, url));
  EXPANSE_TRY(const Artefact artefact, ChooseArtefact(manifest, options.daemon_version));
  EXPANSE_TRY(const std::string archive, Download(artefact.url, kMaxProgram, machine));
  if (platform::Sha256Hex(archive) != ToLower(artefact.sha256))
    return Failed("the checksum of " + artefact.url + " is not the manifest's; nothing was placed");
  EXPANSE_CHECK_OK(VerifySignature(key, archive, artefact.signature, artefact.url));
  return Unpack(archive, artefact.url, machine);
}

Result<ReleaseFiles> FromProgram(const std::string& path, Machine& machine) {
  ReleaseFiles files;
  files.origin = path + " (bare program, no signature)";
  EXPANSE_TRY(files.daemon, ReadProgram(machine.fs, path));
  const std::string beside = platform::DirName(path) + "/expanse-hook";
  const std::string hook =
      machine.fs.Exists(beside) ? beside : machine.program_directory + "/expanse-hook";
  if (!machine.fs.Exists(hook))
    return Failed("expanse-hook lies neither beside " + path + " nor beside this program");
  EXPANSE_TRY(files.hook, ReadProgram(machine.fs, hook));
  return files;
}

}  // namespace

Result<ReleaseFiles> ResolveRelease(const InstallOptions& options, Machine& machine) {
  if (!options.daemon_binary.empty() && !options.daemon_version.empty())
    return Error(Code::kInvalidArgument,
                 "--daemon-binary and --daemon-version exclude one another");
  if (!options.daemon_version.empty()) return FromRelease(options, machine);
  if (options.daemon_binary.empty())
    return FromProgram(machine.program_directory + "/expanse-daemon", machine);
  if (!options.daemon_binary.starts_with('/'))
    return Error(Code::kInvalidArgument, "--daemon-binary: give an absolute path");
  return IsArchive(options.daemon_binary) ? FromArchive(options, machine)
                                          : FromProgram(options.daemon_binary, machine);
}

}  // namespace expanse::install
