// SPDX-License-Identifier: Apache-2.0
#include "control_plane/api/checks.h"

#include "base/strings.h"

namespace expanse::control_plane {
namespace {

constexpr size_t kMaxEmailBytes = 254;

/// C0, DEL, and C1, which is C2 80 to C2 9F in UTF-8.
bool HasControlCharacter(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7F) return true;
    if (c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0)
      return true;
  }
  return false;
}

}  // namespace

Result<std::string> CheckedText(std::string_view field, std::string_view text, size_t max_bytes) {
  const auto bad = [&](std::string_view why) {
    return Error(Code::kInvalidArgument, std::string(field) + " " + std::string(why));
  };
  const std::string_view trimmed = Trim(text);
  if (trimmed.empty()) return bad("is empty");
  if (trimmed.size() > max_bytes)
    return bad("is longer than " + std::to_string(max_bytes) + " bytes");
  if (!IsUtf8(trimmed)) return bad("is not UTF-8");
  if (HasControlCharacter(trimmed)) return bad("holds a control character");
  return std::string(trimmed);
}

Result<std::string> CheckedEmail(std::string_view text) {
  EXPANSE_TRY(const std::string email, CheckedText("email", text, kMaxEmailBytes));
  const size_t at = email.find('@');
  if (at == std::string::npos || at == 0 || at + 1 == email.size() ||
      email.find('@', at + 1) != std::string::npos || email.find(' ') != std::string::npos)
    return Error(Code::kInvalidArgument, "email '" + email + "' is no address");
  return ToLower(email);
}

}  // namespace expanse::control_plane
