// SPDX-License-Identifier: Apache-2.0
// Which fragments are one run, as a pure function of all fragments of one native id: whatever the
// order in which they came, the same set gives the same runs.
//
// Rules, from strong to weak:
//  1. Fragments that share a strong name are one fragment already (identity/fragments).
//  2. Attempts of one submission: restart count, or an accounting row whose submission time is the
//     end of the attempt before. Slurm 22.05 gives each attempt a new submission time, and while it
//     completes the old attempt it shows the new restart count with the old submission time.
//  3. An accounting row without a restart count joins the attempt with its submission time.
//  4. A sight (native id and time) joins the youngest run whose life can contain the time.
//  5. Sights that fit no run make provisional runs, which a later full key adopts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace expanse::data_plane {

enum FragmentFlag : int64_t {
  kTerminal = 1,      // a scheduler said it ended
  kRequeueCause = 2,  // it ended by requeue, preemption or node failure
  kResizing = 4,      // accounting row of a segment before a resize
  kRunsHere = 8,      // a hook or a cgroup: seen while running
  kProlog = 16,
  kEpilog = 32,
  kAnchored = 64,  // named by submission and restart, SLUID, accounting row or UID
};

/// What is known of one fragment. All fields fold with min, max or "or" over its facts, so that
/// they do not depend on the order of arrival.
struct Fragment {
  std::string id;
  std::string execution_id;  // given so far; empty: none
  bool weak = false;
  std::optional<int64_t> submit_ms;
  std::optional<int32_t> restart_count;
  std::optional<int64_t> db_index;
  std::optional<int64_t> start_ms;
  std::optional<int64_t> end_ms;
  std::optional<int64_t> pending_until_ms;
  std::optional<int64_t> alive_until_ms;
  int64_t first_observed_ms = 0;
  int64_t last_observed_ms = 0;
  int64_t flags = 0;

  bool Has(FragmentFlag flag) const { return (flags & flag) != 0; }
  /// Placed by strong keys, not by its time.
  bool anchored() const { return !weak && Has(kAnchored); }
};

enum class Superseded {
  kNo,
  kByAttempt,  // a later attempt of the same submission exists
  kByReuse,    // the native id was given to another submission since
};

struct RunGrouping {
  std::vector<size_t> members;  // indexes of the fragments, ascending
  bool provisional = false;     // sights only
  int32_t attempt = 1;
  size_t first_attempt = 0;  // index of the run that is the first attempt known (maybe itself)
  Superseded superseded = Superseded::kNo;
};

/// Runs in the order of their birth. Every fragment is in exactly one run.
std::vector<RunGrouping> AssignRuns(const std::vector<Fragment>& fragments);

}  // namespace expanse::data_plane
