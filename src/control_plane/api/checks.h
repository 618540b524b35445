// SPDX-License-Identifier: Apache-2.0
// What a text from a request must be before it is stored.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::control_plane {

/// Without surrounding white space; kInvalidArgument naming the field when it is empty, longer
/// than max_bytes, not UTF-8 or holds a control character.
Result<std::string> CheckedText(std::string_view field, std::string_view text, size_t max_bytes);

/// Lower case; kInvalidArgument when the text is no address: one @ with something on both sides,
/// no white space, at most 254 bytes (RFC 5321 section 4.5.3.1.3).
Result<std::string> CheckedEmail(std::string_view text);

inline constexpr size_t kMaxNameBytes = 200;

}  // namespace expanse::control_plane
