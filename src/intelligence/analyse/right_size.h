// SPDX-License-Identifier: Apache-2.0
// The recommendation as an edit of the script.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "expanse/intelligence/v1/intelligence.pb.h"
#include "intelligence/analyse/recommend.h"
#include "intelligence/analyse/submission_view.h"

namespace expanse::intelligence::analyse {

struct RightSizing {
  v1::RightSize right_size;                  // class "none" when nothing changes
  std::optional<v1::ArtifactContent> patch;  // its artifact_id is the one given
  std::vector<std::string> warnings;
};

/// target: the file as the user named it.
RightSizing MakePatch(const SubmissionView& view, const Recommendation& recommendation,
                      const std::string& target, const std::string& artifact_id);

}  // namespace expanse::intelligence::analyse
