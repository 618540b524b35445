// SPDX-License-Identifier: Apache-2.0
#include "storage/series/chunk_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

#include "storage/series/byte_io.h"

namespace expanse::storage {
namespace {

// How an integer column is predicted. Arithmetic wraps at 64 bits, so that any input comes back.
enum Prediction : uint8_t {
  kOffset = 0,      // v[i] - base
  kSlope = 1,       // v[i] - (base + i * step)
  kDifference = 2,  // v[i] - v[i-1] - step
  kSecond = 3,      // (v[i] - v[i-1]) - (v[i-1] - v[i-2])
  kPredictions = 4,
};
constexpr uint8_t kXor = 0x40;  // first byte of a column of doubles that are not decimals
constexpr int kMaxDecimals = 9;
constexpr std::array<double, kMaxDecimals + 1> kPowers{1e0, 1e1, 1e2, 1e3, 1e4,
                                                       1e5, 1e6, 1e7, 1e8, 1e9};
constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53

struct Plan {
  Prediction prediction = kOffset;
  int64_t base = 0;
  int64_t step = 0;
};

constexpr uint64_t U(int64_t v) { return static_cast<uint64_t>(v); }

// Runs the prediction forwards over known values; leftovers are zig-zagged.
void Leftovers(std::span<const int64_t> values, const Plan& plan, std::vector<uint64_t>& out) {
  out.resize(values.size());
  uint64_t expected = U(plan.base);
  uint64_t last_step = U(plan.step);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t v = U(values[i]);
    out[i] = ZigZag(static_cast<int64_t>(v - expected));
    switch (plan.prediction) {
      case kOffset:
      case kPredictions:
        break;
      case kSlope:
        expected += U(plan.step);
        break;
      case kDifference:
        expected = v + U(plan.step);
        break;
      case kSecond:
        if (i > 0) last_step = v - U(values[i - 1]);
        expected = v + last_step;
        break;
    }
  }
}

void Restore(const Plan& plan, std::span<const uint64_t> leftovers, std::vector<int64_t>& out) {
  out.resize(leftovers.size());
  uint64_t expected = U(plan.base);
  uint64_t last_step = U(plan.step);
  for (size_t i = 0; i < leftovers.size(); ++i) {
    const uint64_t v = expected + U(UnZigZag(leftovers[i]));
    out[i] = static_cast<int64_t>(v);
    switch (plan.prediction) {
      case kOffset:
      case kPredictions:
        break;
      case kSlope:
        expected += U(plan.step);
        break;
      case kDifference:
        expected = v + U(plan.step);
        break;
      case kSecond:
        if (i > 0) last_step = v - U(out[i - 1]);
        expected = v + last_step;
        break;
    }
  }
}

int WidthOf(std::span<const uint64_t> leftovers) {
  uint64_t all = 0;
  for (const uint64_t v : leftovers) all |= v;
  return (static_cast<int>(std::bit_width(all)) + 7) / 8;
}

// Bytes that an order-0 entropy coder needs for the byte planes.
double EstimatedBytes(std::span<const uint64_t> leftovers, int width) {
  const auto n = static_cast<double>(leftovers.size());
  double bits = 0;
  for (int plane = 0; plane < width; ++plane) {
    std::array<uint32_t, 256> counts{};
    for (const uint64_t v : leftovers) ++counts[(v >> (8 * plane)) & 0xff];
    for (const uint32_t count : counts)
      if (count != 0) bits += count * std::log2(n / count);
  }
  return bits / 8;
}

int64_t MedianDifference(std::span<const int64_t> values) {
  if (values.size() < 2) return 0;
  std::vector<int64_t> differences(values.size() - 1);
  for (size_t i = 1; i < values.size(); ++i)
    differences[i - 1] = static_cast<int64_t>(U(values[i]) - U(values[i - 1]));
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  return *middle;
}

void PutPlanes(std::span<const uint64_t> leftovers, int width, std::string& out) {
  for (int plane = 0; plane < width; ++plane)
    for (const uint64_t v : leftovers) out += static_cast<char>(v >> (8 * plane));
}

std::vector<uint64_t> JoinPlanes(std::string_view planes, int width, size_t count) {
  std::vector<uint64_t> out(count);
  for (int plane = 0; plane < width; ++plane) {
    const char* p = planes.data() + static_cast<size_t>(plane) * count;
    for (size_t i = 0; i < count; ++i)
      out[i] |= uint64_t{static_cast<unsigned char>(p[i])} << (8 * plane);
  }
  return out;
}

// k with v == k / 10^decimals bit for bit.
std::optional<int64_t> AsDecimal(double v, int decimals) {
  const double scaled = std::nearbyint(v * kPowers[static_cast<size_t>(decimals)]);
  if (!(std::abs(scaled) < kMaxExactInteger)) return std::nullopt;
  const auto k = static_cast<int64_t>(scaled);
  const double back = static_cast<double>(k) / kPowers[static_cast<size_t>(decimals)];
  if (std::bit_cast<uint64_t>(back) != std::bit_cast<uint64_t>(v)) return std::nullopt;
  return k;
}

// The least number of decimals that holds every value.
std::optional<int> AsDecimals(std::span<const double> values, std::vector<int64_t>& out) {
  int decimals = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    while (!AsDecimal(values[i], decimals).has_value())
      if (++decimals > kMaxDecimals) return std::nullopt;
  }
  out.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto k = AsDecimal(values[i], decimals);
    if (!k.has_value()) return std::nullopt;  // too large with the decimals of another value
    out[i] = *k;
  }
  return decimals;
}

