// SPDX-License-Identifier: Apache-2.0
// The read side of the embedded store.
#include <algorithm>

#include "base/log.h"
#include "storage/series/embedded_store_impl.h"

namespace expanse::storage {

Result<EmbeddedStore::Collected> EmbeddedStore::Collect(const SeriesSelector& selector,
                                                        TimeRange& range) {
  if (selector.org.empty())
    return Error(Code::kInvalidArgument, "a query of series needs an organisation");
  SealedFiles sealed;
  std::vector<std::shared_ptr<const Head>> frozen;
  Adoptions adoptions;
  Collected out;
  SeriesPieces from_active;
  {
    const std::shared_lock state(state_mutex_);
    range.from_ms = std::max(range.from_ms, facts_->keep_from_ms());
    adoptions = facts_->adoptions();
    sealed = sealed_;
    frozen.assign(frozen_.begin(), frozen_.end());
    out.damage = standing_damage_;
    if (active_ != nullptr) {
      SelectorScan scan(selector, range, adoptions);
      scan.AddHead(*active_);
      from_active = std::move(scan.pieces);
    }
  }
  SelectorScan scan(selector, range, adoptions);
  for (const auto& file : sealed) scan.AddFile(file);
  for (const auto& head : frozen) scan.AddHead(*head);
  for (auto& [key, pieces] : from_active) {
    auto& to = scan.pieces[key];
    std::move(pieces.begin(), pieces.end(), std::back_inserter(to));
  }
  ReportDamage(scan.damage);
  out.pieces = std::move(scan.pieces);
  std::move(scan.damage.begin(), scan.damage.end(), std::back_inserter(out.damage));
  return out;
}

void EmbeddedStore::ReportDamage(const std::vector<std::string>& damage) {
  for (const auto& what : damage) {
    const std::unique_lock state(state_mutex_);
    if (!known_damage_.insert(what).second) continue;  // reported before
    ++damaged_parts_;
    log::Error("storage.series_damaged", {{"what", what}});
  }
}

template <typename T, typename Make>
Result<SeriesAnswer<T>> EmbeddedStore::Answer(const SeriesSelector& selector, TimeRange range,
                                              Make make) {
  EXPANSE_TRY(auto collected, Collect(selector, range));
  SeriesAnswer<T> answer;
  answer.damage = std::move(collected.damage);
  ChunkReader reader;
  std::vector<std::string> damage;
  for (auto& [key, pieces] : collected.pieces)
    make(key, std::move(pieces), range, reader, damage, answer.series);
  ReportDamage(damage);
  std::move(damage.begin(), damage.end(), std::back_inserter(answer.damage));
  return answer;
}

Result<SeriesAnswer<BucketSeries>> EmbeddedStore::Query(const SeriesSelector& selector,
                                                        const BucketQuery& query) {
  if (query.interval_ms < 1 || query.max_points < 1)
    return Error(Code::kInvalidArgument, "the interval and max_points have to be 1 or more");
  return Answer<BucketSeries>(
      selector, query.range,
      [&query](const SeriesKey& key, std::vector<SeriesPiece> pieces, TimeRange range,
               ChunkReader& reader, auto& damage, std::vector<BucketSeries>& out) {
        const Columns columns = ReadPieces(std::move(pieces), range, reader, damage);
        if (columns.empty()) return;
        BucketSeries series{key, {}, false};
        series.buckets = Bucketise(columns, query, series.truncated);
        out.push_back(std::move(series));
      });
}

Result<SeriesAnswer<RawSeries>> EmbeddedStore::Read(const SeriesSelector& selector, TimeRange range,
                                                    size_t max_samples) {
  return Answer<RawSeries>(
      selector, range,
      [max_samples](const SeriesKey& key, std::vector<SeriesPiece> pieces, TimeRange within,
                    ChunkReader& reader, auto& damage, std::vector<RawSeries>& out) {
        const Columns columns = ReadPieces(std::move(pieces), within, reader, damage);
        if (columns.empty()) return;
        RawSeries series{key, {}, columns.size() > max_samples};
        for (size_t i = 0; i < std::min(max_samples, columns.size()); ++i)
          series.samples.push_back({columns.times[i], columns.values[i]});
        out.push_back(std::move(series));
      });
}

Result<SeriesAnswer<SeriesSummary>> EmbeddedStore::Summarise(const SeriesSelector& selector,
                                                             TimeRange range) {
  return Answer<SeriesSummary>(
      selector, range,
      [](const SeriesKey& key, std::vector<SeriesPiece> pieces, TimeRange within,
         ChunkReader& reader, auto& damage, std::vector<SeriesSummary>& out) {
        auto summary = SummarisePieces(key, std::move(pieces), within, reader, damage);
        if (summary.count > 0) out.push_back(std::move(summary));
      });
}

Result<std::vector<SeriesKey>> EmbeddedStore::ListSeries(const SeriesSelector& selector,
                                                         TimeRange range) {
  EXPANSE_TRY(const auto collected, Collect(selector, range));
  std::vector<SeriesKey> out;
  for (const auto& [key, pieces] : collected.pieces) out.push_back(key);
  return out;
}

SeriesStoreStats EmbeddedStore::Stats() const {
  SeriesStoreStats stats;
  stats.appended_samples = appended_samples_;
  stats.appended_batches = appended_batches_;
  stats.fsyncs = fsyncs_;
  stats.damaged_parts = damaged_parts_;
  stats.wal_bytes = wal_bytes_;
  {
    const std::lock_guard lock(background_mutex_);
    stats.last_background_error = background_error_;
  }
  const std::shared_lock state(state_mutex_);
  stats.keep_from_ms = facts_->keep_from_ms();
  const auto add = [&stats](const Head& head) {
    stats.head_series += head.series_count();
    stats.head_samples += head.samples();
  };
  for (const auto& head : frozen_) add(*head);
  if (active_ != nullptr) add(*active_);
  for (const auto& file : sealed_) {
    ++stats.sealed_files;
    stats.sealed_bytes += file->bytes();
    stats.sealed_samples += file->samples();
  }
  return stats;
}

}  // namespace expanse::storage
