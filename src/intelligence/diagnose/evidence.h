// SPDX-License-Identifier: Apache-2.0
// Facts and the claims that stand on them. A claim without a fact is a programmer error.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expanse/intelligence/v1/intelligence.pb.h"

namespace expanse::intelligence::diagnose {

/// Number of a fact in its ledger, from 1; 0 is "no such fact".
using FactId = int;

/// One sentence and the facts it stands on.
struct Claim {
  std::string text;
  std::vector<FactId> facts;
};

/// The facts of one diagnosis in the order in which they were found. The same source, position and
/// value give the same fact.
class Ledger {
 public:
  FactId Seen(std::string_view source, std::string_view position, std::string_view value);
  /// Looked for and not there.
  FactId NotSeen(std::string_view source, std::string_view position, std::string_view value);
  /// Could not be looked for, and why.
  FactId NotSeeable(std::string_view source, std::string_view position, std::string_view reason);

  const std::vector<v1::Fact>& facts() const { return facts_; }
  const v1::Fact& Get(FactId id) const { return facts_[static_cast<size_t>(id - 1)]; }
  static std::string Name(FactId id) { return "f" + std::to_string(id); }

 private:
  FactId Add(std::string_view source, std::string_view position, std::string_view value,
             v1::FactVisibility visibility, std::string_view reason);
  std::vector<v1::Fact> facts_;
  std::map<std::string, FactId, std::less<>> index_;
};

/// Values longer than this are cut, with the cut marked: facts are pointers, not copies.
inline constexpr size_t kMaxFactValue = 600;

/// Well-formed text of at most max_bytes; "…" marks the cut.
std::string Shorten(std::string_view text, size_t max_bytes);

}  // namespace expanse::intelligence::diagnose
