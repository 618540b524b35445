// SPDX-License-Identifier: Apache-2.0
// Distinct types for the ids of distinct things, all UUIDs in their canonical lower-case text.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace expanse {

template <typename Tag>
class Id {
 public:
  Id() = default;
  explicit Id(std::string text) : text_(std::move(text)) {}
  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  auto operator<=>(const Id&) const = default;

 private:
  std::string text_;
};

using OrgId = Id<struct OrgTag>;
using UserId = Id<struct UserTag>;
using TeamId = Id<struct TeamTag>;
using ComputeId = Id<struct ComputeTag>;
using ExecutionId = Id<struct ExecutionTag>;
using RunId = Id<struct RunTag>;            // an analyse or diagnose run
using ArtifactId = Id<struct ArtifactTag>;  // a patch

/// UUIDv7 (RFC 9562 section 5.7): 48 bits of unix milliseconds, version, 74 random bits.
std::string FormatUuidV7(int64_t unix_millis, const std::array<uint8_t, 10>& random);
/// True for 8-4-4-4-12 hexadecimal text of any UUID version.
bool IsUuid(std::string_view text);

}  // namespace expanse