Error Damaged(const char* what) { return Error(Code::kDataLoss, std::string("chunk: ") + what); }

void EncodeXor(std::span<const double> values, std::string& out) {
  std::vector<uint64_t> bits(values.size());
  uint64_t last = 0;
  uint64_t all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto v = std::bit_cast<uint64_t>(values[i]);
    bits[i] = v ^ last;
    all |= bits[i];
    last = v;
  }
  uint8_t mask = 0;
  for (int plane = 0; plane < 8; ++plane)
    if (((all >> (8 * plane)) & 0xff) != 0) mask = static_cast<uint8_t>(mask | (1 << plane));
  out += static_cast<char>(kXor);
  out += static_cast<char>(mask);
  for (int plane = 0; plane < 8; ++plane)
    if ((mask >> plane & 1) != 0)
      for (const uint64_t v : bits) out += static_cast<char>(v >> (8 * plane));
}

Result<std::vector<double>> DecodeXor(ByteReader& reader, size_t count) {
  const uint8_t mask = reader.U8();
  std::vector<uint64_t> bits(count);
  for (int plane = 0; plane < 8; ++plane) {
    if ((mask >> plane & 1) == 0) continue;
    const auto bytes = reader.Bytes(count);
    if (!reader.ok()) return Damaged("values end early");
    for (size_t i = 0; i < count; ++i)
      bits[i] |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * plane);
  }
  if (!reader.ok()) return Damaged("values end early");
  std::vector<double> out(count);
  uint64_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    last ^= bits[i];
    out[i] = std::bit_cast<double>(last);
  }
  return out;
}

}  // namespace

void EncodeIntegers(std::span<const int64_t> values, std::string& out) {
  if (values.empty()) return;
  const int64_t step = MedianDifference(values);
  const int64_t least = *std::min_element(values.begin(), values.end());
  // The first value is the base, so that it costs no plane; kOffset counts from the least.
  const Plan plans[] = {{kOffset, least, 0},
                        {kSlope, values[0], step},
                        {kDifference, values[0], step},
                        {kSecond, values[0], step}};
  std::vector<uint64_t> best;
  std::vector<uint64_t> leftovers;
  Plan best_plan;
  int best_width = 0;
  double best_bytes = 0;
  for (const Plan& plan : plans) {
    Leftovers(values, plan, leftovers);
    const int width = WidthOf(leftovers);
    const double bytes = EstimatedBytes(leftovers, width) + width;
    if (best.empty() || bytes < best_bytes) {
      best.swap(leftovers);
      best_plan = plan;
      best_width = width;
      best_bytes = bytes;
    }
    if (best_width == 0) break;
  }
  out += static_cast<char>(best_plan.prediction | best_width << 2);
  PutVarint(out, ZigZag(best_plan.base));
  if (best_plan.prediction != kOffset) PutVarint(out, ZigZag(best_plan.step));
  PutPlanes(best, best_width, out);
}

