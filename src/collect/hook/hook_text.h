// SPDX-License-Identifier: Apache-2.0
// Text functions of the hook program beyond those the compiler itself needs (see hook_sys.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace expanse::collect::hook {

/// The first or last place of a character; null when there is none.
inline const char* Find(const char* text, char wanted) {
  for (; *text != '\0'; ++text)
    if (*text == wanted) return text;
  return nullptr;
}
inline char* Find(char* text, char wanted) {
  return const_cast<char*>(Find(static_cast<const char*>(text), wanted));
}
inline const char* FindLast(const char* text, char wanted) {
  const char* found = nullptr;
  for (; *text != '\0'; ++text)
    if (*text == wanted) found = text;
  return found;
}
inline const char* FindText(const char* text, const char* wanted) {
  const size_t n = strlen(wanted);
  for (; *text != '\0'; ++text)
    if (strncmp(text, wanted, n) == 0) return text;
  return nullptr;
}
inline char* FindText(char* text, const char* wanted) {
  return const_cast<char*>(FindText(static_cast<const char*>(text), wanted));
}
inline bool StartsWith(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}
inline bool Equal(const char* a, const char* b) { return strcmp(a, b) == 0; }

/// Appends to a NUL-terminated string in a fixed array; false when it does not fit (then empty).
bool Concat(char* out, size_t size, const char* const* parts, size_t count);
/// Decimal, padded with zeros to width.
void FormatNumber(int64_t value, size_t width, char (&out)[24]);
/// Decimal at the start of text; false when there is none.
bool ParseNumber(const char* text, int64_t* value);
/// The number behind "key " at the start of a line.
bool FindField(const char* text, const char* key, int64_t* value);
/// Shell wildcards *, ? and [set]; a leading dot is matched by a dot only.
bool MatchesPattern(const char* name, const char* pattern);

}  // namespace expanse::collect::hook
