// SPDX-License-Identifier: Apache-2.0
// Reading the JSON of SLURM's tools: a missing member, null and another type are all "absent".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "base/result.h"

namespace expanse::collect::slurm {

/// The whole text as one object. kDataLoss for anything else (cut off, empty, two values). Strings
/// may hold bytes that are not UTF-8: SLURM passes names through.
Result<boost::json::object> ParseToolJson(std::string_view text);

/// Member by a dotted path ("time.start"); null when any part is missing.
const boost::json::value* FindJson(const boost::json::object& object, std::string_view path);
std::optional<int64_t> JsonInt(const boost::json::object& object, std::string_view path);
std::optional<std::string> JsonText(const boost::json::object& object, std::string_view path);
const boost::json::array* JsonArray(const boost::json::object& object, std::string_view path);

}  // namespace expanse::collect::slurm
