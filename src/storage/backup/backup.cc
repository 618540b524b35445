// SPDX-License-Identifier: Apache-2.0
// The order of a backup. An acknowledgement comes after blobs, samples and SQL are durable, in that
// order; so SQL is copied first and everything it speaks of is found afterwards. A log of samples
// goes only after its sealed file has its name: logs are copied before sealed files.
#include "storage/backup/backup.h"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include "base/log.h"
#include "platform/crypto/crypto.h"
#include "platform/fs/fs.h"
#include "storage/backup/manifest.h"
#include "storage/file.h"
#include "storage/relational/database.h"

namespace expanse::storage {
namespace {

constexpr char kManifest[] = "backup.manifest";
constexpr int64_t kStep = int64_t{1} << 20;
constexpr int kMostListings = 1000;

std::string Join(const std::string& a, const std::string& b) { return platform::JoinPath(a, b); }

Result<std::vector<std::string>> ListOrNothing(const std::string& path) {
  auto names = platform::Fs().List(path);
  if (!names.ok() && names.error().code() == Code::kNotFound) return std::vector<std::string>();
  return names;
}

class Copier {
 public:
  Copier(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  Status CopyDatabase(const std::string& name);
  /// A file that may grow or shrink meanwhile: what is there now. False: it is gone.
  Result<bool> CopyNow(const std::string& name);
  /// An immutable file. False: it is gone.
  Result<bool> LinkOrCopy(const std::string& name);
  Status CopySeries(const std::string& series);
  Status CopyBlobs(const std::string& directory);
  Result<BackupReport> Finish();

 private:
  Status CopySealed(const std::string& sealed);
  Status Note(const std::string& name, std::optional<uint32_t> crc);

  std::string from_;
  std::string to_;
  std::vector<ManifestEntry> entries_;
  BackupReport report_;
};

Status Copier::Note(const std::string& name, std::optional<uint32_t> crc) {
  EXPANSE_TRY(const auto info, platform::Fs().Stat(Join(to_, name)));
  entries_.push_back({info.size, crc, name});
  ++report_.files;
  report_.bytes += info.size;
  return {};
}

Result<uint32_t> ChecksumOf(const std::string& path) {
  EXPANSE_TRY(const auto file, File::OpenToRead(path));
  EXPANSE_TRY(const int64_t size, file.Size());
  uint32_t crc = 0;
  for (int64_t at = 0; at < size; at += kStep) {
    EXPANSE_TRY(const auto bytes, file.ReadAt(at, std::min(kStep, size - at)));
    crc = platform::Crc32c(bytes, crc);
  }
  return crc;
}

Status Copier::CopyDatabase(const std::string& name) {
  const std::string source = Join(from_, name);
  if (!platform::Fs().Exists(source))
    return Error(Code::kNotFound, "there is no " + source + "; is " + from_ + " the data-dir?");
  EXPANSE_CHECK_OK(MakeDirectories(platform::DirName(Join(to_, name))));
  EXPANSE_TRY(const auto database, Database::Open("sqlite:" + source));
  EXPANSE_CHECK_OK(database->BackupTo(Join(to_, name)));
  EXPANSE_TRY(const uint32_t crc, ChecksumOf(Join(to_, name)));
  return Note(name, crc);
}

Result<bool> Copier::CopyNow(const std::string& name) {
  auto source = File::OpenToRead(Join(from_, name));
  if (!source.ok() && source.error().code() == Code::kNotFound) return false;
  if (!source.ok()) return source.error();
  EXPANSE_CHECK_OK(MakeDirectories(platform::DirName(Join(to_, name))));
  EXPANSE_TRY(auto target, File::CreateNew(Join(to_, name)));
  uint32_t crc = 0;
  for (int64_t at = 0;;) {
    EXPANSE_TRY(const int64_t size, source->Size());
    if (at >= size) break;
    auto bytes = source->ReadAt(at, std::min(kStep, size - at));
    if (!bytes.ok() && bytes.error().code() == Code::kDataLoss) break;  // a failed write taken back
    if (!bytes.ok()) return bytes.error();
    crc = platform::Crc32c(*bytes, crc);
    EXPANSE_CHECK_OK(target.Append(*bytes));
    at += static_cast<int64_t>(bytes->size());
  }
  EXPANSE_CHECK_OK(target.Sync());
  EXPANSE_CHECK_OK(Note(name, crc));
  return true;
}

Result<bool> Copier::LinkOrCopy(const std::string& name) {
  const std::string source = Join(from_, name);
  const std::string target = Join(to_, name);
  if (link(source.c_str(), target.c_str()) == 0) {
    ++report_.linked;
  } else if (errno == ENOENT) {
    return false;
  } else if (errno == EXDEV || errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP) {
    auto copied = CopyFile(source, target);
    if (!copied.ok() && copied.error().code() == Code::kNotFound) return false;
    if (!copied.ok()) return copied.error();
  } else {
    return FileError("cannot link " + source + " as", target, errno);
  }
  EXPANSE_CHECK_OK(Note(name, std::nullopt));
  return true;
}

// Merges replace files while they are listed. When two listings around the links are equal, no name
// came or went between them, and every file of the listing is linked. A file and the merged one
// that holds it too are no contradiction: the store removes the narrower one when it opens.
Status Copier::CopySealed(const std::string& sealed) {
  std::vector<std::string> done;
  EXPANSE_TRY(auto names, ListOrNothing(Join(from_, sealed)));
  for (int listing = 0; listing < kMostListings; ++listing) {
    bool all = true;
    for (const auto& name : names) {
      if (!name.ends_with(".xs") || std::binary_search(done.begin(), done.end(), name)) continue;
      EXPANSE_TRY(const bool linked, LinkOrCopy(Join(sealed, name)));
      all = all && linked;
      if (linked) done.insert(std::upper_bound(done.begin(), done.end(), name), name);
    }
    EXPANSE_TRY(auto again, ListOrNothing(Join(from_, sealed)));
    const auto is_other = [](const std::string& name) { return !name.ends_with(".xs"); };
    std::erase_if(names, is_other);
    std::erase_if(again, is_other);
    if (all && names == again) return SyncDirectory(Join(to_, sealed));
    names = std::move(again);
  }
  return Error(Code::kUnavailable, Join(from_, sealed) + " changes faster than it can be copied");
}

Status Copier::CopySeries(const std::string& series) {
  EXPANSE_TRY(const auto logs, ListOrNothing(Join(from_, series + "/wal")));
  EXPANSE_CHECK_OK(MakeDirectories(Join(to_, series + "/wal")));
  EXPANSE_CHECK_OK(MakeDirectories(Join(to_, series + "/sealed")));
  for (const auto& name : logs) {
    EXPANSE_TRY([[maybe_unused]] const bool log_there, CopyNow(series + "/wal/" + name));
  }
  EXPANSE_CHECK_OK(SyncDirectory(Join(to_, series + "/wal")));
  EXPANSE_CHECK_OK(CopySealed(series + "/sealed"));
  EXPANSE_TRY([[maybe_unused]] const bool there, CopyNow(series + "/facts.log"));
  return SyncDirectory(Join(to_, series));
}

Status Copier::CopyBlobs(const std::string& directory) {
  EXPANSE_TRY(const auto names, ListOrNothing(Join(from_, directory)));
  EXPANSE_CHECK_OK(MakeDirectories(Join(to_, directory)));
  for (const auto& name : names) {
    const std::string path = Join(directory, name);
    const auto info = platform::Fs().LStat(Join(from_, path));
    if (!info.ok()) continue;  // retention has taken it
    if (info->is_directory && name != "tmp") EXPANSE_CHECK_OK(CopyBlobs(path));
    if (!info->is_regular) continue;
    EXPANSE_TRY([[maybe_unused]] const bool there, LinkOrCopy(path));
  }
  return SyncDirectory(Join(to_, directory));
}

Result<BackupReport> Copier::Finish() {
  EXPANSE_CHECK_OK(SyncDirectory(to_));
  EXPANSE_CHECK_OK(
      platform::Fs().WriteAtomic(Join(to_, kManifest), EncodeManifest(entries_), 0600));
  return report_;
}

}  // namespace

Status RefuseFilled(const std::string& path, const std::string& use) {
  EXPANSE_TRY(const auto names, ListOrNothing(path));
  if (names.empty()) return {};
  return Error(Code::kAlreadyExists, path + " is not empty (" + names.front() + "); " + use);
}

Result<BackupReport> Backup(const std::string& directory, const BackupLayout& layout,
                            const std::string& to) {
  EXPANSE_CHECK_OK(RefuseFilled(to, "name a new directory for the backup"));
  EXPANSE_CHECK_OK(RefuseHalfRestored(directory));
  EXPANSE_TRY(const std::string from, platform::Fs().RealPath(directory));
  EXPANSE_CHECK_OK(MakeDirectories(to));
  Copier copier(from, to);
  for (const auto& database : layout.databases) EXPANSE_CHECK_OK(copier.CopyDatabase(database));
  for (const auto& file : layout.files) {
    EXPANSE_TRY([[maybe_unused]] const bool there, copier.CopyNow(file));
  }
  if (!layout.series.empty()) EXPANSE_CHECK_OK(copier.CopySeries(layout.series));
  if (!layout.blobs.empty()) EXPANSE_CHECK_OK(copier.CopyBlobs(layout.blobs));
  return copier.Finish();
}

}  // namespace expanse::storage
