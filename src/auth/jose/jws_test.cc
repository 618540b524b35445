// SPDX-License-Identifier: Apache-2.0
#include "auth/jose/jws.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace expanse::auth {
namespace {

// RFC 7515 appendix A.3: example JWS using ECDSA P-256 SHA-256.
constexpr std::string_view kRfcKey =
    R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
    R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",)"
    R"("d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"})";
constexpr std::string_view kRfcPublicKey =
    R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
    R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"})";
constexpr std::string_view kRfcToken =
    "eyJhbGciOiJFUzI1NiJ9"
    ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlf"
    "Q"
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
constexpr std::string_view kRfcPayload =
    "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";

std::string Token(std::string_view header, std::string_view payload = "{}",
                  std::string_view signature = "sig") {
  return Base64UrlEncode(header) + "." + Base64UrlEncode(payload) + "." +
         Base64UrlEncode(signature);
}

SigningKey NewKey() {
  auto key = SigningKey::Generate();
  EXPECT_TRUE(key.ok()) << key.error().message();
  return std::move(key).value();
}

TEST(Jws, VerifiesTheExampleOfRfc7515AppendixA3) {
  const auto payload = VerifyJws(kRfcToken, kRfcPublicKey);
  ASSERT_TRUE(payload.ok()) << payload.error().message();
  EXPECT_EQ(*payload, kRfcPayload);
}

TEST(Jws, RefusesTheRfcExampleWithAnyPartChanged) {
  for (size_t i = 0; i < kRfcToken.size(); ++i) {
    std::string changed(kRfcToken);
    if (kRfcToken[i] == '.') continue;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    const auto payload = VerifyJws(changed, kRfcPublicKey);
    ASSERT_FALSE(payload.ok()) << "position " << i;
    EXPECT_EQ(payload.error().code(), Code::kUnauthenticated);
  }
}

TEST(Jws, AcceptsOneSpellingOfASignature) {
  for (const char* tail : {"A", "x", "AA", "AAAA", "=", "_"})
    EXPECT_FALSE(VerifyJws(std::string(kRfcToken) + tail, kRfcPublicKey).ok()) << tail;
  std::string unused_bits(kRfcToken);
  ++unused_bits.back();  // Q to R: the same 64 bytes, other padding bits
  EXPECT_FALSE(VerifyJws(unused_bits, kRfcPublicKey).ok());
}

TEST(Jws, SignsWhatItVerifiesAndNamesKeyAndType) {
  const SigningKey key = NewKey();
  const auto token = SignJws(key, "test+jwt", R"({"a":1})");
  ASSERT_TRUE(token.ok()) << token.error().message();
  const auto header = ParseJwsHeader(*token);
  ASSERT_TRUE(header.ok()) << header.error().message();
  EXPECT_EQ(header->kid, key.kid());
  EXPECT_EQ(header->type, "test+jwt");
  EXPECT_EQ(VerifyJws(*token, key.public_jwk()).value(), R"({"a":1})");
}

TEST(Jws, RefusesASignatureByAnotherKey) {
  const auto token = SignJws(NewKey(), "t", "{}");
  const auto payload = VerifyJws(*token, NewKey().public_jwk());
  ASSERT_FALSE(payload.ok());
  EXPECT_EQ(payload.error().code(), Code::kUnauthenticated);
  EXPECT_THAT(payload.error().message(), testing::HasSubstr("signature"));
}

struct BadToken {
  std::string name;
  std::string token;
  std::string says;
};
class RefusesToken : public testing::TestWithParam<BadToken> {};

TEST_P(RefusesToken, AsUnauthenticatedWithTheReason) {
  const auto header = ParseJwsHeader(GetParam().token);
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().code(), Code::kUnauthenticated);
  EXPECT_THAT(header.error().message(), testing::HasSubstr(GetParam().says));
  EXPECT_FALSE(VerifyJws(GetParam().token, kRfcPublicKey).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Tokens, RefusesToken,
    testing::Values(
        BadToken{"Empty", "", "three parts"}, BadToken{"TwoParts", "a.b", "three parts"},
        BadToken{"FiveParts", "a.b.c.d.e", "three parts"},
        BadToken{"EmptySignature", Token(R"({"alg":"ES256"})", "{}", ""), "base64url"},
        BadToken{"AlgNone", Token(R"({"alg":"none"})"), "algorithm 'none'"},
        BadToken{"AlgNoneInCapitals", Token(R"({"alg":"NONE"})"), "only ES256"},
        BadToken{"AlgHs256", Token(R"({"alg":"HS256"})"), "only ES256"},
        BadToken{"AlgRs256", Token(R"({"alg":"RS256"})"), "only ES256"},
        BadToken{"AlgEs256k", Token(R"({"alg":"ES256K"})"), "only ES256"},
        BadToken{"AlgMissing", Token(R"({"kid":"x"})"), "only ES256"},
        BadToken{"AlgNoString", Token(R"({"alg":256})"), "no string"},
        BadToken{"AlgWithTerminalControl", Token("{\"alg\":\"\\u001b[2J\"}"), "\\x1b"},
        BadToken{"Critical", Token(R"({"alg":"ES256","crit":["b64"],"b64":false})"), "critical"},
        BadToken{"HeaderNoJson", Token("hello"), "no JSON object"},
        BadToken{"HeaderArray", Token(R"(["alg","ES256"])"), "no JSON object"},
        BadToken{"HeaderDeep", Token(std::string(64, '[') + std::string(64, ']')), "no JSON"},
        BadToken{"Padding", "eyJhbGciOiJFUzI1NiJ9.e30=.c2ln", "base64url"},
        BadToken{"Space", " " + std::string(kRfcToken), "base64url"},
        BadToken{"Newline", std::string(kRfcToken) + "\n", "base64url"},
        BadToken{"Nul", std::string(kRfcToken) + std::string(1, '\0'), "base64url"},
        BadToken{"LongHeader", Token(R"({"alg":"ES256","x":")" + std::string(4096, 'x') + "\"}"),
                 "header is too long"},
        BadToken{"Oversized", std::string(kMaxTokenBytes + 1, 'a'), "16 KiB"}),
    [](const auto& i) { return i.param.name; });

