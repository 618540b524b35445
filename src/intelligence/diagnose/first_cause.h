// SPDX-License-Identifier: Apache-2.0
// The order among findings that may name the cause.
#pragma once

#include <vector>

#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {

struct Candidate {
  Finding finding;
  int depth = 0;
  /// Strength first, then depth: a strong crash outranks a weak environment hint.
  int Score() const { return finding.strength + 6 * depth; }
};

/// Scores that differ by no more are about as good.
inline constexpr int kCloseScores = 8;

/// The candidate that explains the others; null when there is none. Of each stream the earliest of
/// those about as good as its best is chosen, then the best of the streams. The order in which the
/// candidates come changes nothing.
const Candidate* ChooseAmong(const std::vector<Candidate>& candidates);

}  // namespace expanse::intelligence::diagnose
