// SPDX-License-Identifier: Apache-2.0
// Structured logs: an event name and fields, one line each, to stderr, as text or JSON lines.
// A Secret has no conversion to Field on purpose.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace expanse::log {

enum class Level { kDebug, kInfo, kWarning, kError };
enum class Format { kText, kJson };

struct Field {
  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v) {}
  Field(std::string_view k, int64_t v) : key(k), value(std::to_string(v)) {}
  Field(std::string_view k, uint64_t v) : key(k), value(std::to_string(v)) {}
  Field(std::string_view k, int v) : key(k), value(std::to_string(v)) {}
  Field(std::string_view k, double v) : key(k), value(std::to_string(v)) {}
  std::string_view key;
  std::string value;
};
using Fields = std::initializer_list<Field>;

/// Once, at start. Default: kInfo, kText.
void Configure(Level least, Format format);

/// Event names are "area.what_happened", e.g. "ingest.batch_rejected".
void Write(Level level, std::string_view event, Fields fields);
inline void Debug(std::string_view event, Fields fields = {}) {
  Write(Level::kDebug, event, fields);
}
inline void Info(std::string_view event, Fields fields = {}) { Write(Level::kInfo, event, fields); }
inline void Warning(std::string_view event, Fields fields = {}) {
  Write(Level::kWarning, event, fields);
}
inline void Error(std::string_view event, Fields fields = {}) {
  Write(Level::kError, event, fields);
}

}  // namespace expanse::log
