// SPDX-License-Identifier: Apache-2.0
#include "platform/metrics/metrics.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/result.h"
#include "base/strings.h"

namespace expanse::platform {
namespace {

std::string Escape(const std::string& text, bool in_label) {
  std::string out;
  for (const char c : ToUtf8(text)) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && in_label) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

/// `a="1",b="2"`, without braces.
std::string Render(const MetricsRegistry::Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels)
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", name, Escape(value, true));
  return out;
}

std::string InBraces(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

void AppendHistogram(const std::string& name, const std::string& labels, const Histogram& histogram,
                     std::string* out) {
  const Histogram::Snapshot seen = histogram.Read();
  const std::string before = labels.empty() ? "" : labels + ",";
  for (size_t i = 0; i < seen.cumulative.size(); ++i) {
    const bool is_last = i + 1 == seen.cumulative.size();
    *out += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, before,
                        is_last ? "+Inf" : Number(histogram.bounds()[i]), seen.cumulative[i]);
  }
  *out += fmt::format("{}_sum{} {}\n", name, InBraces(labels), Number(seen.sum));
  *out += fmt::format("{}_count{} {}\n", name, InBraces(labels), seen.cumulative.back());
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {
  EXPANSE_CHECK(std::is_sorted(bounds_.begin(), bounds_.end()));
}

void Histogram::Observe(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  counts_[static_cast<size_t>(at - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::Read() const {
  Snapshot out;
  uint64_t total = 0;
  for (const auto& count : counts_)
    out.cumulative.push_back(total += count.load(std::memory_order_relaxed));
  out.sum = sum_.load(std::memory_order_relaxed);
  return out;
}

MetricsRegistry::Family& MetricsRegistry::FamilyOf(const std::string& name, const std::string& help,
                                                   Type type) {
  const auto [it, is_new] = families_.try_emplace(name);
  if (is_new) {
    it->second.help = help;
    it->second.type = type;
  }
  EXPANSE_CHECK(it->second.type == type);
  return it->second;
}

Counter& MetricsRegistry::GetCounter(const std::string& name, const std::string& help,
                                     const Labels& labels) {
  const std::string rendered = Render(labels);
  const std::lock_guard lock(mutex_);
  auto& counter = FamilyOf(name, help, Type::kCounter).counters[rendered];
  if (counter == nullptr) counter = std::make_unique<Counter>();
  return *counter;
}

Histogram& MetricsRegistry::GetHistogram(const std::string& name, const std::string& help,
                                         const Labels& labels, std::span<const double> bounds) {
  const std::string rendered = Render(labels);
  const std::lock_guard lock(mutex_);
  auto& histogram = FamilyOf(name, help, Type::kHistogram).histograms[rendered];
  if (histogram == nullptr) histogram = std::make_unique<Histogram>(bounds);
  return *histogram;
}

void MetricsRegistry::AddGauge(const std::string& name, const std::string& help,
                               const Labels& labels, Read read) {
  const std::lock_guard lock(mutex_);
  FamilyOf(name, help, Type::kGauge).reads[Render(labels)] = std::move(read);
}

void MetricsRegistry::AddCounter(const std::string& name, const std::string& help,
                                 const Labels& labels, Read read) {
  const std::lock_guard lock(mutex_);
  FamilyOf(name, help, Type::kCounter).reads[Render(labels)] = std::move(read);
}

void MetricsRegistry::AddGauges(const std::string& name, const std::string& help, ReadAll read) {
  const std::lock_guard lock(mutex_);
  FamilyOf(name, help, Type::kGauge).read_all = std::move(read);
}

void MetricsRegistry::AppendFamily(const std::string& name, const Family& family,
                                   std::string* out) {
  const char* type = family.type == Type::kGauge     ? "gauge"
                     : family.type == Type::kCounter ? "counter"
                                                     : "histogram";
  *out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, Escape(family.help, false), name, type);
  for (const auto& [labels, counter] : family.counters)
    *out += fmt::format("{}{} {}\n", name, InBraces(labels), counter->value());
  for (const auto& [labels, read] : family.reads)
    if (const auto value = read())
      *out += fmt::format("{}{} {}\n", name, InBraces(labels), Number(*value));
  if (family.read_all) {
    std::map<std::string, double> lines;  // no two of one name
    for (const auto& [labels, value] : family.read_all()) lines[Render(labels)] = value;
    for (const auto& [labels, value] : lines)
      *out += fmt::format("{}{} {}\n", name, InBraces(labels), Number(value));
  }
  for (const auto& [labels, histogram] : family.histograms)
    AppendHistogram(name, labels, *histogram, out);
}

std::string MetricsRegistry::Text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) AppendFamily(name, family, &out);
  return out;
}

}  // namespace expanse::platform
