// SPDX-License-Identifier: Apache-2.0
#include "platform/random/random.h"

#include <array>
#include <cerrno>

#include <sys/random.h>

#include "base/ids.h"
#include "base/result.h"
#include "base/strings.h"

namespace expanse::platform {

void SystemRandom::Fill(std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::getrandom(out.data() + done, out.size() - done, 0);
    if (n < 0 && errno == EINTR) continue;
    EXPANSE_CHECK(n > 0);
    done += static_cast<size_t>(n);
  }
}

void FakeRandom::Fill(std::span<uint8_t> out) {
  for (auto& b : out) {  // splitmix64, a byte at a time
    state_ += 0x9e3779b97f4a7c15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    b = static_cast<uint8_t>(z ^ (z >> 31));
  }
}

std::string NewUuid(const Clock& clock, Random& random) {
  std::array<uint8_t, 10> bits{};
  random.Fill(bits);
  return FormatUuidV7(ToUnixMillis(clock.Now()), bits);
}

std::string NewToken(std::string_view prefix, Random& random) {
  std::array<uint8_t, 32> bits{};
  random.Fill(bits);
  return std::string(prefix) +
         Base64UrlEncode(std::string_view(reinterpret_cast<const char*>(bits.data()), bits.size()));
}

}  // namespace expanse::platform
