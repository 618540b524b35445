// SPDX-License-Identifier: Apache-2.0
// Runs that stood still: ranks that wait for each other, and programs that wait for their data.
#include <array>
#include <cstdlib>

#include "base/strings.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {
namespace {

struct Utilisation {
  double least = 101;
  double most = -1;
  FactId least_fact = 0;
  FactId most_fact = 0;
};

Utilisation ObservedUtilisation(const CaseView& view) {
  Utilisation u;
  for (size_t i = 0; i < view.in->observations.size(); ++i) {
    const auto& o = view.in->observations[i];
    if (o.key.find("util_pct") == std::string::npos) continue;
    const auto value = ParseDouble(o.value);
    if (!value) continue;
    if (*value < u.least) {
      u.least = *value;
      u.least_fact = view.observations[i];
    }
    if (*value > u.most) {
      u.most = *value;
      u.most_fact = view.observations[i];
    }
  }
  return u;
}

bool StoodStill(const CaseView& view) {
  return view.StateIs("TIMEOUT") || view.StateIs("hung") ||
         view.run->outcome() == common::v1::EXECUTION_OUTCOME_TIMEOUT ||
         view.ending == Ending::kRunning || view.ending == Ending::kCancelled;
}

// First line of the captured sources or of the logs that has one of the words.
std::optional<std::pair<std::string, FactId>> FirstMention(
    const CaseView& view, std::span<const std::string_view> words) {
  for (const auto& text : view.lines_of_interest) {
    const std::string lower = ToLower(text.first);
    for (std::string_view word : words)
      if (lower.find(word) != std::string::npos) return text;
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, 5> kCollectives{"barrier(", "all_reduce(", "allreduce",
                                                       "mpi_recv", "mpi_wait"};
constexpr std::array<std::string_view, 7> kLoaders{"dataloader",  "data loader", "pin_memory",
                                                   "num_workers", "augmenter",   "prefetch",
                                                   "data_queue"};

}  // namespace

std::optional<Finding> JobHang(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  if (!StoodStill(view)) return f;
  // Some devices busy-wait at 100 % while others do nothing, and no error is reported.
  const Utilisation u = ObservedUtilisation(view);
  if (u.most < 95 || u.least > 5 || view.progress != 0) return f;
  Finding out;
  out.failure_class = runbook.failure_class;
  out.strength = 84;
  out.what.push_back(Opening(view));
  out.why.push_back(
      {"one device was busy all the time while another did nothing, and no error was "
       "reported: " +
           DefinitionOf(runbook.failure_class) + ".",
       FactList({u.most_fact, u.least_fact})});
  if (const auto line = FirstMention(view, kCollectives))
    out.why.push_back(
        {"The source has a call in which all ranks must meet: \"" + line->first + "\".",
         {line->second}});
  if (view.last_own_line != 0)
    out.why.push_back({"The last line that the program wrote is \"" + view.last_own_text + "\".",
                       {view.last_own_line}});
  out.missing.push_back("stack samples of the ranks, which would show where each one waits");
  return out;
}

std::optional<Finding> DataLoaderStalled(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  if (!StoodStill(view) || view.progress != 0) return f;
  const Utilisation u = ObservedUtilisation(view);
  if (u.most < 0 || u.most > 5) return f;
  const auto line = FirstMention(view, kLoaders);
  if (!line) return f;
  Finding out;
  out.failure_class = runbook.failure_class;
  out.strength = 84;
  out.what.push_back(Opening(view));
  out.why.push_back({"the devices did nothing and the program speaks of its data loader (\"" +
                         line->first + "\"): " + DefinitionOf(runbook.failure_class) + ".",
                     FactList({u.most_fact, line->second})});
  if (view.last_own_line != 0)
    out.why.push_back({"The last line that the program wrote is \"" + view.last_own_text + "\".",
                       {view.last_own_line}});
  out.missing.push_back("stack samples, which would show what the program waited for");
  AddRelated(view, runbook, out);
  return out;
}

}  // namespace expanse::intelligence::diagnose
