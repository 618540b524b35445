// SPDX-License-Identifier: Apache-2.0
// Unknown and censored values as types: what was not seen has a reason, what was cut short is a
// floor. The wire forms are MeasuredInt64/MeasuredDouble and the `unknown` maps.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace expanse::domain {

/// A value that was seen, or why it was not. Never 0, -1, NaN or "" for "not seen".
template <typename T>
class Reading {
 public:
  Reading(T value) : v_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  static Reading Missing(std::string reason) { return Reading(Reason{std::move(reason)}); }

  bool seen() const { return v_.index() == 0; }
  const T& value() const { return std::get<0>(v_); }
  const std::string& reason() const { return std::get<1>(v_).text; }

 private:
  struct Reason {
    std::string text;
  };
  explicit Reading(Reason reason) : v_(std::move(reason)) {}
  std::variant<T, Reason> v_;
};

enum class Bound { kExact, kAtLeast };

/// A measurement with how far it can be trusted.
template <typename T>
struct Measured {
  T value{};
  Bound bound = Bound::kExact;
  std::string reason;  // why it is only a floor
};

/// The better of two measurements of one peak: the larger value; on equal values the exact one.
/// An exact peak beats a smaller floor, a larger floor beats an exact value that it contradicts.
template <typename T>
Measured<T> BetterPeak(const Measured<T>& a, const Measured<T>& b) {
  if (a.value != b.value) return a.value > b.value ? a : b;
  return a.bound == Bound::kExact ? a : b;
}

}  // namespace expanse::domain