Result<std::vector<int64_t>> DecodeIntegers(std::string_view& bytes, size_t count) {
  if (count == 0) return std::vector<int64_t>();
  if (count > kMaxChunkSamples) return Damaged("too many samples");
  ByteReader reader(bytes);
  const uint8_t head = reader.U8();
  const int width = head >> 2;
  Plan plan{static_cast<Prediction>(head & 3), UnZigZag(reader.Varint()), 0};
  if (plan.prediction != kOffset) plan.step = UnZigZag(reader.Varint());
  if (width > 8) return Damaged("unknown coding");
  const auto planes = reader.Bytes(count * static_cast<size_t>(width));
  if (!reader.ok()) return Damaged("integers end early");
  std::vector<int64_t> out;
  Restore(plan, JoinPlanes(planes, width, count), out);
  bytes.remove_prefix(bytes.size() - reader.left());
  return out;
}

// Decimal columns: number of decimals, first value, common step, then integers from 0 by the step.
void EncodeDoubles(std::span<const double> values, std::string& out) {
  if (values.empty()) return;
  std::vector<int64_t> integers;
  const auto decimals = AsDecimals(values, integers);
  if (!decimals.has_value()) return EncodeXor(values, out);
  const int64_t first = integers[0];
  int64_t step = 0;
  for (int64_t& k : integers) {
    k -= first;  // both below 2^53
    step = std::gcd(step, k);
  }
  if (step > 1)
    for (int64_t& k : integers) k /= step;
  out += static_cast<char>(*decimals);
  PutVarint(out, ZigZag(first));
  PutVarint(out, U(step));
  if (step != 0) EncodeIntegers(integers, out);
}

Result<std::vector<double>> DecodeDoubles(std::string_view& bytes, size_t count) {
  if (count == 0) return std::vector<double>();
  if (count > kMaxChunkSamples) return Damaged("too many samples");
  ByteReader reader(bytes);
  const uint8_t head = reader.U8();
  if (head == kXor) {
    EXPANSE_TRY(auto out, DecodeXor(reader, count));
    bytes.remove_prefix(bytes.size() - reader.left());
    return out;
  }
  if (head > kMaxDecimals) return Damaged("unknown coding");
  const auto first = U(UnZigZag(reader.Varint()));
  const uint64_t step = reader.Varint();
  if (!reader.ok()) return Damaged("values end early");
  bytes.remove_prefix(bytes.size() - reader.left());
  const double power = kPowers[head];
  if (step == 0)
    return std::vector<double>(count, static_cast<double>(static_cast<int64_t>(first)) / power);
  EXPANSE_TRY(const auto integers, DecodeIntegers(bytes, count));
  std::vector<double> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<double>(static_cast<int64_t>(first + step * U(integers[i]))) / power;
  return out;
}

void PutDecimal(std::string& out, double v) {
  for (int decimals = 0; decimals <= kMaxDecimals; ++decimals)
    if (const auto k = AsDecimal(v, decimals); k.has_value()) {
      out += static_cast<char>(decimals);
      PutVarint(out, ZigZag(*k));
      return;
    }
  out += static_cast<char>(kXor);
  PutDouble(out, v);
}

double GetDecimal(ByteReader& reader) {
  const uint8_t head = reader.U8();
  if (head > kMaxDecimals) return reader.Double();
  return static_cast<double>(UnZigZag(reader.Varint())) / kPowers[head];
}

}  // namespace expanse::storage
