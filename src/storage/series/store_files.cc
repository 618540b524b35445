// SPDX-License-Identifier: Apache-2.0
#include "storage/series/store_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/log.h"
#include "platform/fs/fs.h"

namespace expanse::storage {
namespace {

constexpr std::string_view kWalSuffix = ".wal";
constexpr std::string_view kSealedSuffix = ".xs";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr size_t kDigits = 16;

std::optional<uint64_t> ParseHex(std::string_view text) {
  uint64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v, 16);
  if (text.size() != kDigits || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return v;
}

std::optional<SequenceRange> ParseSealedName(std::string_view name) {
  if (name.size() != 2 * kDigits + 1 + kSealedSuffix.size() || !name.ends_with(kSealedSuffix) ||
      name[kDigits] != '-')
    return std::nullopt;
  const auto first = ParseHex(name.substr(0, kDigits));
  const auto last = ParseHex(name.substr(kDigits + 1, kDigits));
  if (!first.has_value() || !last.has_value() || *first > *last) return std::nullopt;
  return SequenceRange{*first, *last};
}

bool Contains(const SealedFile& file, const SequenceRange& range) {
  return file.first_sequence() <= range.first && range.last <= file.last_sequence();
}

SeriesKey Resolved(const SeriesKey& key, const Adoptions& adoptions) {
  SeriesKey out = key;
  if (!adoptions.empty()) out.execution = adoptions.Resolve(key.org, key.execution);
  return out;
}

// Removes the temporary file unless it was published.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) (void)RemoveFile(path_);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  void Published() { path_.clear(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Status StoreFiles::MakeDirectories() const {
  EXPANSE_CHECK_OK(storage::MakeDirectories(directory_ + "/wal"));
  return storage::MakeDirectories(directory_ + "/sealed");
}

std::string StoreFiles::WalPath(uint64_t sequence) const {
  return fmt::format("{}/wal/{:016x}.wal", directory_, sequence);
}

std::string StoreFiles::SealedPath(SequenceRange range) const {
  return fmt::format("{}/sealed/{:016x}-{:016x}.xs", directory_, range.first, range.last);
}

Result<StoreFiles::Found> StoreFiles::Load() const {
  const platform::Fs fs;
  Found found;
  EXPANSE_TRY(const auto sealed_names, fs.List(directory_ + "/sealed"));
  std::vector<SequenceRange> ranges;
  for (const auto& name : sealed_names) {
    if (const auto range = ParseSealedName(name); range.has_value())
      ranges.push_back(*range);
    else if (name.ends_with(kTemporarySuffix))
      EXPANSE_CHECK_OK(RemoveFile(directory_ + "/sealed/" + name));
  }
  // The widest first, so that what a merge has replaced is seen to be contained.
  std::sort(ranges.begin(), ranges.end(), [](const SequenceRange& a, const SequenceRange& b) {
    return a.last - a.first > b.last - b.first;
  });
  for (const auto& range : ranges) {
    found.last_sequence = std::max(found.last_sequence, range.last);
    if (std::any_of(found.sealed.begin(), found.sealed.end(),
                    [&](const auto& file) { return Contains(*file, range); })) {
      EXPANSE_CHECK_OK(RemoveFile(SealedPath(range)));
      continue;
    }
    auto file = SealedFile::Open(SealedPath(range), range.first, range.last);
    if (file.ok()) {
      found.sealed.push_back(*std::move(file));
    } else if (file.error().code() == Code::kDataLoss) {
      found.unreadable.push_back(range);
      found.damage.push_back(file.error().message());
    } else {
      return file.error();
    }
  }
  std::sort(found.sealed.begin(), found.sealed.end(),
            [](const auto& a, const auto& b) { return a->first_sequence() < b->first_sequence(); });
  EXPANSE_TRY(const auto wal_names, fs.List(directory_ + "/wal"));
  for (const auto& name : wal_names) {
    if (!name.ends_with(kWalSuffix)) continue;
    const auto sequence =
        ParseHex(std::string_view(name).substr(0, name.size() - kWalSuffix.size()));
    if (!sequence.has_value()) continue;
    found.last_sequence = std::max(found.last_sequence, *sequence);
    if (std::any_of(found.sealed.begin(), found.sealed.end(), [&](const auto& file) {
          return Contains(*file, {*sequence, *sequence});
        }))
      EXPANSE_CHECK_OK(RemoveFile(WalPath(*sequence)));
    else
      found.wal.push_back(*sequence);
  }
  return found;
}

Result<std::shared_ptr<const SealedFile>> StoreFiles::Publish(SealedFileWriter& writer,
                                                              const std::string& temporary,
                                                              SequenceRange range) const {
  EXPANSE_CHECK_OK(writer.Finish());
  EXPANSE_CHECK_OK(PublishFile(temporary, SealedPath(range)));
  EXPANSE_TRY(auto file, SealedFile::Open(SealedPath(range), range.first, range.last));
  return std::shared_ptr<const SealedFile>(std::move(file));
}

Result<std::shared_ptr<const SealedFile>> StoreFiles::Seal(const Head& head,
                                                           const Adoptions& adoptions,
                                                           int64_t keep_from_ms) const {
  struct Item {
    SeriesKey key;
    const Columns* columns;
  };
  std::vector<Item> items;
  head.Scan(SeriesKey(), [&](const SeriesKey& key, const HeadSeries& series) {
    if (!series.columns.empty()) items.push_back({Resolved(key, adoptions), &series.columns});
    return true;
  });
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return InFileOrder(a.key, b.key); });
  const SequenceRange range{head.sequence(), head.sequence()};
  Temporary temporary(SealedPath(range) + std::string(kTemporarySuffix));
  EXPANSE_CHECK_OK(RemoveFile(temporary.path()));
  EXPANSE_TRY(auto writer, SealedFileWriter::Create(temporary.path()));
  for (size_t at = 0; at < items.size();) {
    std::vector<Columns> runs;
    const SeriesKey& key = items[at].key;
    for (; at < items.size() && items[at].key == key; ++at) {
      runs.push_back(*items[at].columns);
      SortLastWins(runs.back());
    }
    EXPANSE_CHECK_OK(writer.Add(key, Cut(MergeRuns(std::move(runs)), {keep_from_ms})));
  }
  if (writer.empty()) return std::shared_ptr<const SealedFile>();
  EXPANSE_TRY(auto file, Publish(writer, temporary.path(), range));
  temporary.Published();
  return file;
}

