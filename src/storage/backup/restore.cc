// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <unistd.h>

#include "platform/crypto/crypto.h"
#include "platform/fs/fs.h"
#include "storage/backup/backup.h"
#include "storage/backup/manifest.h"
#include "storage/file.h"
#include "storage/relational/database.h"

namespace expanse::storage {
namespace {

constexpr char kManifest[] = "backup.manifest";
// There while a restore runs; a plane does not start on it.
constexpr char kMarker[] = "restore-incomplete";
constexpr size_t kMaxManifest = size_t{1} << 30;

Status RestoreFile(const std::string& from, const std::string& to, const ManifestEntry& entry) {
  constexpr int64_t kStep = int64_t{1} << 20;
  const auto damaged = [&](const std::string& why) {
    return Error(Code::kDataLoss, "the backup is damaged: " + from + " " + why);
  };
  auto source = File::OpenToRead(from);
  if (!source.ok() && source.error().code() == Code::kNotFound) return damaged("is missing");
  if (!source.ok()) return source.error();
  EXPANSE_TRY(const int64_t size, source->Size());
  if (size != entry.size)
    return damaged("has " + std::to_string(size) + " bytes, not " + std::to_string(entry.size));
  EXPANSE_CHECK_OK(MakeDirectories(platform::DirName(to)));
  EXPANSE_TRY(auto target, File::CreateNew(to));
  uint32_t crc = 0;
  for (int64_t at = 0; at < size; at += kStep) {
    EXPANSE_TRY(const auto bytes, source->ReadAt(at, std::min(kStep, size - at)));
    crc = platform::Crc32c(bytes, crc);
    EXPANSE_CHECK_OK(target.Append(bytes));
  }
  if (entry.crc32c.has_value() && crc != *entry.crc32c) return damaged("has a wrong checksum");
  return target.Sync();
}

// Every directory on the way to the entries, deepest last.
std::vector<std::string> DirectoriesOf(const std::vector<ManifestEntry>& entries) {
  std::vector<std::string> out;
  for (const auto& entry : entries)
    for (size_t at = entry.path.find('/'); at != std::string::npos;
         at = entry.path.find('/', at + 1))
      out.push_back(entry.path.substr(0, at));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Status GiveToOwner(const std::string& directory, const std::vector<ManifestEntry>& entries) {
  if (geteuid() != 0) return {};
  const platform::Fs fs;
  EXPANSE_TRY(const auto owner, fs.Stat(directory));
  for (const auto& path : DirectoriesOf(entries))
    EXPANSE_CHECK_OK(fs.Chown(platform::JoinPath(directory, path), owner.uid, owner.gid));
  for (const auto& entry : entries)
    EXPANSE_CHECK_OK(fs.Chown(platform::JoinPath(directory, entry.path), owner.uid, owner.gid));
  return {};
}

// Databases are opened once: that also takes their log files away again.
Status CheckDatabases(const std::string& directory, const BackupLayout& layout) {
  for (const auto& name : layout.databases) {
    EXPANSE_TRY(const auto database,
                Database::Open("sqlite:" + platform::JoinPath(directory, name)));
    EXPANSE_CHECK_OK(database->CheckIntegrity());
  }
  return {};
}

}  // namespace

Status RefuseHalfRestored(const std::string& directory) {
  if (!platform::Fs().Exists(platform::JoinPath(directory, kMarker))) return {};
  return Error(Code::kFailedPrecondition,
               "a restore into " + directory +
                   " was cut off: empty the directory and run the restore again");
}

Result<BackupReport> Restore(const std::string& from, const BackupLayout& layout,
                             const std::string& directory) {
  const platform::Fs fs;
  EXPANSE_CHECK_OK(RefuseHalfRestored(directory));
  EXPANSE_CHECK_OK(RefuseFilled(directory, "restore goes into an empty directory only"));
  const std::string manifest_path = platform::JoinPath(from, kManifest);
  auto text = fs.Read(manifest_path, kMaxManifest);
  if (!text.ok() && text.error().code() == Code::kNotFound)
    return Error(Code::kDataLoss, from + " is no complete backup: it has no " + kManifest);
  if (!text.ok()) return text.error();
  EXPANSE_TRY(const auto entries, ParseManifest(*text));
  for (const auto& name : layout.databases)
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return entry.path == name; }))
      return Error(Code::kFailedPrecondition,
                   from + " holds no " + name + ": it is the backup of another plane");
  EXPANSE_CHECK_OK(MakeDirectories(directory));
  const std::string marker = platform::JoinPath(directory, kMarker);
  EXPANSE_CHECK_OK(fs.WriteAtomic(marker, "", 0600));
  BackupReport report;
  for (const auto& entry : entries) {
    EXPANSE_CHECK_OK(RestoreFile(platform::JoinPath(from, entry.path),
                                 platform::JoinPath(directory, entry.path), entry));
    ++report.files;
    report.bytes += entry.size;
  }
  EXPANSE_TRY(const std::string real, fs.RealPath(directory));
  EXPANSE_CHECK_OK(CheckDatabases(real, layout));
  EXPANSE_CHECK_OK(GiveToOwner(directory, entries));
  for (const auto& path : DirectoriesOf(entries))
    EXPANSE_CHECK_OK(SyncDirectory(platform::JoinPath(directory, path)));
  EXPANSE_CHECK_OK(SyncDirectory(directory));
  EXPANSE_CHECK_OK(RemoveFile(marker));
  EXPANSE_CHECK_OK(SyncDirectory(directory));
  return report;
}

}  // namespace expanse::storage
