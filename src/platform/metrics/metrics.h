// SPDX-License-Identifier: Apache-2.0
// What a process counts, as Prometheus text (exposition format 0.0.4).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace expanse::platform {

/// Only goes up. Thread-safe.
class Counter {
 public:
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

/// How often values up to each bound were seen. Thread-safe.
class Histogram {
 public:
  /// bounds: ascending, finite; what is above the last is counted too.
  explicit Histogram(std::span<const double> bounds);
  void Observe(double value);

  struct Snapshot {
    std::vector<uint64_t> cumulative;  // of each bound, then of all
    double sum = 0;
  };
  Snapshot Read() const;
  const std::vector<double>& bounds() const { return bounds_; }

 private:
  const std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;  // of each bucket, the last without a bound
  std::atomic<double> sum_{0};
};

/// Seconds: from calls answered from memory to those that wait for disks and other planes.
inline constexpr double kLatencyBounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                            0.1,    0.25,  0.5,    1,     2.5,  5,     10};

/// Thread-safe. A counter or histogram lives as long as its registry.
class MetricsRegistry {
 public:
  using Labels = std::map<std::string, std::string>;
  /// Nothing: the value is not known now, and no line is written.
  using Read = std::function<std::optional<double>()>;
  using ReadAll = std::function<std::vector<std::pair<Labels, double>>()>;

  /// The counter of this name and these labels, made at first use. help: from the first call. Label
  /// values must come from a small fixed set, never from a request.
  Counter& GetCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram& GetHistogram(const std::string& name, const std::string& help,
                          const Labels& labels = {},
                          std::span<const double> bounds = kLatencyBounds);
  /// Asked at each Text(); must not block and outlives the registry's last Text().
  void AddGauge(const std::string& name, const std::string& help, Read read) {
    AddGauge(name, help, {}, std::move(read));
  }
  void AddGauge(const std::string& name, const std::string& help, const Labels& labels, Read read);
  /// The same for a number that only goes up and is kept elsewhere.
  void AddCounter(const std::string& name, const std::string& help, const Labels& labels,
                  Read read);
  /// Gauges whose labels come and go (sources of a collector).
  void AddGauges(const std::string& name, const std::string& help, ReadAll read);

  std::string Text() const;

 private:
  enum class Type { kCounter, kGauge, kHistogram };
  struct Family {
    std::string help;
    Type type = Type::kCounter;
    std::map<std::string, std::unique_ptr<Counter>> counters;  // all by rendered labels
    std::map<std::string, std::unique_ptr<Histogram>> histograms;
    std::map<std::string, Read> reads;
    ReadAll read_all;
  };
  Family& FamilyOf(const std::string& name, const std::string& help, Type type);
  static void AppendFamily(const std::string& name, const Family& family, std::string* out);
  mutable std::mutex mutex_;
  std::map<std::string, Family> families_;
};

}  // namespace expanse::platform