Result<std::shared_ptr<const SealedFile>> StoreFiles::Merge(const SealedFiles& files,
                                                            const Adoptions& adoptions,
                                                            int64_t keep_from_ms) const {
  struct Item {
    SeriesKey key;
    size_t file;
    std::vector<ChunkMeta> chunks;
  };
  std::vector<Item> items;
  std::vector<std::string> damage;
  for (size_t i = 0; i < files.size(); ++i)
    files[i]->Scan(
        SeriesKey(),
        [&](IndexEntry&& entry) {
          items.push_back({Resolved(entry.key, adoptions), i, std::move(entry.chunks)});
          return true;
        },
        damage);
  if (!damage.empty()) return Error(Code::kDataLoss, damage.front());
  // Stable: of one series the earlier file comes first, so that the later one wins.
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return InFileOrder(a.key, b.key); });
  const SequenceRange range{files.front()->first_sequence(), files.back()->last_sequence()};
  Temporary temporary(SealedPath(range) + std::string(kTemporarySuffix));
  EXPANSE_CHECK_OK(RemoveFile(temporary.path()));
  EXPANSE_TRY(auto writer, SealedFileWriter::Create(temporary.path()));
  std::vector<ChunkReader> readers(files.size());
  for (size_t at = 0; at < items.size();) {
    std::vector<Columns> runs;
    const SeriesKey& key = items[at].key;
    for (; at < items.size() && items[at].key == key; ++at)
      for (const ChunkMeta& chunk : items[at].chunks) {
        EXPANSE_TRY(auto run, readers[items[at].file].Read(*files[items[at].file], chunk));
        runs.push_back(std::move(run));
      }
    EXPANSE_CHECK_OK(writer.Add(key, Cut(MergeRuns(std::move(runs)), {keep_from_ms})));
  }
  if (writer.empty()) return std::shared_ptr<const SealedFile>();
  EXPANSE_TRY(auto file, Publish(writer, temporary.path(), range));
  temporary.Published();
  return file;
}

}  // namespace expanse::storage
