// SPDX-License-Identifier: Apache-2.0
// Random bytes and new ids as injected dependencies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "platform/clock/clock.h"

namespace expanse::platform {

class Random {
 public:
  virtual ~Random() = default;
  /// Cryptographically strong in SystemRandom.
  virtual void Fill(std::span<uint8_t> out) = 0;
};

/// getrandom(2); aborts when the kernel refuses, since ids and keys must never be guessable.
class SystemRandom final : public Random {
 public:
  void Fill(std::span<uint8_t> out) override;
};

/// A fixed sequence for tests.
class FakeRandom final : public Random {
 public:
  explicit FakeRandom(uint64_t seed) : state_(seed) {}
  void Fill(std::span<uint8_t> out) override;

 private:
  uint64_t state_;
};

/// UUIDv7 of the clock's now.
std::string NewUuid(const Clock& clock, Random& random);
/// prefix + 43 base64url characters: 256 random bits ("exp_user_…").
std::string NewToken(std::string_view prefix, Random& random);

}  // namespace expanse::platform
