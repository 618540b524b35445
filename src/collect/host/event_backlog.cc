// SPDX-License-Identifier: Apache-2.0
#include "collect/host/event_backlog.h"

#include <algorithm>
#include <utility>

namespace expanse::collect::host {

void EventBacklog::Begin(const std::vector<std::string>& names, MonoTime now) {
  now_ = now;
  waiting_.clear();
  std::map<std::string, Sighting> seen;
  for (const std::string& name : names) {
    auto known = seen_.extract(name);
    const Sighting sighting = known.empty() ? Sighting{now, std::nullopt, 0} : known.mapped();
    if (sighting.job_id) ++waiting_[sighting.owner];
    seen.emplace(name, sighting);
  }
  seen_ = std::move(seen);
}

Millis EventBacklog::AgeOf(const std::string& name) const {
  const auto found = seen_.find(name);
  if (found == seen_.end()) return Millis(0);
  return std::chrono::duration_cast<Millis>(now_ - found->second.first);
}

std::optional<int64_t> EventBacklog::WaitsFor(const std::string& name) const {
  const auto found = seen_.find(name);
  return found == seen_.end() ? std::nullopt : found->second.job_id;
}

bool EventBacklog::Wait(const std::string& name, uid_t owner, int64_t job_id) {
  const auto found = seen_.find(name);
  if (found == seen_.end()) return false;
  if (found->second.job_id) return true;
  size_t& waiting = waiting_[owner];
  if (waiting >= kMostWaitingOfUser) return false;
  ++waiting;
  found->second.job_id = job_id;
  found->second.owner = owner;
  return true;
}

std::vector<std::string> EventBacklog::Choose(std::vector<std::string> names, size_t budget,
                                              const std::vector<uid_t>& first,
                                              const OwnerOf& owner_of) {
  if (names.size() <= budget) return names;
  std::vector<std::string> chosen;
  std::map<uid_t, std::vector<std::string>> others;
  for (auto& name : names) {
    const auto owner = owner_of(name);
    if (!owner) continue;  // gone
    if (std::find(first.begin(), first.end(), *owner) == first.end())
      others[*owner].push_back(std::move(name));
    else if (chosen.size() < budget)
      chosen.push_back(std::move(name));
  }
  for (size_t turn = 0; chosen.size() < budget; ++turn) {
    bool any = false;
    for (auto& [owner, files] : others) {
      if (turn >= files.size() || chosen.size() >= budget) continue;
      chosen.push_back(std::move(files[turn]));
      any = true;
    }
    if (!any) break;
  }
  return chosen;
}

}  // namespace expanse::collect::host
