// SPDX-License-Identifier: Apache-2.0
// Rows that analyse and diagnose share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <google/protobuf/map.h>

#include "cli/context.h"
#include "expanse/intelligence/v1/intelligence.pb.h"

namespace expanse::cli {

/// "mean=0.90 sigma=0.12 p10=0.73 p90=1.00" (C's %.2f of the unrounded value). A part that is
/// absent is left out.
std::string DistributionText(const intelligence::v1::Distribution& distribution);

/// Title of a section, bold on a terminal, with its newline.
std::string SectionTitle(const Context& context, std::string_view title);

/// Rows of optional values: printed when seen, "unknown (reason)" when the map names a reason under
/// the text row's name or the field's name, left out when neither.
class OptionalRows {
 public:
  using Reasons = google::protobuf::Map<std::string, std::string>;
  explicit OptionalRows(const Reasons& unknown) : unknown_(unknown) {}

  /// must: a row that reads "unknown" even without a reason.
  void Add(std::string_view row, std::string_view field, const std::optional<std::string>& value,
           bool must = false);
  const std::string& text() const { return text_; }

 private:
  const Reasons& unknown_;
  std::string text_;
};

/// The value as text where the field is present.
std::optional<std::string> Number(bool present, int64_t value);
std::optional<std::string> Gib(bool present, int64_t bytes);
/// Percent without decimals.
std::optional<std::string> Percent(bool present, double value);
std::optional<std::string> Text(const std::string& value);

}  // namespace expanse::cli
