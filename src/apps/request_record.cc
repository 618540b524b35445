// SPDX-License-Identifier: Apache-2.0
#include "apps/request_record.h"

#include <array>
#include <string_view>

namespace expanse::apps {
namespace {

constexpr std::string_view kRedacted = "[redacted]";
constexpr std::array<std::string_view, 4> kSecretHeaders = {"authorization", "cookie",
                                                            "proxy-authorization", "x-api-key"};
constexpr std::string_view kKeyMark = "exp_";   // exp_user_..., exp_install_..., ...
constexpr std::string_view kTokenMark = "eyJ";  // a JSON object in base64url: a JWT

bool IsTokenByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

size_t SkipToken(std::string_view text, size_t at) {
  while (at < text.size() && IsTokenByte(text[at])) ++at;
  return at;
}

/// Where the kind of a key ends ("exp_user_"); npos: no key begins here.
size_t EndOfKind(std::string_view text, size_t at) {
  const size_t from = at + kKeyMark.size();
  size_t end = from;
  while (end < text.size() && text[end] >= 'a' && text[end] <= 'z') ++end;
  if (end == from || end >= text.size() || text[end] != '_') return std::string_view::npos;
  return end + 1;
}

std::string WithoutCredentials(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(kKeyMark)) {
      const size_t kind = EndOfKind(text, at);
      if (kind != std::string_view::npos) {
        out.append(text.substr(at, kind - at)).append(kRedacted);
        at = SkipToken(text, kind);
        continue;
      }
    }
    if (rest.starts_with(kTokenMark)) {
      const size_t head = SkipToken(text, at);
      if (head < text.size() && text[head] == '.') {
        out.append(kRedacted);
        at = head;
        while (at < text.size() && text[at] == '.') at = SkipToken(text, at + 1);
        continue;
      }
    }
    out += text[at++];
  }
  return out;
}

}  // namespace

std::string RecordedRequest(const platform::HttpRequest& request) {
  std::string text = request.method + " " + WithoutCredentials(request.target) + "\n";
  for (const auto& [name, value] : request.headers) {
    bool is_secret = false;
    for (const std::string_view secret : kSecretHeaders) is_secret = is_secret || name == secret;
    text += name + ": " + (is_secret ? std::string(kRedacted) : WithoutCredentials(value)) + "\n";
  }
  return text + "\n" + WithoutCredentials(request.body) + "\n\n";
}

}  // namespace expanse::apps
