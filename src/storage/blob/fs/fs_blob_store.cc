// SPDX-License-Identifier: Apache-2.0
#include "storage/blob/fs/fs_blob_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <utility>

#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "platform/crypto/crypto.h"
#include "platform/fs/fs.h"
#include "storage/file.h"
#include "storage/zstd_codec.h"

namespace expanse::storage {
namespace {

constexpr int kZstdLevel = 6;
constexpr std::string_view kSuffix = ".zst";
constexpr int64_t kStaleMs = 3'600'000;
// zstd's worst case on bytes it cannot compress, for the bound on what is read.
constexpr int64_t StoredBound(int64_t content) { return content + content / 128 + 1024; }

class FsBlobStore final : public BlobStore {
 public:
  explicit FsBlobStore(std::string directory) : directory_(std::move(directory)) {}

  Status Prepare() {
    EXPANSE_CHECK_OK(MakeDirectories(directory_ + "/tmp"));
    EXPANSE_TRY(const auto names, fs_.List(directory_ + "/tmp"));
    const auto now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
    for (const auto& name : names) {
      const std::string path = directory_ + "/tmp/" + name;
      const auto info = fs_.Stat(path);
      if (info.ok() && info->mtime_ms < ToUnixMillis(now) - kStaleMs)
        EXPANSE_CHECK_OK(RemoveFile(path));
    }
    return {};
  }

  Result<BlobKey> Put(const OrgId& org, std::string_view kind, std::string_view bytes) override {
    BlobKey key{org, std::string(kind), platform::Sha256Hex(bytes)};
    EXPANSE_CHECK_OK(key.Validate());
    const std::string path = PathOf(key);
    // What is there is trusted only after a read: storing again repairs a damaged file.
    if (const auto known = Get(key, static_cast<int64_t>(bytes.size())); known.ok()) {
      EXPANSE_CHECK_OK(SyncDirectory(platform::DirName(path)));
      return key;
    } else if (known.error().code() == Code::kDataLoss) {
      log::Warning("storage.blob_replaced",
                   {{"key", key.ToString()}, {"why", known.error().message()}});
    }
    EXPANSE_CHECK_OK(MakeDurable(platform::DirName(path)));
    const std::string temporary = directory_ + "/tmp/" + key.sha256 + "." +
                                  std::to_string(getpid()) + "." +
                                  std::to_string(next_temporary_.fetch_add(1));
    auto written = WriteTemporary(temporary, ZstdCompress(bytes, kZstdLevel));
    if (written.ok()) written = PublishFile(temporary, path);
    if (!written.ok()) {
      (void)RemoveFile(temporary);
      return written.error();
    }
    return key;
  }

  Result<std::string> Get(const BlobKey& key, int64_t max_bytes) override {
    EXPANSE_CHECK_OK(key.Validate());
    EXPANSE_TRY(const auto file, OpenBlob(key));
    EXPANSE_TRY(const int64_t size, file.Size());
    if (size > StoredBound(max_bytes))
      return Error(Code::kResourceExhausted, "blob " + key.ToString() + " has " +
                                                 std::to_string(size) + " bytes on disk; " +
                                                 std::to_string(max_bytes) + " are allowed");
    EXPANSE_TRY(const auto stored, file.ReadAt(0, size));
    auto bytes = ZstdDecompress(stored, static_cast<size_t>(max_bytes));
    if (!bytes.ok()) return bytes.error().WithContext("blob " + key.ToString());
    if (platform::Sha256Hex(*bytes) != key.sha256)
      return Error(Code::kDataLoss,
                   "blob " + key.ToString() + ": the stored bytes have another hash");
    return bytes;
  }

  Result<BlobInfo> Head(const BlobKey& key) override {
    EXPANSE_CHECK_OK(key.Validate());
    EXPANSE_TRY(const auto file, OpenBlob(key));
    EXPANSE_TRY(const int64_t stored, file.Size());
    EXPANSE_TRY(const auto start, file.ReadAt(0, std::min<int64_t>(stored, 32)));
    auto size = ZstdContentSize(start);
    if (!size.ok()) return size.error().WithContext("blob " + key.ToString());
    EXPANSE_TRY(const auto info, fs_.Stat(PathOf(key)));
    return BlobInfo{key, *size, stored, info.mtime_ms};
  }

