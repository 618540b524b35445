// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/evidence.h"

#include "base/strings.h"

namespace expanse::intelligence::diagnose {

std::string Shorten(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return ToUtf8(text);
  size_t end = max_bytes;
  // Not in the middle of a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return ToUtf8(text.substr(0, end)) + "…";
}

FactId Ledger::Add(std::string_view source, std::string_view position, std::string_view value,
                   v1::FactVisibility visibility, std::string_view reason) {
  std::string key;
  key.append(source).append(1, '\0').append(position).append(1, '\0').append(value);
  key.append(1, '\0').append(reason);
  if (auto it = index_.find(key); it != index_.end()) return it->second;
  auto& fact = facts_.emplace_back();
  const auto id = static_cast<FactId>(facts_.size());
  fact.set_fact_id(Name(id));
  fact.set_source(ToUtf8(source));
  fact.set_position(ToUtf8(position));
  fact.set_value(Shorten(value, kMaxFactValue));
  fact.set_visibility(visibility);
  fact.set_reason(ToUtf8(reason));
  index_.emplace(std::move(key), id);
  return id;
}

FactId Ledger::Seen(std::string_view source, std::string_view position, std::string_view value) {
  return Add(source, position, value, v1::FACT_VISIBILITY_SEEN, "");
}

FactId Ledger::NotSeen(std::string_view source, std::string_view position, std::string_view value) {
  return Add(source, position, value, v1::FACT_VISIBILITY_NOT_SEEN, "");
}

FactId Ledger::NotSeeable(std::string_view source, std::string_view position,
                          std::string_view reason) {
  return Add(source, position, "", v1::FACT_VISIBILITY_NOT_SEEABLE, reason);
}

}  // namespace expanse::intelligence::diagnose
