// SPDX-License-Identifier: Apache-2.0
// Hashes by OpenSSL. No algorithm is implemented here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace expanse::platform {

/// 32 raw bytes.
std::string Sha256(std::string_view bytes);
/// 64 lower-case hexadecimal characters.
std::string Sha256Hex(std::string_view bytes);
std::string HmacSha256(std::string_view key, std::string_view bytes);
/// Time independent of where the two differ.
bool ConstantTimeEquals(std::string_view a, std::string_view b);

/// Hash of a stream too large to hold.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  Sha256Stream(const Sha256Stream&) = delete;
  Sha256Stream& operator=(const Sha256Stream&) = delete;
  void Update(std::string_view bytes);
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// True when signature (base64 of an ASN.1 ECDSA signature, as `cosign sign-blob` writes it) of
/// SHA-256 over bytes holds under the PEM public key. False for anything malformed.
bool VerifyCosignSignature(std::string_view public_key_pem, std::string_view bytes,
                           std::string_view signature);

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4) for on-disk frames.
uint32_t Crc32c(std::string_view bytes, uint32_t seed = 0);

}  // namespace expanse::platform