  Status Delete(const BlobKey& key) override {
    EXPANSE_CHECK_OK(key.Validate());
    return RemoveFile(PathOf(key));
  }

  Result<BlobPage> List(const OrgId& org, std::string_view kind, std::string_view after,
                        size_t limit) override {
    const BlobKey probe{org, std::string(kind), std::string(64, '0')};
    EXPANSE_CHECK_OK(probe.Validate());
    const std::string base = directory_ + "/" + org.str() + "/" + std::string(kind);
    BlobPage page;
    EXPANSE_TRY(const auto shards, ListOrNothing(base));
    for (const auto& shard : shards) {
      if (shard < after.substr(0, 2)) continue;
      EXPANSE_TRY(const auto names, ListOrNothing(base + "/" + shard));
      for (const auto& name : names) {
        if (!name.ends_with(kSuffix)) continue;
        BlobKey key{org, std::string(kind), name.substr(0, name.size() - kSuffix.size())};
        if (!key.Validate().ok() || key.sha256 <= after) continue;
        if (page.blobs.size() == limit) {
          page.next = limit == 0 ? std::string(after) : page.blobs.back().key.sha256;
          return page;
        }
        auto info = Head(key);
        if (info.ok())
          page.blobs.push_back(*std::move(info));
        else if (info.error().code() == Code::kDataLoss)
          page.blobs.push_back({key, 0, 0, 0});
        else if (info.error().code() != Code::kNotFound)
          return info.error();
      }
    }
    return page;
  }

 private:
  std::string PathOf(const BlobKey& key) const {
    return directory_ + "/" + key.org.str() + "/" + key.kind + "/" + key.sha256.substr(0, 2) + "/" +
           key.sha256 + std::string(kSuffix);
  }

  static Result<File> OpenBlob(const std::string& path, const BlobKey& key) {
    auto file = File::OpenToRead(path);
    if (!file.ok() && file.error().code() == Code::kNotFound)
      return Error(Code::kNotFound, "there is no blob " + key.ToString());
    return file;
  }
  Result<File> OpenBlob(const BlobKey& key) const { return OpenBlob(PathOf(key), key); }

  static Status WriteTemporary(const std::string& path, std::string_view bytes) {
    EXPANSE_TRY(auto file, File::CreateNew(path));
    EXPANSE_CHECK_OK(file.Append(bytes));
    return file.Sync();
  }

  // A directory that is there may have been made by a thread, or a process that was killed, before
  // its name was on the disk: each one's parent is synced once by every process.
  Status MakeDurable(const std::string& directory) {
    const std::lock_guard lock(mutex_);
    if (durable_.contains(directory)) return {};
    EXPANSE_CHECK_OK(MakeDirectories(directory));
    std::string at = directory;
    while (at != directory_ && !durable_.contains(at)) {
      const std::string parent = platform::DirName(at);
      EXPANSE_CHECK_OK(SyncDirectory(parent));
      at = parent;
    }
    durable_.insert(directory);
    return {};
  }

  Result<std::vector<std::string>> ListOrNothing(const std::string& path) const {
    auto names = fs_.List(path);
    if (!names.ok() && names.error().code() == Code::kNotFound) return std::vector<std::string>();
    return names;
  }

  std::string directory_;
  platform::Fs fs_;
  std::mutex mutex_;
  std::set<std::string> durable_;  // at most 256 a kind and organisation
  std::atomic<uint64_t> next_temporary_ = 0;
};

}  // namespace

Result<std::unique_ptr<BlobStore>> OpenFsBlobStore(const std::string& directory) {
  auto store = std::make_unique<FsBlobStore>(directory);
  EXPANSE_CHECK_OK(store->Prepare());
  return std::unique_ptr<BlobStore>(std::move(store));
}

}  // namespace expanse::storage
