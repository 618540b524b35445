// SPDX-License-Identifier: Apache-2.0
#include "storage/series/store_view.h"

#include <algorithm>
#include <numeric>

#include "storage/series/series_key.h"

namespace expanse::storage {
namespace {

int64_t FirstOf(const SeriesPiece& piece) {
  return piece.file != nullptr ? piece.chunk.first_ms : piece.columns.times.front();
}
int64_t LastOf(const SeriesPiece& piece) {
  return piece.file != nullptr ? piece.chunk.last_ms : piece.columns.times.back();
}

void AddTo(SeriesSummary& summary, double& sum, int64_t count, int64_t first_ms, int64_t last_ms,
           double min, double max, double piece_sum, double last) {
  if (summary.count == 0) {
    summary.first_ms = first_ms;
    summary.min = min;
    summary.max = max;
  }
  summary.count += count;
  summary.last_ms = last_ms;
  summary.min = std::min(summary.min, min);
  summary.max = std::max(summary.max, max);
  summary.last = last;
  sum += piece_sum;
}

void AddColumns(SeriesSummary& summary, double& sum, const Columns& columns) {
  if (columns.empty()) return;
  const auto [least, most] = std::minmax_element(columns.values.begin(), columns.values.end());
  AddTo(summary, sum, static_cast<int64_t>(columns.size()), columns.times.front(),
        columns.times.back(), *least, *most,
        std::accumulate(columns.values.begin(), columns.values.end(), 0.0), columns.values.back());
}

}  // namespace

SelectorScan::SelectorScan(const SeriesSelector& selector, TimeRange range,
                           const Adoptions& adoptions)
    : selector_(selector), range_(range), adoptions_(adoptions) {
  if (!selector.execution.has_value()) return;
  executions_ = selector.execution->empty() ? std::vector<ExecutionId>{ExecutionId()}
                                            : adoptions.AllOf(selector.org, *selector.execution);
}

bool SelectorScan::Wants(const SeriesKey& key) const { return MatchesButExecution(selector_, key); }

SeriesKey SelectorScan::Answered(const SeriesKey& key) const {
  SeriesKey out = key;
  if (!adoptions_.empty() && !key.execution.empty())
    out.execution = adoptions_.Resolve(key.org, key.execution);
  return out;
}

// Keys begin with organisation and execution: each wanted execution is one run of neighbours.
template <typename Visit>
void SelectorScan::ForEachStart(Visit visit) const {
  SeriesKey start;
  start.org = selector_.org;
  if (executions_.empty())
    visit(start, [this](const SeriesKey& key) { return key.org == selector_.org; });
  for (const ExecutionId& execution : executions_) {
    start.execution = execution;
    visit(start, [this, &execution](const SeriesKey& key) {
      return key.org == selector_.org && key.execution == execution;
    });
  }
}

void SelectorScan::AddFile(const std::shared_ptr<const SealedFile>& file) {
  if (file->first_ms() >= range_.to_ms || file->last_ms() < range_.from_ms) return;
  ForEachStart([&](const SeriesKey& start, const auto& within) {
    file->Scan(
        start,
        [&](IndexEntry&& entry) {
          if (!within(entry.key)) return false;
          if (!Wants(entry.key)) return true;
          std::vector<SeriesPiece>* to = nullptr;
          for (const ChunkMeta& chunk : entry.chunks) {
            if (chunk.first_ms >= range_.to_ms || chunk.last_ms < range_.from_ms) continue;
            if (to == nullptr) to = &pieces[Answered(entry.key)];
            to->push_back({file, chunk, {}});
          }
          return true;
        },
        damage);
  });
}

void SelectorScan::AddHead(const Head& head) {
  if (head.samples() == 0 || head.first_ms() >= range_.to_ms || head.last_ms() < range_.from_ms)
    return;
  ForEachStart([&](const SeriesKey& start, const auto& within) {
    head.Scan(start, [&](const SeriesKey& key, const HeadSeries& series) {
      if (!within(key)) return false;
      if (!Wants(key) || series.columns.empty()) return true;
      Columns columns = series.columns;
      SortLastWins(columns);
      columns = Cut(std::move(columns), range_);
      if (!columns.empty()) pieces[Answered(key)].push_back({nullptr, {}, std::move(columns)});
      return true;
    });
  });
}

Columns ReadPieces(std::vector<SeriesPiece> pieces, TimeRange range, ChunkReader& reader,
                   std::vector<std::string>& damage) {
  std::vector<Columns> runs;
  for (SeriesPiece& piece : pieces) {
    if (piece.file == nullptr) {
      runs.push_back(std::move(piece.columns));
      continue;
    }
    auto run = reader.Read(*piece.file, piece.chunk);
    if (run.ok()) {
      runs.push_back(*std::move(run));
      continue;
    }
    // Every chunk of a damaged block fails with the same words.
    const auto& what = run.error().message();
    if (std::find(damage.begin(), damage.end(), what) == damage.end()) damage.push_back(what);
  }
  return Cut(MergeRuns(std::move(runs)), range);
}

SeriesSummary SummarisePieces(const SeriesKey& key, std::vector<SeriesPiece> pieces,
                              TimeRange range, ChunkReader& reader,
                              std::vector<std::string>& damage) {
  SeriesSummary summary;
  summary.key = key;
  double sum = 0;
  std::vector<const SeriesPiece*> order;
  for (const auto& piece : pieces) order.push_back(&piece);
  std::stable_sort(order.begin(), order.end(), [](const SeriesPiece* a, const SeriesPiece* b) {
    return FirstOf(*a) < FirstOf(*b);
  });
  const bool apart = std::adjacent_find(order.begin(), order.end(),
                                        [](const SeriesPiece* a, const SeriesPiece* b) {
                                          return LastOf(*a) >= FirstOf(*b);
                                        }) == order.end();
  if (apart) {
    for (const SeriesPiece* piece : order) {
      const ChunkMeta& chunk = piece->chunk;
      if (piece->file != nullptr && chunk.first_ms >= range.from_ms && chunk.last_ms < range.to_ms)
        AddTo(summary, sum, chunk.count, chunk.first_ms, chunk.last_ms, chunk.min, chunk.max,
              chunk.sum, chunk.last);
      else
        AddColumns(summary, sum, ReadPieces({*piece}, range, reader, damage));
    }
  } else {
    AddColumns(summary, sum, ReadPieces(std::move(pieces), range, reader, damage));
  }
  if (summary.count > 0)
    summary.avg = std::clamp(sum / static_cast<double>(summary.count), summary.min, summary.max);
  return summary;
}

}  // namespace expanse::storage
