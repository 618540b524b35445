// SPDX-License-Identifier: Apache-2.0
#include "storage/series/series_store.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "storage/series/embedded_store.h"

namespace expanse::storage {
namespace {

constexpr size_t kMaxText = 1024;

Error Refuse(const SeriesKey& key, const std::string& why) {
  return Error(Code::kInvalidArgument,
               "series '" + EscapeForTerminal(key.metric.substr(0, 100)) + "': " + why);
}

}  // namespace

Status ValidateBlock(const SeriesBlock& block) {
  const SeriesKey& key = block.key;
  if (key.org.empty()) return Refuse(key, "no organisation");
  if (key.metric.empty()) return Refuse(key, "no metric name");
  if (key.source.empty()) return Refuse(key, "no source");
  for (const std::string* text : {&key.org.str(), &key.execution.str(), &key.compute.str(),
                                  &key.node, &key.step_id, &key.metric, &key.source, &key.gpu_uuid})
    if (text->size() > kMaxText) return Refuse(key, "a part of the key is longer than 1 KiB");
  if (block.timestamps_ms.size() != block.values.size())
    return Refuse(key, std::to_string(block.timestamps_ms.size()) + " timestamps but " +
                           std::to_string(block.values.size()) + " values");
  for (const int64_t t : block.timestamps_ms)
    if (t < 0 || t >= kMaxTimestampMs)
      return Refuse(key, "timestamp " + std::to_string(t) + " ms is out of range");
  if (!std::all_of(block.values.begin(), block.values.end(),
                   [](double v) { return std::isfinite(v); }))
    return Refuse(key, "a value is not a finite number");
  return {};
}

Result<std::unique_ptr<SeriesStore>> SeriesStore::Open(std::string_view url) {
  constexpr std::string_view kFile = "file:";
  if (url.starts_with(kFile) && url.substr(kFile.size()).starts_with('/')) {
    EmbeddedStoreOptions options;
    options.directory = std::string(url.substr(kFile.size()));
    return OpenEmbeddedStore(std::move(options));
  }
  return Error(Code::kInvalidArgument, "unknown series store URL scheme '" +
                                           std::string(url.substr(0, url.find(':'))) +
                                           "'; use file:/absolute/directory");
}

}  // namespace expanse::storage
