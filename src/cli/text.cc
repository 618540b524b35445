// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include <algorithm>

#include "base/strings.h"
#include "rpc/json.h"

namespace expanse::cli {

std::string Row(std::string_view name, std::string_view value) {
  std::string out = "  " + std::string(name);
  if (name.size() < kRowNameWidth) out.append(kRowNameWidth - name.size(), ' ');
  out += value;
  while (out.ends_with(' ')) out.pop_back();
  return out + "\n";
}

std::string Unknown(std::string_view reason) {
  if (reason.empty()) return "unknown";
  return "unknown (" + EscapeForTerminal(reason) + ")";
}

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string Table::Print(const Context& context) const {
  std::vector<std::vector<std::string>> clean;
  std::vector<size_t> widths;
  for (const auto& line : rows_) {
    auto& out = clean.emplace_back();
    for (size_t i = 0; i < line.cells.size(); ++i) {
      out.push_back(line.cells[i].empty() ? "-" : EscapeForTerminal(line.cells[i]));
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], DisplayWidth(out.back()));
    }
  }
  std::string out;
  for (size_t r = 0; r < clean.size(); ++r) {
    for (size_t i = 0; i < clean[r].size(); ++i) {
      const std::string& cell = clean[r][i];
      const Hue hue = i < rows_[r].hues.size() ? rows_[r].hues[i] : Hue::kNone;
      out += r == 0 ? Bold(context, cell) : Coloured(context, hue, cell);
      if (i + 1 < clean[r].size()) out.append(widths[i] - DisplayWidth(cell) + 2, ' ');
    }
    out += "\n";
  }
  return out;
}

std::string EnumLabel(std::string_view value_name, std::string_view prefix) {
  if (value_name.empty()) return "unrecognised";
  if (value_name.starts_with(prefix)) value_name.remove_prefix(prefix.size());
  return ToLower(value_name);
}

std::string FormatSecond(int64_t unix_millis) {
  std::string text = FormatRfc3339(FromUnixMillis(unix_millis));
  if (text.size() > 5 && text.ends_with('Z')) text.replace(text.size() - 5, 5, "Z");
  return text;
}

std::string IndentJson(std::string_view json) {
  std::string out;
  size_t depth = 0;
  bool in_string = false;
  const auto newline = [&] {
    out += '\n';
    out.append(2 * depth, ' ');
  };
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < json.size()) out += json[++i];
      if (c == '"') in_string = false;
      continue;
    }
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
    if (c == '{' || c == '[') {
      const char close = c == '{' ? '}' : ']';
      out += c;
      if (i + 1 < json.size() && json[i + 1] == close) {
        out += close;
        ++i;
        continue;
      }
      ++depth;
      newline();
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
      newline();
      out += c;
    } else if (c == ',') {
      out += c;
      newline();
    } else if (c == ':') {
      out += ": ";
    } else {
      if (c == '"') in_string = true;
      out += c;
    }
  }
  return out + "\n";
}

Result<std::string> PrettyJson(const google::protobuf::Message& message) {
  EXPANSE_TRY(const auto json, rpc::ToJson(message));
  return IndentJson(json);
}

}  // namespace expanse::cli
