// SPDX-License-Identifier: Apache-2.0
#include "storage/series/chunk_codec.h"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "storage/series/byte_io.h"

namespace expanse::storage {
namespace {

void ExpectIntegersComeBack(const std::vector<int64_t>& in) {
  std::string bytes;
  EncodeIntegers(in, bytes);
  bytes += "behind";
  std::string_view rest = bytes;
  const auto out = DecodeIntegers(rest, in.size());
  ASSERT_TRUE(out.ok()) << out.error().message();
  EXPECT_EQ(*out, in);
  EXPECT_EQ(rest, "behind");
}

size_t ExpectDoublesComeBack(const std::vector<double>& in) {
  std::string bytes;
  EncodeDoubles(in, bytes);
  const size_t size = bytes.size();
  bytes += "behind";
  std::string_view rest = bytes;
  const auto out = DecodeDoubles(rest, in.size());
  EXPECT_TRUE(out.ok()) << out.error().message();
  if (!out.ok() || out->size() != in.size()) return size;
  for (size_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint64_t>((*out)[i]), std::bit_cast<uint64_t>(in[i])) << in[i];
  EXPECT_EQ(rest, "behind");
  return size;
}

TEST(ChunkCodec, BringsBackIntegersOfEveryShape) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const std::vector<int64_t>& in : {std::vector<int64_t>{},
                                         {0},
                                         {kMin},
                                         {kMax},
                                         {kMin, kMax},
                                         {kMax, kMin, kMax, 0, -1},
                                         {1, 2, 3, 4},
                                         {10, 20, 30, 41, 50},
                                         {5, 5, 5},
                                         {0, 1, 4, 9, 16, 25, 36}})
    ExpectIntegersComeBack(in);
}

TEST(ChunkCodec, StoresRegularTimesInAFewBytes) {
  std::vector<int64_t> times;
  for (int i = 0; i < 1000; ++i) times.push_back(1'700'000'000'123 + i * 10'000);
  std::string bytes;
  EncodeIntegers(times, bytes);
  EXPECT_LE(bytes.size(), 12U);
  ExpectIntegersComeBack(times);
}

TEST(ChunkCodec, BringsBackDoublesOfEveryKindBitForBit) {
  using Limits = std::numeric_limits<double>;
  for (const std::vector<double>& in : {std::vector<double>{},
                                        {0.0},
                                        {-0.0},
                                        {0.0, -0.0},
                                        {Limits::infinity()},
                                        {Limits::quiet_NaN(), 1},
                                        {-Limits::infinity(), Limits::denorm_min()},
                                        {Limits::max(), Limits::lowest()},
                                        {0.1, 0.2, 0.3},
                                        {1e-9, 1},
                                        {1e-10, 1},
                                        {9007199254740992.0, 1},
                                        {9007199254740991.0, -9007199254740991.0},
                                        {1e15, 0.001},
                                        {4096, 8192, 4096 * 100},
                                        {1.0 / 3, 2.0 / 3},
                                        {-1.5, 2.25, -3.125}})
    ExpectDoublesComeBack(in);
}

TEST(ChunkCodec, StoresPagesAndDecimalsAsSmallIntegers) {
  std::vector<double> pages;
  std::vector<double> decimals;
  for (int i = 0; i < 1000; ++i) {
    pages.push_back(1e9 - std::fmod(1e9, 4096) + 4096.0 * (i % 50));
    decimals.push_back(std::round(97.0 + (i * 7 % 13)) / 100);
  }
  EXPECT_LE(ExpectDoublesComeBack(pages), 1020U);
  EXPECT_LE(ExpectDoublesComeBack(decimals), 1020U);
  EXPECT_LE(ExpectDoublesComeBack(std::vector<double>(1000, 17179869184.0)), 10U);
}

TEST(ChunkCodec, BringsBackRandomColumns) {
  std::mt19937_64 random(7);
  const std::function<double()> sources[] = {
      [&] { return std::bit_cast<double>(random()); },
      [&] { return static_cast<double>(random() % 1000); },
      [&] { return static_cast<double>(static_cast<int64_t>(random() >> 12)) / 1000.0; },
      [&] { return static_cast<double>(static_cast<float>(random() % 99991) / 7.0F); },
      [&] { return std::round(std::sin(static_cast<double>(random() % 100)) * 1e6) / 1e6; },
      [&] { return random() % 50 == 0 ? 1.0 / 3 : 4096.0 * static_cast<double>(random() % 9); }};
  for (int round = 0; round < 600; ++round) {
    std::vector<double> in(random() % 300);
    const auto& source = sources[static_cast<size_t>(round) % std::size(sources)];
    for (double& v : in) v = source();
    ExpectDoublesComeBack(in);
    std::vector<int64_t> integers(random() % 300);
    const auto shift = static_cast<int>(random() % 64);
    int64_t base = 0;
    for (int64_t& v : integers) {
      base += static_cast<int64_t>(random() >> shift) / 2;
      v = round % 2 == 0 ? base : static_cast<int64_t>(random() >> shift);
      base /= 2;
    }
    ExpectIntegersComeBack(integers);
  }
}

TEST(ChunkCodec, BringsBackStatisticsInFewBytes) {
  for (const double v : {0.0, -0.0, 1.0, -17179869184.0, 0.123, 1.0 / 3, 1e300}) {
    std::string bytes;
    PutDecimal(bytes, v);
    ByteReader reader(bytes);
    EXPECT_EQ(std::bit_cast<uint64_t>(GetDecimal(reader)), std::bit_cast<uint64_t>(v));
    EXPECT_TRUE(reader.AtEnd());
  }
}

TEST(ChunkCodec, RefusesWhatItCannotHaveWritten) {
  std::string bytes;
  EncodeDoubles(std::vector<double>{0.5, 1.0 / 3, 0.25}, bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    auto part = std::string_view(bytes).substr(0, size);
    EXPECT_EQ(DecodeDoubles(part, 3).error().code(), Code::kDataLoss);
  }
  for (const std::string& bad : {std::string("\x3f"), std::string("\xff\xff\xff\xff"),
                                 std::string("\x00\x02\x01\xfc\x00", 5)}) {
    std::string_view rest = bad;
    EXPECT_FALSE(DecodeDoubles(rest, 10).ok());
  }
  std::string_view rest = bytes;
  EXPECT_FALSE(DecodeDoubles(rest, kMaxChunkSamples + 1).ok());
}

TEST(ByteReader, StaysFailedAfterTheEnd) {
  ByteReader reader(std::string_view("\x80", 1));
  EXPECT_EQ(reader.Varint(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.U8(), 0);
  EXPECT_TRUE(reader.Text().empty());
  ByteReader large(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10));
  large.Varint();
  EXPECT_FALSE(large.ok());  // more than 64 bits
}

}  // namespace
}  // namespace expanse::storage
