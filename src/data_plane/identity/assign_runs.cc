// SPDX-License-Identifier: Apache-2.0
#include "data_plane/identity/assign_runs.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <tuple>

namespace expanse::data_plane {
namespace {

constexpr int64_t kSecond = 1000;
// Slurm sets the start anew when the prolog is done: two starts within this are one.
constexpr int64_t kStartDrift = 60 * kSecond;
// A requeue gets its submission time when the attempt before ends.
constexpr int64_t kRequeueBefore = 2 * kSecond;
constexpr int64_t kRequeueAfter = 60 * kSecond;
// `scontrol requeue` takes an ended job for as long as slurmctld remembers it (MinJobAge).
constexpr int64_t kRequeueOfEnded = 600 * kSecond;
// Prolog before the start of a run, Epilog and KillWait after its end. Only a prolog comes before
// the start; the rest is what two clocks may differ.
constexpr int64_t kPrologBefore = 120 * kSecond;
constexpr int64_t kClockSkew = 5 * kSecond;
constexpr int64_t kSightAfter = 600 * kSecond;
constexpr int64_t kForever = std::numeric_limits<int64_t>::max() / 4;

template <typename T>
void FoldMax(std::optional<T>& into, const std::optional<T>& from) {
  if (from && (!into || *from > *into)) into = from;
}
template <typename T>
void FoldMin(std::optional<T>& into, const std::optional<T>& from) {
  if (from && (!into || *from < *into)) into = from;
}

struct Run {
  std::vector<size_t> members;
  std::vector<int64_t> submits;
  std::optional<int32_t> restart;
  std::optional<int64_t> submit;
  std::optional<int64_t> start;
  std::optional<int64_t> end;
  std::optional<int64_t> pending_until;
  std::optional<int64_t> alive_until;
  std::optional<int64_t> first_observed;
  std::optional<int64_t> last_observed;
  bool terminal = false;
  bool requeue_cause = false;
  bool provisional = false;
  bool has_accounting_row = false;
  bool resizing = false;
  size_t incarnation = 0;

  void Add(size_t index, const Fragment& f) {
    members.push_back(index);
    if (f.submit_ms) submits.push_back(*f.submit_ms);
    FoldMax(restart, f.restart_count);
    FoldMin(submit, f.submit_ms);
    FoldMax(start, f.start_ms);
    FoldMax(end, f.end_ms);
    FoldMax(pending_until, f.pending_until_ms);
    FoldMax(alive_until, f.alive_until_ms);
    FoldMin(first_observed, std::optional(f.first_observed_ms));
    FoldMax(last_observed, std::optional(f.last_observed_ms));
    terminal = terminal || f.Has(kTerminal);
    requeue_cause = requeue_cause || f.Has(kRequeueCause);
    if (f.db_index) has_accounting_row = true;
    resizing = f.Has(kResizing);
  }
  bool HasSubmit(int64_t ms) const {
    return std::find(submits.begin(), submits.end(), ms) != submits.end();
  }
  int64_t birth() const {
    if (submit) return *submit;
    if (start) return *start;
    return first_observed.value_or(0);
  }
};

class Assigner {
 public:
  explicit Assigner(const std::vector<Fragment>& fragments) : fragments_(fragments) {}

  std::vector<RunGrouping> Assign() {
    PlaceAnchored();
    PlaceSights();
    return Finish();
  }

 private:
  const Fragment& At(size_t i) const { return fragments_[i]; }

  Run& NewRun(size_t incarnation) {
    runs_.emplace_back();
    runs_.back().incarnation = incarnation;
    return runs_.back();
  }

  void PlaceAnchored() {
    std::map<int64_t, std::vector<size_t>> by_submit;
    for (size_t i = 0; i < fragments_.size(); ++i) {
      if (!At(i).anchored()) continue;
      if (At(i).submit_ms)
        by_submit[*At(i).submit_ms].push_back(i);
      else
        NewRun(++incarnations_).Add(i, At(i));  // a SLUID alone
    }
    std::optional<size_t> current;
    for (const auto& [submit, group] : by_submit) current = PlaceSubmission(submit, group, current);
  }

  std::optional<size_t> PlaceSubmission(int64_t submit, const std::vector<size_t>& group,
                                        std::optional<size_t> current) {
    std::vector<size_t> known;
    std::vector<size_t> unknown;
    for (const size_t i : group) (At(i).restart_count ? known : unknown).push_back(i);
    std::sort(known.begin(), known.end(), [&](size_t a, size_t b) {
      return std::tie(At(a).restart_count, At(a).id) < std::tie(At(b).restart_count, At(b).id);
    });
    std::sort(unknown.begin(), unknown.end(), [&](size_t a, size_t b) {
      const auto key = [&](size_t i) {
        return std::tuple(At(i).start_ms.value_or(kForever), At(i).db_index.value_or(0), At(i).id);
      };
      return key(a) < key(b);
    });
    const bool continues =
        current && (known.empty() ? FollowsEnd(*current, submit)
                                  : Continues(*current, submit, *At(known[0]).restart_count));
    const size_t incarnation = continues ? *current : ++incarnations_;
    for (const size_t i : known) {
      Run* run = FindRestart(incarnation, *At(i).restart_count);
      (run != nullptr ? *run : NewRun(incarnation)).Add(i, At(i));
    }
    for (const size_t i : unknown) PlaceAccountingRow(incarnation, submit, i);
    return incarnation;
  }

