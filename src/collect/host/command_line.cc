// SPDX-License-Identifier: Apache-2.0
#include "collect/host/command_line.h"

#include <array>
#include <optional>

#include "base/strings.h"
#include "collect/slurm/secrets_filter.h"

namespace expanse::collect::host {
namespace {

/// "--db-password", "AWS_SECRET_ACCESS_KEY", "hf.token": a name that says a secret follows.
bool IsSecretName(std::string_view name) {
  static constexpr std::array<std::string_view, 15> kWords = {
      "password",   "passwd",     "passphrase", "secret",  "token",
      "apikey",     "api-key",    "api_key",    "api.key", "auth",
      "credential", "access-key", "access_key", "private", "cookie"};
  const std::string lower = ToLower(name);
  for (const std::string_view word : kWords)
    if (lower.find(word) != std::string::npos) return true;
  return lower == "pw" || lower == "pass" || lower == "--pass" || lower == "-pw";
}

/// The name before the first '=' or ':' that looks like one; nothing for a bare argument.
std::optional<size_t> NameEnd(std::string_view argument) {
  const size_t end = argument.find_first_of("=:");
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  for (const char c : argument.substr(0, end)) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    if (!is_word) return std::nullopt;
  }
  return end;
}

}  // namespace

std::string MaskedCommandLine(std::string_view cmdline, size_t max_bytes) {
  constexpr size_t kMaxInput = 16 << 10;  // the filter below looks at all of it
  cmdline = cmdline.substr(0, kMaxInput);
  while (cmdline.ends_with('\0')) cmdline.remove_suffix(1);
  std::string text;
  bool hide_next = false;
  for (const std::string_view argument : Split(cmdline, '\0')) {
    if (!text.empty()) text += ' ';
    const bool is_flag = argument.starts_with('-');
    if (hide_next && !is_flag) {
      text += slurm::kSecretMark;
      hide_next = false;
      continue;
    }
    const auto name = NameEnd(argument);
    hide_next = is_flag && !name && IsSecretName(argument);
    if (name && IsSecretName(argument.substr(0, *name))) {
      text.append(argument.substr(0, *name + 1)).append(slurm::kSecretMark);
    } else {
      text += argument;
    }
  }
  std::string filtered = ToUtf8(slurm::FilterSecrets(text).text);
  if (filtered.size() > max_bytes) {
    // Not inside a character: back to a byte that begins one.
    size_t end = max_bytes;
    while (end > 0 && (static_cast<unsigned char>(filtered[end]) & 0xC0) == 0x80) --end;
    filtered.resize(end);
  }
  return filtered;
}

}  // namespace expanse::collect::host
