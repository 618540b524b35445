// SPDX-License-Identifier: Apache-2.0
#include "apps/backup_commands.h"

#include <cstdio>
#include <filesystem>
#include <vector>

#include "apps/settings.h"
#include "platform/fs/fs.h"

namespace expanse::apps {
namespace {

using platform::Setting;
using platform::SettingKind;

constexpr Setting kTo{"to", "", SettingKind::kString, "", "a new or empty directory"};
constexpr Setting kFrom{"from", "", SettingKind::kString, "", "directory of a backup"};

void Append(const storage::BackupLayout& part, const std::string& below,
            storage::BackupLayout* whole) {
  for (const auto& name : part.databases) whole->databases.push_back(below + "/" + name);
  for (const auto& name : part.files) whole->files.push_back(below + "/" + name);
  if (!part.series.empty()) whole->series = below + "/" + part.series;
  if (!part.blobs.empty()) whole->blobs = below + "/" + part.blobs;
}

Result<std::string> Absolute(const std::string& path) {
  std::error_code ec;
  const auto absolute = std::filesystem::absolute(path, ec);
  if (ec) return Error(Code::kInvalidArgument, path + " is no path: " + ec.message());
  return platform::NormalizePath(absolute.string());
}

void Say(const char* done, const std::string& from, const std::string& to,
         const storage::BackupReport& report) {
  std::printf("%s %s to %s: %lld files, %lld bytes", done, from.c_str(), to.c_str(),
              static_cast<long long>(report.files), static_cast<long long>(report.bytes));
  if (report.linked > 0)
    std::printf(" (%lld files share their space with the original)",
                static_cast<long long>(report.linked));
  std::printf("\n");
}

}  // namespace

storage::BackupLayout ControlPlaneLayout() {
  return {{"control.db"}, {"control-keys.json"}, "", ""};
}
storage::BackupLayout DataPlaneLayout() {
  return {{"data.db"}, {"key-set.json"}, "series", "blobs"};
}
storage::BackupLayout IntelligenceLayout() {
  return {{"intelligence.db"}, {"keyset.json"}, "", ""};
}
storage::BackupLayout UpLayout() {
  storage::BackupLayout layout{{}, {"owner.key", "plane.key"}, "", ""};
  // The data plane before the control plane: a compute that it knows is then known there too.
  Append(DataPlaneLayout(), "data", &layout);
  Append(IntelligenceLayout(), "intelligence", &layout);
  Append(ControlPlaneLayout(), "control", &layout);
  return layout;
}

std::optional<int> RunBackupCommand(std::string_view program, std::span<const std::string> words,
                                    const storage::BackupLayout& layout,
                                    const platform::Setting& data_dir) {
  if (words.empty() || (words[0] != "backup" && words[0] != "restore")) return std::nullopt;
  const bool is_backup = words[0] == "backup";
  const std::vector<Setting> table = {data_dir, is_backup ? kTo : kFrom, kLogLevel, kLogFormat};
  const auto body = [&](const platform::Config& config) -> Status {
    EXPANSE_CHECK_OK(ConfigureLog(config));
    if (config.GetString(is_backup ? "to" : "from").empty())
      return Error(Code::kInvalidArgument,
                   is_backup ? "--to DIR is needed" : "--from DIR is needed");
    EXPANSE_TRY(const std::string directory, Absolute(config.GetString(data_dir.key)));
    EXPANSE_TRY(const std::string other, Absolute(config.GetString(is_backup ? "to" : "from")));
    EXPANSE_TRY(const auto report, is_backup ? storage::Backup(directory, layout, other)
                                             : storage::Restore(other, layout, directory));
    if (is_backup)
      Say("backed up", directory, other, report);
    else
      Say("restored", other, directory, report);
    return {};
  };
  return RunWithConfig(std::string(program) + " " + words[0],
                       is_backup
                           ? "Copies the data of this plane into a new directory while it runs."
                           : "Copies a backup into an empty data directory and checks it.",
                       table, words.subspan(1), body);
}

}  // namespace expanse::apps
