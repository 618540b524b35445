// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "cli/context.h"

namespace expanse::cli {

/// A y/n question on stdout; only where terminal.interactive(). Anything but y, yes, n and no is
/// asked again, three times; then, and at the end of input, it is no.
Result<bool> Ask(Context& context, std::string_view question);

/// Text of several lines from outside: byte for byte into a pipe, so that it can be parsed or
/// pasted; on a terminal without control characters and with a newline at the end.
void PrintText(Context& context, std::string_view text);

}  // namespace expanse::cli
