// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/recommend.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time.h"
#include "base/units.h"

namespace expanse::intelligence::analyse {
namespace {

// Less than this below the request is not worth an edit.
constexpr double kWorthLowering = 0.95;

std::string SizeText(double bytes) { return FormatSizeProse(Bytes{std::llround(bytes)}); }
std::string TimeText(double seconds) {
  return FormatDuration(std::chrono::duration_cast<Millis>(Seconds(std::llround(seconds))));
}
std::string_view RiskText(v1::RiskTolerance risk) {
  if (risk == v1::RISK_TOLERANCE_LOW) return "low";
  return risk == v1::RISK_TOLERANCE_HIGH ? "high" : "medium";
}

/// "the largest of 4 measured needs is 11.9 GiB"
std::string Basis(const Limit& limit, const std::string& largest, std::string_view what) {
  switch (limit.largest_is) {
    case Evidence::kExact:
    case Evidence::kSampled:
      return fmt::format("the largest of {} measured {} is {}", limit.measured, what, largest);
    case Evidence::kKilled:
      return fmt::format("a run was killed at {}, so it needs more; how much more is not known",
                         largest);
    case Evidence::kFloor:
      break;
  }
  return fmt::format("at least {} was seen in {} runs that ended early or were only sampled",
                     largest, limit.observations);
}

class Recommender {
 public:
  Recommender(const SubmissionView& view, const History& history,
              const data::v1::ComputeFacts* facts, v1::RiskTolerance risk)
      : view_(view), history_(history), facts_(facts), risk_(risk) {}

  Recommendation Run() {
    Memory();
    Cores();
    Walltime();
    out_.gpu_count = view_.requested.gpu_count;
    return std::move(out_);
  }

 private:
  void Say(std::string text) { out_.rationale.push_back(std::move(text)); }
  void Warn(std::string text) { out_.warnings.push_back(std::move(text)); }

  /// The rounded limit bounded by what the request already gives. `why` explains a figure that was
  /// left as requested.
  int64_t Choose(Resource resource, const Limit& limit, int64_t rounded,
                 std::optional<int64_t> requested, std::string* why) const {
    if (!requested) return rounded;
    const auto asked = static_cast<double>(*requested);
    if (rounded > *requested && Suffices(resource, limit, asked)) {
      *why = "the request is enough as it is";
      return *requested;
    }
    if (rounded >= *requested) return rounded;
    if (limit.measured == 0) {
      *why = "not lowered: no completed run has an exact measurement";
      return *requested;
    }
    if (history_.basis == "user_history") {
      *why = "not lowered: the recorded runs are of another source";
      return *requested;
    }
    if (static_cast<double>(rounded) > kWorthLowering * asked) {
      *why = "the request is right";
      return *requested;
    }
    return rounded;
  }

  void Explain(std::string_view name, const std::string& basis, const Limit& limit,
               const std::string& why, std::string (*text)(double)) {
    if (!why.empty()) {
      Say(fmt::format("{}: {}; {}.", name, basis, why));
    } else if (limit.rule == Limit::Rule::kLeastRoom) {
      Say(fmt::format("{}: {}; {} above it, the least margin, rounded up.", name, basis,
                      text(limit.room)));
    } else if (limit.rule == Limit::Rule::kLeastLimit) {
      Say(fmt::format("{}: {}; {}, the least limit, rounded up.", name, basis, text(limit.value)));
    } else {
      Say(fmt::format("{}: {}; {:.0f} % above it at {} risk, rounded up.", name, basis,
                      100 * limit.margin, RiskText(risk_)));
    }
  }

  void Memory() {
    const auto& asked = view_.requested.memory_bytes;
    out_.memory_limit =
        LimitFor({Resource::kMemory, MemoryObservations(history_), risk_, history_.same_source()});
    if (!out_.memory_limit) {
      out_.memory_bytes = asked;
      if (asked) Say("Memory: as requested; no recorded run has a measurement.");
      return;
    }
    const Limit& limit = *out_.memory_limit;
    std::optional<int64_t> per_node;
    if (asked) per_node = *asked / view_.nodes;
    std::string why;
    const int64_t chosen =
        Choose(Resource::kMemory, limit, RoundUpMemory(limit.value), per_node, &why);
    // Exactly the request when that was kept: a division must not lose bytes.
    out_.memory_bytes = per_node && chosen == *per_node ? *asked : chosen * view_.nodes;
    const bool enforced =
        std::any_of(history_.runs.begin(), history_.runs.end(), [&limit](const ObservedRun& run) {
          return run.memory && run.memory_is_enforced && run.memory->value == limit.largest;
        });
    Explain(view_.nodes > 1 ? "Memory of one node" : "Memory",
            Basis(limit, SizeText(limit.largest),
                  enforced ? "peaks (as enforced, page cache included)" : "needs"),
            limit, why, SizeText);
    CheckNodes(chosen);
  }

