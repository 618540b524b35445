// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <atomic>

#include <fmt/format.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/time.h"

namespace expanse::log {
namespace {

std::atomic<Level> least_level{Level::kInfo};
std::atomic<Format> line_format{Format::kText};

constexpr std::string_view Name(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "info";
}

void AppendJsonString(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : ToUtf8(text)) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

void AppendTextValue(std::string& out, std::string_view value) {
  const bool plain =
      !value.empty() && value.find_first_of(" \"=\n\r\t\\") == std::string_view::npos;
  if (plain) {
    out += EscapeForTerminal(value);
  } else {
    AppendJsonString(out, value);
  }
}

}  // namespace

void Configure(Level least, Format format) {
  least_level = least;
  line_format = format;
}

void Write(Level level, std::string_view event, Fields fields) {
  if (level < least_level.load(std::memory_order_relaxed)) return;
  const std::string now =
      FormatRfc3339(std::chrono::floor<Millis>(std::chrono::system_clock::now()));
  std::string line;
  if (line_format == Format::kJson) {
    line = fmt::format(R"({{"time":"{}","level":"{}","event":)", now, Name(level));
    AppendJsonString(line, event);
    for (const auto& f : fields) {
      line.push_back(',');
      AppendJsonString(line, f.key);
      line.push_back(':');
      AppendJsonString(line, f.value);
    }
    line += "}\n";
  } else {
    line = fmt::format("{} {:<7} {}", now, Name(level), event);
    for (const auto& f : fields) {
      line += fmt::format(" {}=", f.key);
      AppendTextValue(line, f.value);
    }
    line.push_back('\n');
  }
  // One write(2) a line: lines of several processes on one stderr do not mix.
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace expanse::log
