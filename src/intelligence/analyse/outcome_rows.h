// SPDX-License-Identifier: Apache-2.0
// What recorded outcomes say: completion, residual risk, risk at the requested resources, score,
// and the runs that all of it stands on.
#pragma once

#include "expanse/intelligence/v1/intelligence.pb.h"
#include "intelligence/analyse/history.h"
#include "intelligence/analyse/recommend.h"
#include "intelligence/analyse/submission_view.h"

namespace expanse::intelligence::analyse {

/// completion_probability and residual_failure_risk, or completion_probability_known = false with
/// fewer than two recorded runs.
void AddOutcomes(const History& history, v1::AnalyseResult* result);

/// Risks at the resources that are requested now; only those that a recorded run shows.
void AddFailureRisk(const SubmissionView& view, const History& history, v1::AnalyseResult* result);

/// Label, and the score over measured runs where runs of this or a similar source exist.
void AddConfidence(const SubmissionView& view, const History& history,
                   const Recommendation& recommendation, v1::AnalyseResult* result);

/// One entry for each run that counted, newest first, and the number left out.
void AddEvidence(const History& history, v1::AnalyseResult* result);

/// Rows where at least kMinRunsForQuantiles completed runs were measured.
void AddQuantiles(const SubmissionView& view, const History& history, v1::AnalyseResult* result);

}  // namespace expanse::intelligence::analyse
