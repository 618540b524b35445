// SPDX-License-Identifier: Apache-2.0
// Counters and gauges of a process, as Prometheus text (exposition format 0.0.4).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace expanse::platform {

/// Only goes up. Thread-safe.
class Counter {
 public:
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

/// Thread-safe. A counter lives as long as its registry.
class MetricsRegistry {
 public:
  using Labels = std::map<std::string, std::string>;

  /// The counter of this name and these labels, made at first use. help: from the first call. Label
  /// values must come from a small fixed set, never from a request.
  Counter& GetCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  /// Asked at each Text(); must not block and outlives the registry's last Text().
  void AddGauge(const std::string& name, const std::string& help, std::function<double()> read);

  std::string Text() const;

 private:
  struct Family {
    std::string help;
    std::map<std::string, std::unique_ptr<Counter>> counters;  // by rendered labels
    std::function<double()> gauge;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Family> families_;
};

}  // namespace expanse::platform