  void CheckNodes(int64_t per_node) {
    if (facts_ == nullptr) return;
    const auto* partition = PartitionOf(view_, facts_);
    int64_t largest = 0;
    for (const auto& node : facts_->nodes()) {
      const bool inside =
          partition == nullptr || std::find(node.partitions().begin(), node.partitions().end(),
                                            partition->name()) != node.partitions().end();
      if (inside) largest = std::max(largest, node.memory_bytes());
    }
    if (largest > 0 && per_node > largest) {
      Warn(fmt::format("{} of memory on one node is more than the largest node has ({})",
                       SizeText(static_cast<double>(per_node)),
                       SizeText(static_cast<double>(largest))));
    }
  }

  void Walltime() {
    const auto& asked = view_.requested.walltime_seconds;
    out_.walltime_limit = LimitFor(
        {Resource::kWalltime, RuntimeObservations(history_), risk_, history_.same_source()});
    if (!out_.walltime_limit) {
      out_.walltime_seconds = asked;
      if (asked) Say("Walltime: as requested; no recorded run has a duration.");
      return;
    }
    const Limit& limit = *out_.walltime_limit;
    std::string why;
    int64_t chosen = Choose(Resource::kWalltime, limit, RoundUpWalltime(limit.value), asked, &why);
    const auto* partition = PartitionOf(view_, facts_);
    const int64_t most = partition != nullptr ? partition->max_walltime_seconds() : 0;
    if (most > 0 && chosen > most && (!asked || chosen > *asked)) {
      Warn(fmt::format("partition {} allows at most {}; {} would be recommended",
                       EscapeForTerminal(partition->name()), TimeText(static_cast<double>(most)),
                       TimeText(static_cast<double>(chosen))));
      chosen = std::max(most, asked.value_or(0));
    }
    out_.walltime_seconds = chosen;
    Explain("Walltime", Basis(limit, TimeText(limit.largest), "durations"), limit, why, TimeText);
  }

  /// Cores are only ever lowered: that a program would use more of them cannot be seen in a run
  /// that did not have them.
  void Cores() {
    const auto& asked = view_.requested.cpu_cores;
    out_.cpu_cores = asked;
    if (!asked) return;
    double peak = 0;
    double mean = 0;
    for (const auto& run : history_.runs) {
      peak = std::max(peak, run.cores_peak.value_or(0));
      mean = std::max(mean, run.cores_mean.value_or(0));
    }
    if (peak <= 0 && mean <= 0) {
      Say("Cores: as requested; no recorded run has a measurement.");
      return;
    }
    const std::string seen = peak > 0
                                 ? fmt::format("the largest measured use is {:.1f} cores", peak)
                                 : fmt::format("the mean use was up to {:.1f} cores", mean);
    if (view_.request.exclusive || view_.nodes > 1 || history_.basis == "user_history") {
      Say(fmt::format("Cores: {}; as requested.", seen));
      return;
    }
    // A mean hides phases with more cores, so it lowers a request only when far below it.
    const double wanted = peak > 0 ? std::max(peak, mean) - kCoreTolerance : 1.5 * mean;
    const auto least = static_cast<int32_t>(std::ceil(std::max(wanted, 1.0)));
    const int32_t cores = std::max(least, view_.tasks);
    if (cores >= *asked || (peak <= 0 && 4 * cores > 3 * *asked)) {
      Say(fmt::format("Cores: {}; the request is right.", seen));
      return;
    }
    out_.cpu_cores = cores;
    Say(fmt::format("Cores: {}.", seen));
  }

  const SubmissionView& view_;
  const History& history_;
  const data::v1::ComputeFacts* facts_;
  v1::RiskTolerance risk_;
  Recommendation out_;
};

}  // namespace

std::vector<Observation> MemoryObservations(const History& history) {
  std::vector<Observation> out;
  for (const auto& run : history.runs)
    if (run.memory) out.push_back(*run.memory);
  return out;
}

std::vector<Observation> RuntimeObservations(const History& history) {
  std::vector<Observation> out;
  for (const auto& run : history.runs)
    if (run.runtime) out.push_back(*run.runtime);
  return out;
}

Recommendation Recommend(const SubmissionView& view, const History& history,
                         const data::v1::ComputeFacts* facts, v1::RiskTolerance risk) {
  return Recommender(view, history, facts, risk).Run();
}

}  // namespace expanse::intelligence::analyse
