// SPDX-License-Identifier: Apache-2.0
#include "platform/crypto/crypto.h"

#include <array>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include "base/result.h"
#include "base/strings.h"

namespace expanse::platform {

struct Sha256Stream::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() { EXPANSE_CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256Stream::Sha256Stream() : state_(std::make_unique<State>()) {}
Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::Update(std::string_view bytes) {
  EXPANSE_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256Stream::FinishHex() {
  std::array<unsigned char, 32> out{};
  unsigned int n = 0;
  EXPANSE_CHECK(EVP_DigestFinal_ex(state_->context, out.data(), &n) == 1);
  return HexEncode(std::string_view(reinterpret_cast<const char*>(out.data()), out.size()));
}

std::string Sha256(std::string_view bytes) {
  std::array<unsigned char, 32> out{};
  unsigned int n = 0;
  EXPANSE_CHECK(EVP_Digest(bytes.data(), bytes.size(), out.data(), &n, EVP_sha256(), nullptr) == 1);
  return std::string(reinterpret_cast<const char*>(out.data()), out.size());
}

std::string Sha256Hex(std::string_view bytes) { return HexEncode(Sha256(bytes)); }

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  std::array<unsigned char, 32> out{};
  unsigned int n = 0;
  EXPANSE_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), out.data(),
                     &n) != nullptr);
  return std::string(reinterpret_cast<const char*>(out.data()), out.size());
}

bool ConstantTimeEquals(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

namespace {

// Slicing-by-8 tables for the reflected polynomial 0x82F63B78.
struct Crc32cTables {
  std::array<std::array<uint32_t, 256>, 8> t{};
  constexpr Crc32cTables() {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? (c >> 1) ^ 0x82F63B78U : c >> 1;
      t[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; ++i)
      for (size_t s = 1; s < 8; ++s) t[s][i] = (t[s - 1][i] >> 8) ^ t[0][t[s - 1][i] & 0xFF];
  }
};
constexpr Crc32cTables kCrc;

}  // namespace

bool VerifyCosignSignature(std::string_view public_key_pem, std::string_view bytes,
                           std::string_view signature) {
  if (signature.empty() || signature.size() % 4 != 0 || signature.size() > 4096) return false;
  std::string der(signature.size(), '\0');
  const int decoded = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(der.data()),
                                      reinterpret_cast<const unsigned char*>(signature.data()),
                                      static_cast<int>(signature.size()));
  if (decoded <= 0) return false;
  // EVP_DecodeBlock counts the padding as zero bytes.
  const size_t padding = signature.ends_with("==") ? 2 : signature.ends_with("=") ? 1 : 0;
  der.resize(static_cast<size_t>(decoded) - padding);
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(public_key_pem.data(), static_cast<int>(public_key_pem.size())), &BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      bio ? PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr) : nullptr, &EVP_PKEY_free);
  if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_EC) return false;
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  return context &&
         EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(der.data()),
                          der.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                          bytes.size()) == 1;
}

uint32_t Crc32c(std::string_view bytes, uint32_t seed) {
  uint32_t c = ~seed;
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t n = bytes.size();
  while (n >= 8) {
    const uint32_t low =
        c ^ (static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 |
             static_cast<uint32_t>(p[2]) << 16 | static_cast<uint32_t>(p[3]) << 24);
    c = kCrc.t[7][low & 0xFF] ^ kCrc.t[6][(low >> 8) & 0xFF] ^ kCrc.t[5][(low >> 16) & 0xFF] ^
        kCrc.t[4][low >> 24] ^ kCrc.t[3][p[4]] ^ kCrc.t[2][p[5]] ^ kCrc.t[1][p[6]] ^
        kCrc.t[0][p[7]];
    p += 8;
    n -= 8;
  }
  while (n-- > 0) c = (c >> 8) ^ kCrc.t[0][(c ^ *p++) & 0xFF];
  return ~c;
}

}  // namespace expanse::platform
