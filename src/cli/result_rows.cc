// SPDX-License-Identifier: Apache-2.0
#include "cli/result_rows.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "base/units.h"
#include "cli/text.h"

namespace expanse::cli {

std::string DistributionText(const intelligence::v1::Distribution& d) {
  std::string out;
  const auto add = [&](const char* name, bool present, double value) {
    if (present) out += fmt::format("{}{}={:.2f}", out.empty() ? "" : " ", name, value);
  };
  add("mean", d.has_mean(), d.mean());
  add("sigma", d.has_sigma(), d.sigma());
  add("p10", d.has_p10(), d.p10());
  add("p90", d.has_p90(), d.p90());
  return out.empty() ? "unknown" : out;
}

std::string SectionTitle(const Context& context, std::string_view title) {
  return Bold(context, title) + "\n";
}

void OptionalRows::Add(std::string_view row, std::string_view field,
                       const std::optional<std::string>& value, bool must) {
  if (value) {
    text_ += Row(row, *value);
    return;
  }
  auto reason = unknown_.find(std::string(field));
  if (reason == unknown_.end()) reason = unknown_.find(std::string(row));
  if (reason != unknown_.end())
    text_ += Row(row, Unknown(reason->second));
  else if (must)
    text_ += Row(row, Unknown(""));
}

std::optional<std::string> Number(bool present, int64_t value) {
  if (!present) return std::nullopt;
  return std::to_string(value);
}

std::optional<std::string> Gib(bool present, int64_t bytes) {
  if (!present) return std::nullopt;
  return FormatGbRow(Bytes{bytes});
}

std::optional<std::string> Percent(bool present, double value) {
  if (!present) return std::nullopt;
  return fmt::format("{:.0f}", value);
}

std::optional<std::string> Text(const std::string& value) {
  if (value.empty()) return std::nullopt;
  return EscapeForTerminal(value);
}

}  // namespace expanse::cli
