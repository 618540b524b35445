// SPDX-License-Identifier: Apache-2.0
// Small text functions that std lacks. Text from outside is bytes: ToUtf8 before a protobuf.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace expanse {

std::vector<std::string_view> Split(std::string_view text, char separator);
std::string_view Trim(std::string_view text);
std::string Join(std::span<const std::string> parts, std::string_view separator);
std::string ToLower(std::string_view text);
bool StartsWithIgnoreCase(std::string_view text, std::string_view prefix);

/// Whole-string decimal; nothing on any other character or on overflow.
std::optional<int64_t> ParseInt64(std::string_view text);
std::optional<double> ParseDouble(std::string_view text);

/// True when the bytes are well-formed UTF-8 (no surrogates, no overlong forms).
bool IsUtf8(std::string_view bytes);
/// Well-formed UTF-8 from any bytes: each byte that is not part of a valid sequence becomes
/// U+FFFD. protobuf 3.21 silently empties string fields that are not UTF-8.
std::string ToUtf8(std::string_view bytes);
/// For a terminal: control characters (C0, DEL, C1) become \xNN so that text from outside cannot
/// move the cursor or set colours. Newline and tab too, unless keep_newlines.
std::string EscapeForTerminal(std::string_view text, bool keep_newlines = false);

std::string HexEncode(std::string_view bytes);
std::string Base64UrlEncode(std::string_view bytes);  // no padding, RFC 4648 section 5
std::optional<std::string> Base64UrlDecode(std::string_view text);

/// The candidate with the least edit distance (at most 1/3 of the length, at least 1); for
/// "unknown key 'x', did you mean 'y'?".
std::optional<std::string> NearestName(std::string_view name,
                                       std::span<const std::string> candidates);

/// A POSIX shell word that stands for exactly these bytes.
std::string ShellQuote(std::string_view text);

}  // namespace expanse