TEST(Jws, RefusesAHeaderThatNamesTheAlgorithmTwice) {
  const auto token = Token(R"({"alg":"none","alg":"ES256"})", "{}", std::string(64, 's'));
  EXPECT_FALSE(VerifyJws(token, kRfcPublicKey).ok());
}

TEST(KeySet, KeepsUsableKeysAndLeavesOthersOut) {
  const SigningKey key = NewKey();
  const std::string jwks =
      R"({"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"a"},{"kty":"RSA","kid":"b","n":"x","e":"AQAB"},)"
      R"({"kty":"EC","crv":"P-256","kid":"off-curve","x":"AA","y":"AA"},7,)" +
      std::string(kRfcPublicKey) + "," + key.public_jwk() + R"(],"issuer":"i"})";
  const auto set = KeySet::FromJwks(jwks);
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->size(), 1U) << "only the P-256 key with a kid";
  EXPECT_NE(set->Find(key.kid()), nullptr);
  EXPECT_EQ(set->Find("a"), nullptr);
  EXPECT_EQ(set->issuer(), "i");
}

TEST(KeySet, ReadsWhatItWrites) {
  const SigningKey a = NewKey();
  const SigningKey b = NewKey();
  const auto set =
      KeySet::FromJwks(KeySet::ToJwks("the \"issuer\"", {a.public_jwk(), b.public_jwk()}));
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->size(), 2U);
  EXPECT_EQ(set->issuer(), "the \"issuer\"");
}

TEST(KeySet, RefusesPrivateKeysAndTextThatIsNoKeySet) {
  for (const std::string& text :
       {std::string(""), std::string("{}"), std::string(R"({"keys":{}})"), std::string("[]"),
        std::string(300 << 10, ' '), R"({"keys":[)" + NewKey().jwk().Reveal() + "]}"}) {
    const auto set = KeySet::FromJwks(text);
    ASSERT_FALSE(set.ok()) << text.substr(0, 40);
    EXPECT_EQ(set.error().code(), Code::kInvalidArgument);
  }
}

TEST(SigningKey, SurvivesBeingWrittenAndRead) {
  const SigningKey key = NewKey();
  const auto read = SigningKey::FromJwk(key.jwk());
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->kid(), key.kid());
  const auto token = SignJws(*read, "t", "{}");
  EXPECT_TRUE(VerifyJws(*token, key.public_jwk()).ok());
}

TEST(SigningKey, PublicFormHoldsNoPrivatePart) {
  const SigningKey key = NewKey();
  EXPECT_EQ(key.public_jwk().find("\"d\""), std::string::npos);
  EXPECT_FALSE(SigningKey::FromJwk(Secret(key.public_jwk())).ok());
}

TEST(SigningKey, RefusesAKeyOffTheCurve) {
  std::string jwk(kRfcKey);
  jwk.replace(jwk.find("f83O"), 4, "AAAA");
  EXPECT_FALSE(SigningKey::FromJwk(Secret(jwk)).ok());
}

}  // namespace
}  // namespace expanse::auth
