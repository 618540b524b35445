// SPDX-License-Identifier: Apache-2.0
// How results look: rows of a name and a value, tables, enum labels, JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/context.h"

namespace expanse::cli {

/// "  name                       value\n": two spaces, the name padded to 27 columns.
std::string Row(std::string_view name, std::string_view value);
inline constexpr size_t kRowNameWidth = 27;

/// "unknown (reason)"; "unknown" when the reason is empty.
std::string Unknown(std::string_view reason);

/// Columns two spaces apart, each as wide as its widest cell. Cells are escaped for a terminal; a
/// cell that was not seen is "-".
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back({std::move(header), {}}); }
  void Add(std::vector<std::string> cells, std::vector<Hue> hues = {}) {
    rows_.push_back({std::move(cells), std::move(hues)});
  }
  std::string Print(const Context& context) const;

 private:
  struct Line {
    std::vector<std::string> cells;
    std::vector<Hue> hues;  // by column; shorter: none
  };
  std::vector<Line> rows_;
};

/// Columns that the text takes on a terminal: one for each code point.
size_t DisplayWidth(std::string_view text);

/// The lower-case label of a protobuf enum's value: ("EXECUTION_STATUS_FAILED",
/// "EXECUTION_STATUS_") is "failed". A value that this program does not know has an empty name
/// and is "unrecognised".
std::string EnumLabel(std::string_view value_name, std::string_view prefix);

/// "2026-11-30T21:16:07Z".
std::string FormatSecond(int64_t unix_millis);

/// The public JSON form of a message, indented by two spaces, with a newline at the end.
Result<std::string> PrettyJson(const google::protobuf::Message& message);
/// The same bytes of JSON, indented by two spaces.
std::string IndentJson(std::string_view json);

}  // namespace expanse::cli
