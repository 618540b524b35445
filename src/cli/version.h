// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace expanse::cli {

/// The version of the command line, e.g. "0.1.0". The daemon has its own.
std::string_view Version();

}  // namespace expanse::cli
