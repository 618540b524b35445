// SPDX-License-Identifier: Apache-2.0
#include "platform/metrics/metrics.h"

#include <fmt/format.h>

namespace expanse::platform {
namespace {

std::string Escape(const std::string& text, bool in_label) {
  std::string out;
  for (const char c : text) {
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

std::string Render(const MetricsRegistry::Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels)
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "{" : ",", name, Escape(value, true));
  return out.empty() ? out : out + "}";
}

}  // namespace

Counter& MetricsRegistry::GetCounter(const std::string& name, const std::string& help,
                                     const Labels& labels) {
  const std::string rendered = Render(labels);
  const std::lock_guard lock(mutex_);
  Family& family = families_[name];
  if (family.help.empty()) family.help = help;
  auto& counter = family.counters[rendered];
  if (counter == nullptr) counter = std::make_unique<Counter>();
  return *counter;
}

void MetricsRegistry::AddGauge(const std::string& name, const std::string& help,
                               std::function<double()> read) {
  const std::lock_guard lock(mutex_);
  families_[name].help = help;
  families_[name].gauge = std::move(read);
}

std::string MetricsRegistry::Text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, Escape(family.help, false), name,
                       family.gauge ? "gauge" : "counter");
    if (family.gauge) out += fmt::format("{} {}\n", name, family.gauge());
    for (const auto& [labels, counter] : family.counters)
      out += fmt::format("{}{} {}\n", name, labels, counter->value());
  }
  return out;
}

}  // namespace expanse::platform
