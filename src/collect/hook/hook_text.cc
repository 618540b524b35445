// SPDX-License-Identifier: Apache-2.0
#include "collect/hook/hook_text.h"

namespace expanse::collect::hook {
namespace {

/// pattern is behind '['; returns what is behind ']' or null when the set is not closed.
const char* MatchSet(const char* pattern, char c, bool* matched) {
  const bool negated = *pattern == '!' || *pattern == '^';
  if (negated) ++pattern;
  bool found = false;
  for (bool first = true; *pattern != ']' || first; first = false) {
    if (*pattern == '\0') return nullptr;
    const char low = *pattern++;
    char high = low;
    if (pattern[0] == '-' && pattern[1] != ']' && pattern[1] != '\0') {
      high = pattern[1];
      pattern += 2;
    }
    if (low <= c && c <= high) found = true;
  }
  *matched = found != negated;
  return pattern + 1;
}

bool Matches(const char* name, const char* pattern) {
  // The usual walk with one remembered star: linear in practice, never exponential.
  const char* star = nullptr;
  const char* resume = nullptr;
  while (*name != '\0') {
    bool matched = false;
    const char* next = pattern;
    if (*pattern == '*') {
      star = ++pattern;
      resume = name;
      continue;
    }
    if (*pattern == '?') {
      matched = true;
      next = pattern + 1;
    } else if (*pattern == '[') {
      next = MatchSet(pattern + 1, *name, &matched);
      if (next == nullptr) return false;
    } else if (*pattern != '\0') {
      matched = *pattern == *name;
      next = pattern + 1;
    }
    if (matched) {
      pattern = next;
      ++name;
    } else if (star != nullptr) {
      pattern = star;
      name = ++resume;
    } else {
      return false;
    }
  }
  while (*pattern == '*') ++pattern;
  return *pattern == '\0';
}

}  // namespace

bool Concat(char* out, size_t size, const char* const* parts, size_t count) {
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t n = strlen(parts[i]);
    if (at + n + 1 > size) {
      out[0] = '\0';
      return false;
    }
    memcpy(out + at, parts[i], n);
    at += n;
  }
  out[at] = '\0';
  return true;
}

void FormatNumber(int64_t value, size_t width, char (&out)[24]) {
  char digits[24];
  size_t n = 0;
  uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  do {
    digits[n++] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  while (n < width && n < 20) digits[n++] = '0';
  size_t at = 0;
  if (value < 0) out[at++] = '-';
  while (n > 0) out[at++] = digits[--n];
  out[at] = '\0';
}

bool ParseNumber(const char* text, int64_t* value) {
  const bool negative = *text == '-';
  const char* p = negative ? text + 1 : text;
  if (*p < '0' || *p > '9') return false;
  uint64_t v = 0;
  for (; *p >= '0' && *p <= '9'; ++p) {
    if (v > (static_cast<uint64_t>(INT64_MAX) - 9) / 10) return false;
    v = v * 10 + static_cast<uint64_t>(*p - '0');
  }
  *value = negative ? -static_cast<int64_t>(v) : static_cast<int64_t>(v);
  return true;
}

bool FindField(const char* text, const char* key, int64_t* value) {
  const size_t n = strlen(key);
  for (const char* line = text; line != nullptr && *line != '\0';) {
    if (strncmp(line, key, n) == 0 && line[n] == ' ') return ParseNumber(line + n + 1, value);
    line = Find(line, '\n');
    if (line != nullptr) ++line;
  }
  return false;
}

bool MatchesPattern(const char* name, const char* pattern) {
  if (*name == '.' && *pattern != '.') return false;
  return Matches(name, pattern);
}

}  // namespace expanse::collect::hook
