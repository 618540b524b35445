// SPDX-License-Identifier: Apache-2.0
#include "collect/hook/event.h"

#include <array>

#include "base/strings.h"
#include "collect/hook/event_format.h"

namespace expanse::collect::hook {
namespace {

struct KindName {
  HookKind kind;
  std::string_view name;
};
constexpr std::array<KindName, 6> kKinds{{
    {HookKind::kProlog, "prolog"},
    {HookKind::kEpilog, "epilog"},
    {HookKind::kTaskProlog, "task_prolog"},
    {HookKind::kTaskEpilog, "task_epilog"},
    {HookKind::kPrologSlurmctld, "prolog_slurmctld"},
    {HookKind::kEpilogSlurmctld, "epilog_slurmctld"},
}};

constexpr size_t kMaxNotes = 32;
constexpr size_t kMaxStepName = 32;

bool IsKnownVariable(std::string_view name) {
  for (const char* known : kEventVariables)
    if (name == known) return true;
  return false;
}

/// "batch", "extern", "interactive", "0", "17": never a path.
bool IsStepName(std::string_view step) {
  if (step.empty() || step.size() > kMaxStepName) return false;
  for (const char c : step) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '+';
    if (!fine) return false;
  }
  return true;
}

Error Malformed(const std::string& what) {
  return Error(Code::kInvalidArgument, "hook event: " + what);
}

Status SetCgroupField(std::string_view field, std::string_view value, HookCgroup* cgroup) {
  if (field == "path") {
    cgroup->path = std::string(value);
    return {};
  }
  struct Target {
    std::string_view name;
    std::optional<int64_t> HookCgroup::*member;
  };
  static constexpr std::array<Target, 10> kTargets{{
      {"peak", &HookCgroup::peak},
      {"usage", &HookCgroup::usage},
      {"limit", &HookCgroup::limit},
      {"anon", &HookCgroup::anon},
      {"shmem", &HookCgroup::shmem},
      {"file_lru", &HookCgroup::file_lru},
      {"slab_reclaimable", &HookCgroup::slab_reclaimable},
      {"limit_hits", &HookCgroup::limit_hits},
      {"oom_kills", &HookCgroup::oom_kills},
      {"cpu_ns", &HookCgroup::cpu_ns},
  }};
  for (const auto& target : kTargets) {
    if (field != target.name) continue;
    const auto number = ParseInt64(value);
    if (!number || *number < 0)
      return Malformed(std::string(field) + " is no count: " + std::string(value));
    cgroup->*target.member = *number;
    return {};
  }
  return {};  // a newer hook's field
}

Status SetEntry(std::string_view key, std::string_view value, HookEvent* event, bool* has_kind) {
  if (key.starts_with("env.")) {
    const auto name = key.substr(4);
    if (IsKnownVariable(name)) event->environment[std::string(name)] = std::string(value);
    return {};
  }
  if (key.starts_with("job.")) {
    if (!event->job) event->job.emplace();
    return SetCgroupField(key.substr(4), value, &*event->job);
  }
  if (key.starts_with("step.")) {
    if (!event->step) event->step.emplace();
    return SetCgroupField(key.substr(5), value, &*event->step);
  }
  if (key == "kind") {
    const auto kind = HookKindFromName(value);
    if (!kind) return Malformed("unknown kind " + std::string(value));
    event->kind = *kind;
    *has_kind = true;
  } else if (key == "step") {
    if (!IsStepName(value)) return Malformed("step name " + std::string(value));
    event->step_id = std::string(value);
  } else if (key == "note") {
    if (event->notes.size() < kMaxNotes) event->notes.emplace_back(value);
  } else if (key == "time_ns" || key == "uid" || key == "pid") {
    const auto number = ParseInt64(value);
    if (!number || *number < 0) return Malformed(std::string(key) + " is no number");
    if (key == "time_ns") event->time_ns = *number;
    if (key == "uid") event->uid = static_cast<uid_t>(*number);
    if (key == "pid") event->pid = static_cast<pid_t>(*number);
  }
  return {};
}

}  // namespace

std::string_view HookKindName(HookKind kind) {
  for (const auto& k : kKinds)
    if (k.kind == kind) return k.name;
  return "";
}

std::optional<HookKind> HookKindFromName(std::string_view name) {
  for (const auto& k : kKinds)
    if (k.name == name) return k.kind;
  return std::nullopt;
}

std::optional<std::string> HookEvent::Env(const std::string& name) const {
  const auto it = environment.find(name);
  if (it == environment.end() || it->second.empty()) return std::nullopt;
  return it->second;
}

std::optional<int64_t> HookEvent::EnvInt(const std::string& name) const {
  const auto value = Env(name);
  return value ? ParseInt64(*value) : std::nullopt;
}

Result<HookEvent> ParseHookEvent(std::string_view bytes) {
  constexpr std::string_view kMagic(kEventMagic, sizeof kEventMagic);
  if (bytes.size() > kMaxEventBytes) return Malformed("larger than 16 KiB");
  if (!bytes.starts_with(kMagic)) return Malformed("not an event file");
  bytes.remove_prefix(kMagic.size());
  HookEvent event;
  bool has_kind = false;
  while (!bytes.empty()) {
    const auto end = bytes.find('\0');
    if (end == std::string_view::npos) return Malformed("cut short");
    const auto entry = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) return Malformed("entry without a value");
    const auto key = entry.substr(0, equals);
    const auto value = entry.substr(equals + 1);
    if (key == "end") {
      if (!bytes.empty()) return Malformed("bytes after the end");
      if (!has_kind || event.time_ns == 0) return Malformed("no kind or no time");
      return event;
    }
    EXPANSE_CHECK_OK(SetEntry(key, value, &event, &has_kind));
  }
  return Malformed("no end mark");
}

}  // namespace expanse::collect::hook