  Run* FindRestart(size_t incarnation, int32_t restart) {
    for (Run& run : runs_)
      if (run.incarnation == incarnation && run.restart == restart) return &run;
    return nullptr;
  }
  const Run* LastOf(size_t incarnation) const {
    const Run* last = nullptr;
    for (const Run& run : runs_)
      if (run.incarnation == incarnation &&
          (last == nullptr || std::tuple(run.restart.value_or(0), run.birth()) >=
                                  std::tuple(last->restart.value_or(0), last->birth())))
        last = &run;
    return last;
  }

  // A submission with restart count `restart` > 0 is a later attempt of the incarnation.
  bool Continues(size_t incarnation, int64_t submit, int32_t restart) {
    if (restart == 0) return false;
    if (const Run* same = FindRestart(incarnation, restart)) {
      const bool borrowed_submit = std::any_of(runs_.begin(), runs_.end(), [&](const Run& other) {
        return &other != same && other.incarnation == incarnation && same->submit &&
               other.HasSubmit(*same->submit);
      });
      return borrowed_submit && submit <= *same->first_observed + kRequeueOfEnded;
    }
    const Run* last = LastOf(incarnation);
    if (last == nullptr) return false;
    if (last->restart && *last->restart > restart) return false;
    return !last->end || last->requeue_cause || submit <= *last->end + kRequeueOfEnded;
  }

  bool FollowsEnd(size_t incarnation, int64_t submit) const {
    const Run* last = LastOf(incarnation);
    return last != nullptr && last->end && submit >= *last->end - kRequeueBefore &&
           submit <= *last->end + kRequeueAfter;
  }

  void PlaceAccountingRow(size_t incarnation, int64_t submit, size_t index) {
    const Fragment& row = At(index);
    Run* best = nullptr;
    int64_t best_distance = kForever;
    for (Run& run : runs_) {
      if (run.incarnation != incarnation || !run.HasSubmit(submit)) continue;
      if (run.resizing) {  // the segment before a resize: this row goes on from there
        best = &run;
        break;
      }
      if (run.has_accounting_row && row.db_index) continue;
      int64_t distance = 0;
      if (run.start && row.start_ms) distance = std::abs(*run.start - *row.start_ms);
      if (distance > kStartDrift) continue;
      if (row.end_ms && run.pending_until && *run.pending_until > *row.end_ms + 5 * kSecond)
        continue;  // still waiting after the row had ended: a later attempt
      if (distance < best_distance) {
        best = &run;
        best_distance = distance;
      }
    }
    (best != nullptr ? *best : NewRun(incarnation)).Add(index, row);
  }

  static int64_t SightTime(const Fragment& f) {
    if (!f.weak && f.start_ms) return *f.start_ms;  // start known, submission not
    return f.first_observed_ms;
  }

  static bool IsSameRestart(const Run& run, const Fragment& f) {
    return !f.restart_count || !run.restart || *run.restart == *f.restart_count;
  }
  // While an attempt that was put back completes, Slurm already tells its hooks the restart count
  // of the next one.
  static bool RestartFits(const Run& run, const Fragment& f) {
    return IsSameRestart(run, f) ||
           (f.Has(kRunsHere) && !f.Has(kProlog) && *f.restart_count == *run.restart + 1);
  }

  // How far the sight is from the life of the run; nothing when it cannot be its.
  std::optional<int64_t> Distance(const Run& run, int64_t upper_bound, const Fragment& f) const {
    if (f.submit_ms && !run.HasSubmit(*f.submit_ms)) return std::nullopt;
    if (!RestartFits(run, f)) return std::nullopt;
    const int64_t t = SightTime(f);
    int64_t lower = run.birth();
    if (f.Has(kRunsHere)) {
      if (run.start)
        lower = *run.start;
      else if (run.terminal && !run.provisional)
        return DistanceWithoutStart(run, t);
      else if (run.pending_until)
        lower = std::max(lower, *run.pending_until);
    } else if (run.first_observed && *run.first_observed < lower) {
      lower = *run.first_observed;
    }
    const int64_t upper = run.end ? *run.end : upper_bound;
    const int64_t before = f.Has(kRunsHere) && !f.Has(kProlog) ? kClockSkew : kPrologBefore;
    if (t < lower) return lower - t <= before ? std::optional(lower - t) : std::nullopt;
    if (t > upper) return t - upper <= kSightAfter ? std::optional(t - upper) : std::nullopt;
    return 0;
  }

