// SPDX-License-Identifier: Apache-2.0
#include "storage/relational/open_migrated.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "platform/fs/fs.h"
#include "storage/file.h"
#include "storage/relational/sqlite/repair.h"

namespace expanse::storage {
namespace {

constexpr int64_t kCheckedWhole = int64_t{256} << 20;
constexpr size_t kMostLog = size_t{512} << 20;
constexpr auto kRepairWait = std::chrono::seconds(10);
constexpr int64_t kPageOneBytes = 4096;

std::string NowText() {
  return std::to_string(ToUnixMillis(std::chrono::floor<Millis>(std::chrono::system_clock::now())));
}

/// Every process that has the database open holds it shared; a repair wants it alone, since it
/// replaces the file.
class OpenLock {
 public:
  static Result<OpenLock> Take(const std::string& path) {
    OpenLock lock;
    lock.path_ = path + ".lock";
    lock.fd_ = ::open(lock.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock.fd_ < 0) return FileError("cannot open", lock.path_, errno);
    if (::flock(lock.fd_, LOCK_SH) != 0) return FileError("cannot lock", lock.path_, errno);
    return lock;
  }
  OpenLock() = default;
  OpenLock(OpenLock&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  OpenLock& operator=(OpenLock&&) = delete;
  ~OpenLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  Status Alone() const {
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return {};
    (void)::flock(fd_, LOCK_SH);
    return Error(Code::kUnavailable,
                 "the database is damaged and another process has it open: stop that one, this one "
                 "repairs it then (" +
                     path_ + ")");
  }
  void Shared() const { (void)::flock(fd_, LOCK_SH); }

 private:
  std::string path_;
  int fd_ = -1;
};

// The first page holds the schema and SQLite's own header: without it nothing can be read. It
// hardly changes, so that a copy from the last start serves.
Status KeepFirstPage(const std::string& path) {
  EXPANSE_TRY(const auto file, File::OpenToRead(path));
  EXPANSE_TRY(const int64_t size, file.Size());
  if (size < kPageOneBytes) return {};
  EXPANSE_TRY(const auto page, file.ReadAt(0, kPageOneBytes));
  return platform::Fs().WriteAtomic(path + ".page1", page, 0600);
}

// A copy of the damaged file whose first page is the kept one; "" when there is none.
Result<std::string> WithKeptFirstPage(const std::string& path) {
  const platform::Fs fs;
  auto page = fs.Read(path + ".page1", kPageOneBytes);
  if (!page.ok() || page->size() != kPageOneBytes) return std::string();
  const std::string copy = path + ".page1-try";
  for (const char* suffix : {"", "-wal", "-shm"}) EXPANSE_CHECK_OK(RemoveFile(copy + suffix));
  EXPANSE_TRY(const auto file, File::OpenToRead(path));
  EXPANSE_TRY(const int64_t size, file.Size());
  EXPANSE_TRY(auto out, File::CreateNew(copy));
  // Its size of the file is old: SQLite asks the file when these two numbers differ.
  for (size_t i = 0; i < 4; ++i) (*page)[92 + i] = static_cast<char>(~(*page)[24 + i]);
  EXPANSE_CHECK_OK(out.Append(*page));
  for (int64_t at = kPageOneBytes; at < size; at += int64_t{1} << 20) {
    EXPANSE_TRY(const auto bytes, file.ReadAt(at, std::min(int64_t{1} << 20, size - at)));
    EXPANSE_CHECK_OK(out.Append(bytes));
  }
  if (fs.Exists(path + "-wal")) EXPANSE_CHECK_OK(CopyFile(path + "-wal", copy + "-wal"));
  return copy;
}

// Takes the finished repair into the place of the damaged file. Each step can be repeated.
Status Swap(const std::string& path) {
  const std::string kept = path + ".damaged-" + NowText();
  if (platform::Fs().Exists(path + "-wal"))
    EXPANSE_CHECK_OK(PublishFile(path + "-wal", kept + "-wal"));
  EXPANSE_CHECK_OK(RemoveFile(path + "-shm"));
  if (link(path.c_str(), kept.c_str()) != 0 && errno != ENOENT)
    EXPANSE_CHECK_OK(CopyFile(path, kept));
  return PublishFile(path + ".repaired", path);
}

Status RepairAlone(const std::string& path, std::span<const Migration> migrations,
                   const std::string& why) {
  log::Error("storage.database_damaged", {{"file", path}, {"finding", why}});
  const std::string target = path + ".repair";
  for (const char* suffix : {"", "-wal", "-shm"}) EXPANSE_CHECK_OK(RemoveFile(target + suffix));
  {
    EXPANSE_TRY(const auto fresh, Database::Open("sqlite:" + target));
    EXPANSE_CHECK_OK(Migrate(*fresh, migrations));
  }
  auto copied = sqlite::CopyReadableRows(path, target);
  if (!copied.ok() && copied.error().code() == Code::kDataLoss) {
    EXPANSE_TRY(const std::string other, WithKeptFirstPage(path));
    if (!other.empty()) copied = sqlite::CopyReadableRows(other, target);
    for (const char* suffix : {"", "-wal", "-shm"}) (void)RemoveFile(other + suffix);
  }
  if (!copied.ok())
    return copied.error().WithContext(
        "the database is damaged and was not repaired; "
        "`restore` brings a backup back");
  {
    EXPANSE_TRY(const auto repaired, Database::Open("sqlite:" + target));
    EXPANSE_CHECK_OK(repaired->CheckIntegrity());
  }
  for (const char* suffix : {"-wal", "-shm"}) EXPANSE_CHECK_OK(RemoveFile(target + suffix));
  {
    // The rows went in without syncs.
    const int fd = ::open(target.c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = fd >= 0 && ::fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (!synced) return FileError("cannot sync", target, error);
  }
  EXPANSE_CHECK_OK(PublishFile(target, path + ".repaired"));
  EXPANSE_CHECK_OK(Swap(path));
  log::Error("storage.database_repaired", {{"file", path},
                                           {"rows", copied->rows},
                                           {"rows_lost", copied->lost},
                                           {"damaged_places", copied->damaged_places},
                                           {"tables", copied->tables},
                                           {"kept_as", path + ".damaged-*"}});
  return {};
}

Status Repair(const std::string& path, std::span<const Migration> migrations,
              const std::string& why, const OpenLock& lock) {
  EXPANSE_CHECK_OK(lock.Alone());
  const Status repaired = RepairAlone(path, migrations, why);
  lock.Shared();
  return repaired;
}

void NameLogDamage(const std::string& path) {
  const auto wal = platform::Fs().Read(path + "-wal", kMostLog);
  if (!wal.ok()) return;
  const auto damage = sqlite::InspectLog(*wal);
  if (damage.lost_frames == 0) return;
  const std::string kept = path + "-wal.damaged-" + NowText();
  const Status copied = CopyFile(path + "-wal", kept);
  log::Error("storage.database_log_damaged", {{"file", path + "-wal"},
                                              {"whole_frames", damage.whole_frames},
                                              {"lost_frames", damage.lost_frames},
                                              {"kept_as", copied.ok() ? kept : ""}});
}

/// Opens and migrates; kDataLoss when a look at the file finds damage.
Result<std::unique_ptr<Database>> OpenOnce(const std::string& path,
                                           std::span<const Migration> migrations) {
  EXPANSE_TRY(auto database, Database::Open("sqlite:" + path));
  const auto info = platform::Fs().Stat(path);
  if (info.ok() && info->size <= kCheckedWhole) EXPANSE_CHECK_OK(database->CheckIntegrity());
  EXPANSE_CHECK_OK(Migrate(*database, migrations));
  (void)database->Query("PRAGMA wal_checkpoint(PASSIVE)");
  if (const Status kept = KeepFirstPage(path); !kept.ok())
    log::Warning("storage.first_page_not_kept", {{"reason", kept.error().message()}});
  return database;
}

Result<std::unique_ptr<Database>> OpenOrRepair(const std::string& path,
                                               std::span<const Migration> migrations,
                                               const OpenLock& lock) {
  if (platform::Fs().Exists(path + ".repaired")) {
    EXPANSE_CHECK_OK(lock.Alone());
    const Status swapped = Swap(path);
    lock.Shared();
    EXPANSE_CHECK_OK(swapped);
  }
  NameLogDamage(path);
  auto opened = OpenOnce(path, migrations);
  if (opened.ok() || opened.error().code() != Code::kDataLoss) return opened;
  EXPANSE_CHECK_OK(Repair(path, migrations, opened.error().message(), lock));
  return OpenOnce(path, migrations);
}

class RepairingDatabase final : public Database {
 public:
  RepairingDatabase(std::string path, std::span<const Migration> migrations, OpenLock lock,
                    std::unique_ptr<Database> inner)
      : path_(std::move(path)),
        migrations_(migrations),
        lock_(std::move(lock)),
        inner_(std::move(inner)) {}

  Result<std::unique_ptr<Transaction>> Begin(Access access) override {
    EXPANSE_TRY(auto lease, Take());
    auto begun = lease->Begin(access);
    if (!begun.ok()) {
      Return(begun.error().code() == Code::kDataLoss);
      return begun.error();
    }
    return std::unique_ptr<Transaction>(std::make_unique<Watched>(*this, *std::move(begun)));
  }
  Status BackupTo(const std::string& path) override {
    EXPANSE_TRY(auto lease, Take());
    auto done = lease->BackupTo(path);
    Return(false);
    return done;
  }
  Status CheckIntegrity() override {
    EXPANSE_TRY(auto lease, Take());
    auto done = lease->CheckIntegrity();
    Return(!done.ok() && done.error().code() == Code::kDataLoss);
    return done;
  }
  std::string Name() const override { return "sqlite:" + path_; }

 private:
  class Watched final : public Transaction {
   public:
    Watched(RepairingDatabase& owner, std::unique_ptr<Transaction> inner)
        : owner_(owner), inner_(std::move(inner)) {}
    ~Watched() override {
      inner_.reset();
      owner_.Return(damaged_);
    }
    Result<Rows> Query(std::string_view sql, std::span<const Value> params) override {
      return Note(inner_->Query(sql, params));
    }
    Result<int64_t> Execute(std::string_view sql, std::span<const Value> params) override {
      return Note(inner_->Execute(sql, params));
    }
    Status ExecuteScript(std::string_view sql) override { return Note(inner_->ExecuteScript(sql)); }
    Status Commit() override { return Note(inner_->Commit()); }

   private:
    template <typename T>
    T Note(T result) {
      damaged_ = damaged_ || (!result.ok() && result.error().code() == Code::kDataLoss);
      return result;
    }
    RepairingDatabase& owner_;
    std::unique_ptr<Transaction> inner_;
    bool damaged_ = false;
  };

  // Repairs first when damage was noted and nobody is inside.
  Result<Database*> Take() {
    std::unique_lock lock(mutex_);
    if (damaged_) {
      if (!idle_.wait_for(lock, kRepairWait, [this] { return inside_ == 0; }))
        return Error(Code::kUnavailable, path_ + " is damaged and waits to be repaired");
      if (damaged_) EXPANSE_CHECK_OK(RepairNow());
    }
    ++inside_;
    return inner_.get();
  }
  Status RepairNow() {
    inner_.reset();
    Status repaired = Repair(path_, migrations_, "found while it was in use", lock_);
    auto opened = OpenOnce(path_, migrations_);
    if (!opened.ok()) {
      // Whatever it is, the next transaction tries again.
      EXPANSE_TRY(inner_, Database::Open("sqlite:" + path_));
      return opened.error();
    }
    inner_ = *std::move(opened);
    damaged_ = false;
    return repaired;
  }
  void Return(bool damaged) {
    const std::lock_guard lock(mutex_);
    --inside_;
    damaged_ = damaged_ || damaged;
    if (inside_ == 0) idle_.notify_all();
  }

  const std::string path_;
  const std::span<const Migration> migrations_;
  const OpenLock lock_;
  std::mutex mutex_;
  std::condition_variable idle_;
  int inside_ = 0;
  bool damaged_ = false;
  std::unique_ptr<Database> inner_;
};

}  // namespace

Result<std::unique_ptr<Database>> OpenMigrated(const std::string& path,
                                               std::span<const Migration> migrations) {
  EXPANSE_TRY(auto lock, OpenLock::Take(path));
  EXPANSE_TRY(auto opened, OpenOrRepair(path, migrations, lock));
  return std::unique_ptr<Database>(
      std::make_unique<RepairingDatabase>(path, migrations, std::move(lock), std::move(opened)));
}

}  // namespace expanse::storage
