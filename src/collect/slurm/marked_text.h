// SPDX-License-Identifier: Apache-2.0
// Rows of a tool whose every field is followed by a mark of our choice (`sacct -p --delimiter`,
// `squeue --format`). The mark is random for each call, so that fields may hold any bytes, line
// breaks included: a row is a number of fields, not a line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/random/random.h"

namespace expanse::collect::slurm {

/// "\x1f" + 16 hexadecimal characters + "\x1f".
std::string NewMark(platform::Random& random);

/// Views into text. kDataLoss: the last row is not whole, or bytes stand between two rows.
Result<std::vector<std::vector<std::string_view>>> SplitMarkedRows(std::string_view text,
                                                                   std::string_view mark,
                                                                   size_t fields);

}  // namespace expanse::collect::slurm
