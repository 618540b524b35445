// SPDX-License-Identifier: Apache-2.0
// The wire form of domain::Measured, and BetterPeak on it.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "domain/reading.h"
#include "expanse/common/v1/measured.pb.h"

namespace expanse::data_plane {

template <typename M>
using ValueOf = decltype(std::declval<M>().value());

/// A bound that the sender did not state is a floor: claiming less is never wrong.
template <typename M>
domain::Measured<ValueOf<M>> FromWire(const M& m) {
  if (m.bound() == common::v1::BOUND_EXACT) return {m.value(), domain::Bound::kExact, ""};
  return {m.value(), domain::Bound::kAtLeast,
          m.bound() == common::v1::BOUND_UNSPECIFIED ? "the source did not state the bound"
                                                     : m.reason()};
}

template <typename M>
void ToWire(const domain::Measured<ValueOf<M>>& v, M* out) {
  out->set_value(v.value);
  out->set_bound(v.bound == domain::Bound::kExact ? common::v1::BOUND_EXACT
                                                  : common::v1::BOUND_AT_LEAST);
  out->set_reason(v.reason);
}

/// BetterPeak(*into, in); an absent value loses, and keeps its reason only against another absent
/// one. Equal floors keep the smaller reason, so that the order has no part in it.
template <typename M>
void FoldPeak(const M& in, M* into) {
  if (!in.has_value()) {
    if (!into->has_value() && !in.reason().empty() &&
        (into->reason().empty() || in.reason() < into->reason()))
      into->set_reason(in.reason());
    return;
  }
  if (!into->has_value()) {
    ToWire(FromWire(in), into);
    return;
  }
  auto a = FromWire(*into);
  const auto b = FromWire(in);
  if (a.value == b.value && a.bound == domain::Bound::kAtLeast &&
      b.bound == domain::Bound::kAtLeast)
    a.reason = std::min(a.reason, b.reason);
  ToWire(domain::BetterPeak(a, b), into);
}

/// The value is only a floor, for a reason that outweighs none given before.
template <typename M>
void Censor(const std::string& reason, M* m) {
  if (!m->has_value() || m->bound() == common::v1::BOUND_AT_LEAST) return;
  m->set_bound(common::v1::BOUND_AT_LEAST);
  m->set_reason(reason);
}

}  // namespace expanse::data_plane
