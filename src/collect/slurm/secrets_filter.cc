// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/secrets_filter.h"

#include <array>
#include <cctype>

#include "base/strings.h"
#include "collect/slurm/secret_rules.h"

namespace expanse::collect::slurm {
namespace {

using namespace std::string_view_literals;

bool IsAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool IsTokenChar(char c) { return IsAlnum(c) || c == '_' || c == '-'; }
bool IsBase64Char(char c) {
  return IsTokenChar(c) || c == '+' || c == '/' || c == '=' || c == '.' || c == '~';
}

bool EndsInToken(std::string_view name) { return ToLower(name).ends_with("token"); }

constexpr std::array kSecretNames = {
    "password"sv,   "passwd"sv,      "passphrase"sv,    "secret"sv,
    "secret_key"sv, "access_key"sv,  "private_key"sv,   "api_key"sv,
    "apikey"sv,     "api-key"sv,     "auth_token"sv,    "token"sv,
    "credential"sv, "credentials"sv, "client_secret"sv, "pwd"sv};

/// What no literal begins with: expressions, options, what follows a string that was closed.
constexpr std::string_view kNoValue = "$<{(-\\` ,)+]\x01";

}  // namespace

bool IsNameChar(char c) { return IsAlnum(c) || c == '_' || c == '-' || c == '.'; }

bool IsSecretName(std::string_view name) {
  const std::string lower = ToLower(name);
  for (std::string_view secret : kSecretNames) {
    if (!lower.ends_with(secret)) continue;
    const size_t before = lower.size() - secret.size();
    if (before == 0 || !IsAlnum(lower[before - 1]) || secret != "pwd") return true;
  }
  return false;
}

bool IsSecretValue(std::string_view name, std::string_view value, size_t least_word) {
  if (value.empty() || kNoValue.find(value[0]) != std::string_view::npos) return false;
  if (value.starts_with(kSecretMark.substr(0, kSecretMark.find(' ')))) return false;
  bool digits = true, letters = true;
  for (char c : value) {
    digits = digits && c >= '0' && c <= '9';
    letters = letters && c >= 'a' && c <= 'z';
  }
  const bool is_token = EndsInToken(name);
  if (digits) return !is_token;
  return !letters || value.size() >= (is_token ? 12 : least_word);
}

namespace {

/// Half-open range of bytes to replace; empty when there is none.
struct Span {
  size_t begin = 0;
  size_t end = 0;
  bool empty() const { return end <= begin; }
};

template <typename Predicate>
size_t RunEnd(std::string_view text, size_t at, Predicate is) {
  while (at < text.size() && is(text[at])) ++at;
  return at;
}

struct TokenForm {
  std::string_view prefix;
  size_t least_rest;  // characters after the prefix
};
constexpr std::array kTokenForms = {
    TokenForm{"exp_user_"sv, 20},  TokenForm{"exp_install_"sv, 20}, TokenForm{"exp_compute_"sv, 20},
    TokenForm{"exp_plane_"sv, 20}, TokenForm{"AKIA"sv, 16},         TokenForm{"ASIA"sv, 16},
    TokenForm{"ghp_"sv, 30},       TokenForm{"gho_"sv, 30},         TokenForm{"ghu_"sv, 30},
    TokenForm{"ghs_"sv, 30},       TokenForm{"ghr_"sv, 30},         TokenForm{"github_pat_"sv, 30},
    TokenForm{"glpat-"sv, 20},     TokenForm{"xoxb-"sv, 20},        TokenForm{"xoxp-"sv, 20},
    TokenForm{"xoxa-"sv, 20},      TokenForm{"sk-"sv, 32},          TokenForm{"sk_live_"sv, 16},
    TokenForm{"rk_live_"sv, 16},   TokenForm{"hf_"sv, 30},          TokenForm{"AIza"sv, 35},
    TokenForm{"npm_"sv, 30},
};

Span FindToken(std::string_view text, size_t at) {
  if (at > 0 && IsTokenChar(text[at - 1])) return {};
  const std::string_view rest = text.substr(at);
  for (const auto& form : kTokenForms) {
    if (!rest.starts_with(form.prefix)) continue;
    const size_t end = RunEnd(text, at + form.prefix.size(), IsTokenChar);
    if (end - at - form.prefix.size() >= form.least_rest) return {at, end};
  }
  // JSON web token: three base64url parts, the first begins with {" in base64.
  if (rest.starts_with("eyJ")) {
    const size_t first = RunEnd(text, at, IsTokenChar);
    if (first - at < 10 || first >= text.size() || text[first] != '.') return {};
    const size_t second = RunEnd(text, first + 1, IsTokenChar);
    if (second - first < 10 || second >= text.size() || text[second] != '.') return {};
    return {at, RunEnd(text, second + 1, IsTokenChar)};
  }
  return {};
}

Span FindPrivateKey(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  if (!rest.starts_with("-----BEGIN ")) return {};
  const size_t line = rest.find('\n');
  if (rest.substr(0, line).find("PRIVATE KEY-----") == std::string_view::npos) return {};
  const size_t end = rest.find("-----END ", 11);
  if (end == std::string_view::npos) return {at, text.size()};  // cut off: all of it
  const size_t end_line = rest.find('\n', end);
  return {at, end_line == std::string_view::npos ? text.size() : at + end_line};
}

Span FindAuthorization(std::string_view text, size_t at) {
  if (at > 0 && IsAlnum(text[at - 1])) return {};
  for (std::string_view scheme : {"bearer "sv, "basic "sv}) {
    if (!StartsWithIgnoreCase(text.substr(at), scheme)) continue;
    const size_t begin = at + scheme.size();
    const size_t end = RunEnd(text, begin, IsBase64Char);
    // "basic" and "bearer" are words too: a credential is long.
    if (end - begin >= 16) return {begin, end};
  }
  return {};
}

/// scheme://user:password@host
Span FindUrlPassword(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("://")) return {};
  const size_t begin = at + 3;
  const size_t stop = text.find_first_of("/ \t\r\n\"'<>", begin);
  const std::string_view authority = text.substr(begin, stop - begin);
  const size_t host = authority.rfind('@');
  if (host == std::string_view::npos) return {};
  const size_t colon = authority.substr(0, host).find(':');
  if (colon == std::string_view::npos || colon + 1 >= host) return {};
  if (authority[colon + 1] == '$') return {};
  return {begin + colon + 1, begin + host};
}

bool LooksLikeLiteral(std::string_view value, bool quoted) {
  // Placeholders and expressions: ${X}, $(cmd), <token>, {name}, os.environ[...], f(x).
  if (value.empty() || value[0] == '$' || value[0] == '<' || value[0] == '{') return false;
  if (quoted) return value.find(' ') == std::string_view::npos;
  if (value.find_first_of("()[]{}") != std::string_view::npos) return false;
  bool digit = false;
  for (char c : value) digit = digit || (c >= '0' && c <= '9');
  // An unquoted name or attribute (tokenizer.eos_token, None, true) has no digit.
  return digit || value.find('.') == std::string_view::npos;
}

bool IsQuote(char c) { return c == '"' || c == '\''; }
bool IsBlank(char c) { return c == ' ' || c == '\t'; }

/// A value: in quotes, in escaped quotes (JSON inside a string), or bare up to a blank.
struct Value {
  Span span;
  bool quoted = false;
};

Value ReadValue(std::string_view text, size_t begin) {
  Value out;
  const size_t quote_at = RunEnd(text, begin, [](char c) { return c == '\\'; });
  if (quote_at >= text.size() || !IsQuote(text[quote_at])) {
    const size_t end = text.find_first_of(" \t\r\n,;\"'&|", begin);
    out.span = {begin, end == std::string_view::npos ? text.size() : end};
    return out;
  }
  const char quote = text[quote_at];
  const size_t escapes = quote_at - begin;
  out.quoted = true;
  out.span = {quote_at + 1, text.size()};
  size_t run = 0;  // backslashes before this character
  for (size_t at = quote_at + 1; at < text.size(); ++at) {
    const bool closes = text[at] == quote && (escapes == 0 ? run % 2 == 0 : run <= escapes);
    if (closes || text[at] == '\n') {
      // The backslashes of an escaped quote belong to it.
      out.span.end = closes && escapes > 0 ? at - run : at;
      break;
    }
    run = text[at] == '\\' ? run + 1 : 0;
  }
  return out;
}

/// name = "literal", NAME=literal, "name": "literal", and both inside a string: \"name\": \"x\".
Span FindAssignment(std::string_view text, size_t at) {
  if (text[at] != '=' && text[at] != ':') return {};
  if (at + 1 < text.size() && (text[at + 1] == '=' || text[at + 1] == '/')) return {};
  size_t name_end = at;
  while (name_end > 0 && (text[name_end - 1] == ' ' || IsQuote(text[name_end - 1]) ||
                          text[name_end - 1] == ']' || text[name_end - 1] == '\\'))
    --name_end;
  size_t name_begin = name_end;
  while (name_begin > 0 && IsNameChar(text[name_begin - 1]) && name_end - name_begin < 128)
    --name_begin;
  const std::string_view name = text.substr(name_begin, name_end - name_begin);
  if (name.empty() || !IsSecretName(name)) return {};
  const bool tight = name_end == at;
  const size_t begin = RunEnd(text, at + 1, IsBlank);
  if (begin >= text.size()) return {};
  const Value found = ReadValue(text, begin);
  // "token = x" without quotes is code; "TOKEN=x" and "token: x" are settings and logs.
  if (!found.quoted && (!tight || (text[at] == '=' && begin != at + 1))) return {};
  const std::string_view value = text.substr(found.span.begin, found.span.end - found.span.begin);
  const size_t least = EndsInToken(name) ? 12 : (found.quoted ? 4 : 6);
  if (value.size() < least || value == kSecretMark.substr(0, value.size())) return {};
  if (!LooksLikeLiteral(value, found.quoted)) return {};
  return found.span;
}

/// --password literal; the value may stand on the next line of a shell command.
Span FindOptionValue(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("--") || (at > 0 && IsNameChar(text[at - 1]))) return {};
  const size_t name_end = RunEnd(text, at + 2, IsNameChar);
  const std::string_view name = text.substr(at + 2, name_end - at - 2);
  if (name_end >= text.size() || !IsBlank(text[name_end]) || !IsSecretName(name)) return {};
  size_t begin = RunEnd(text, name_end, IsBlank);
  if (text.substr(begin).starts_with("\\\n")) begin = RunEnd(text, begin + 2, IsBlank);
  if (begin >= text.size()) return {};
  const Span value = ReadValue(text, begin).span;
  constexpr size_t kLeastWord = 4;  // "--password is" is prose
  return IsSecretValue(name, text.substr(value.begin, value.end - value.begin), kLeastWord)
             ? value
             : Span{};
}

Span FindSecret(std::string_view text, size_t at) {
  switch (text[at]) {
    case '=':
    case ':': {
      const Span url = FindUrlPassword(text, at);
      return url.empty() ? FindAssignment(text, at) : url;
    }
    case '-': {
      const Span key = FindPrivateKey(text, at);
      return key.empty() ? FindOptionValue(text, at) : key;
    }
    case 'b':
    case 'B':
      return FindAuthorization(text, at);
    case 'e':
    case 'A':
    case 'g':
    case 'x':
    case 's':
    case 'r':
    case 'h':
    case 'n':
      return FindToken(text, at);
    default:
      return {};
  }
}

}  // namespace

FilteredText FilterWithMark(std::string_view text, std::string_view mark) {
  FilteredText out;
  size_t copied = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const Span span = FindSecret(text, at);
    if (span.empty()) continue;
    out.text += text.substr(copied, span.begin - copied);
    out.text += mark;
    ++out.replaced;
    copied = span.end;
    at = span.end - 1;
  }
  out.text += text.substr(copied);
  return out;
}

FilteredText FilterSecrets(std::string_view text) { return FilterWithMark(text, kSecretMark); }

}  // namespace expanse::collect::slurm