  // A run that ended and whose start no scheduler recorded: mostly nothing ran. But accounting also
  // loses the start of a run that was requeued within its first second, so that a hook of that very
  // moment is its own, unless a run with a start fits.
  static std::optional<int64_t> DistanceWithoutStart(const Run& run, int64_t t) {
    if (!run.requeue_cause || !run.end) return std::nullopt;
    if (t < run.birth() - kRequeueBefore || t > *run.end + kRequeueAfter) return std::nullopt;
    return kSightAfter + std::abs(t - *run.end);
  }

  Run* FindHome(const Fragment& f, size_t run_count) {
    Run* best = nullptr;
    std::pair<bool, int64_t> best_fit{true, kForever};  // other restart count, distance
    for (size_t i = 0; i < run_count; ++i) {
      const int64_t next = i + 1 < run_count ? runs_[i + 1].birth() : kForever;
      const auto distance = Distance(runs_[i], next, f);
      if (!distance) continue;
      const std::pair fit(!IsSameRestart(runs_[i], f), *distance);
      if (fit <= best_fit) {  // runs are by birth: the youngest of equals
        best = &runs_[i];
        best_fit = fit;
      }
    }
    return best;
  }

  void SortRuns() {
    std::stable_sort(runs_.begin(), runs_.end(), [this](const Run& a, const Run& b) {
      const auto key = [this](const Run& r) {
        return std::tuple(r.birth(), r.restart.value_or(0), r.start.value_or(kForever),
                          At(r.members[0]).id);
      };
      return key(a) < key(b);
    });
  }

  std::vector<size_t> Sights() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < fragments_.size(); ++i)
      if (!At(i).anchored()) out.push_back(i);
    std::sort(out.begin(), out.end(), [&](size_t a, size_t b) {
      return std::tuple(SightTime(At(a)), At(a).id) < std::tuple(SightTime(At(b)), At(b).id);
    });
    return out;
  }

  void PlaceSights() {
    SortRuns();
    const size_t anchored = runs_.size();
    // Lives are those of the strong fragments alone, so that no sight depends on another.
    std::vector<std::pair<size_t, size_t>> homes;
    std::vector<size_t> homeless;
    for (const size_t i : Sights()) {
      Run* home = FindHome(At(i), anchored);
      if (home != nullptr)
        homes.emplace_back(static_cast<size_t>(home - runs_.data()), i);
      else
        homeless.push_back(i);
    }
    for (const auto& [run, i] : homes) runs_[run].members.push_back(i);
    PlaceHomeless(homeless);
    SortRuns();
  }

  void PlaceHomeless(const std::vector<size_t>& sights) {
    std::map<int64_t, size_t> by_submit;
    for (const size_t i : sights) {
      if (!At(i).submit_ms) continue;
      auto [it, is_new] = by_submit.try_emplace(*At(i).submit_ms, runs_.size());
      if (is_new) NewRun(++incarnations_).provisional = true;
      runs_[it->second].Add(i, At(i));
    }
    std::optional<size_t> open;
    std::optional<int64_t> epilog;
    for (const size_t i : sights) {
      if (At(i).submit_ms) continue;
      if (Run* home = FitProvisional(by_submit, At(i))) {
        home->members.push_back(i);
        continue;
      }
      const int64_t t = SightTime(At(i));
      const bool over = epilog && t > *epilog && (At(i).Has(kProlog) || t > *epilog + kSightAfter);
      if (!open || over) {
        open = runs_.size();
        epilog.reset();
        NewRun(++incarnations_).provisional = true;
      }
      runs_[*open].Add(i, At(i));
      if (At(i).Has(kEpilog)) epilog = std::max(epilog.value_or(0), t);
    }
  }

  Run* FitProvisional(const std::map<int64_t, size_t>& by_submit, const Fragment& f) {
    Run* best = nullptr;
    for (const auto& [submit, index] : by_submit)
      if (Distance(runs_[index], kForever, f)) best = &runs_[index];
    return best;
  }

  std::vector<RunGrouping> Finish() {
    std::vector<RunGrouping> out(runs_.size());
    for (size_t i = 0; i < runs_.size(); ++i) {
      const Run& run = runs_[i];
      RunGrouping& grouping = out[i];
      grouping.members = run.members;
      std::sort(grouping.members.begin(), grouping.members.end());
      grouping.provisional = run.provisional;
      grouping.first_attempt = i;
      int32_t before = 0;
      for (size_t j = 0; j < runs_.size(); ++j) {
        if (j == i || runs_[j].incarnation != run.incarnation) continue;
        if (j < i) {
          if (before++ == 0) grouping.first_attempt = j;
        } else if (!run.terminal) {
          grouping.superseded = Superseded::kByAttempt;
        }
      }
      grouping.attempt = run.restart ? *run.restart + 1 : before + 1;
      if (i + 1 < runs_.size() && !run.terminal && grouping.superseded == Superseded::kNo)
        grouping.superseded = Superseded::kByReuse;
    }
    return out;
  }

  const std::vector<Fragment>& fragments_;
  std::vector<Run> runs_;
  size_t incarnations_ = 0;
};

}  // namespace

std::vector<RunGrouping> AssignRuns(const std::vector<Fragment>& fragments) {
  return Assigner(fragments).Assign();
}

}  // namespace expanse::data_plane
