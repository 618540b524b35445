// SPDX-License-Identifier: Apache-2.0
#include "collect/daemon/health.h"

#include "base/strings.h"
#include "platform/metrics/process_metrics.h"
#include "rpc/json.h"

namespace expanse::collect::daemon {
namespace {

/// The marker's text is its time: copies and restores change a file's mtime.
Status Touch(const platform::Fs& fs, const std::string& path, const platform::Clock& clock) {
  return fs.WriteAtomic(path, FormatRfc3339(clock.Now()) + "\n", 0640);
}

struct Marker {
  std::optional<Millis> age;
  std::string problem;
};

Marker ReadMarker(const platform::Fs& fs, const std::string& path, const platform::Clock& clock) {
  const auto text = fs.Read(path, 64);
  if (!text.ok()) return {std::nullopt, text.error().message()};
  const auto when = ParseRfc3339(Trim(*text));
  if (!when.ok()) return {std::nullopt, path + " holds no time"};
  return {clock.Now() - *when, ""};
}

std::string Seconds(Millis age) { return FormatDuration(Millis(age.count() / 1000 * 1000)); }

std::string SourceName(const data::v1::CollectorHealth& health) {
  return health.node().empty() ? health.part() : health.part() + " of " + health.node();
}

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  for (char c : ToUtf8(text)) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

constexpr Millis kRecentDrop{3'600'000};
constexpr Millis kClockTolerance{2'000};
constexpr int64_t kLeastFreeBytes = int64_t{64} << 20;
constexpr uint64_t kLeastFreeInodes = 1000;

/// Whether the line is of the key, or of one of several ("Prolog[0]", from 24.05 on).
bool IsOfKey(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return false;
  line.remove_prefix(key.size());
  return line.starts_with(' ') || line.starts_with('=') || line.starts_with('[');
}

void AppendSource(const data::v1::CollectorHealth& health, bool first, std::string* text) {
  *text += std::string(first ? "" : ",") + "{\"node\":" + JsonText(health.node()) +
           ",\"part\":" + JsonText(health.part()) + ",\"status\":" + JsonText(health.status()) +
           ",\"reason\":" + JsonText(health.reason()) + ",\"since_ms\":\"" +
           std::to_string(health.since_ms()) + "\",\"dropped_records\":\"" +
           std::to_string(health.dropped_records()) + "\"}";
}

}  // namespace

void DropWatch::Judge(const platform::Clock& clock, std::vector<data::v1::CollectorHealth>* table) {
  const WallTime now = clock.Now();
  for (auto& line : *table) {
    const auto [it, is_new] = seen_.try_emplace({line.node(), line.part()});
    Seen& seen = it->second;
    // What was lost before this daemon started is history, unless it is the first it ever told.
    if (!is_new && line.dropped_records() > seen.dropped) seen.rose = now;
    seen.dropped = line.dropped_records();
    if (!seen.rose || now - *seen.rose > kRecentDrop || line.status() != "ok") continue;
    line.set_status("degraded");
    line.set_reason(std::to_string(seen.dropped) +
                    " records were dropped in all, the last of them within the hour");
    line.set_since_ms(ToUnixMillis(*seen.rose));
  }
}

void AddSourceMetrics(platform::MetricsRegistry& registry,
                      std::function<std::vector<data::v1::CollectorHealth>()> table) {
  using Values = std::vector<std::pair<platform::MetricsRegistry::Labels, double>>;
  const auto add = [&](const char* name, const char* help, auto value) {
    registry.AddGauges(name, help, [table, value] {
      Values out;
      for (const auto& line : table())
        out.push_back({{{"node", line.node()}, {"part", line.part()}}, value(line)});
      return out;
    });
  };
  add("expanse_collector_source_degraded", "1 while the source is degraded.",
      [](const data::v1::CollectorHealth& line) {
        return line.status() == "degraded" ? 1.0 : 0.0;
      });
  add("expanse_collector_dropped_records", "Records that the source lost in all.",
      [](const data::v1::CollectorHealth& line) {
        return static_cast<double>(line.dropped_records());
      });
}

std::string DiskProblem(const std::string& directory) {
  const auto space = platform::ReadDiskSpace(directory);
  if (!space) return directory + " is not there";
  if (space->read_only) return directory + " is mounted read-only";
  if (space->free_bytes < kLeastFreeBytes)
    return directory + " has " + std::to_string(space->free_bytes >> 20) + " MiB left";
  if (space->has_inodes && space->free_inodes < kLeastFreeInodes)
    return directory + " has " + std::to_string(space->free_inodes) + " inodes left";
  return "";
}

std::string HookProblem(std::string_view slurm_config, std::string_view hook_directory) {
  const std::string mark = std::string(hook_directory) + "/";
  std::string missing;
  int wired = 0;
  for (const std::string_view key : {"Prolog", "Epilog", "TaskProlog", "TaskEpilog"}) {
    bool is_ours = false;
    for (const auto line : Split(slurm_config, '\n'))
      if (IsOfKey(line, key) && line.find(mark) != std::string_view::npos) is_ours = true;
    if (is_ours)
      ++wired;
    else
      missing += (missing.empty() ? "" : ", ") + std::string(key);
  }
  if (missing.empty()) return "";
  if (wired == 0)
    return "no hook is wired in slurm.conf: jobs are captured by polling, peaks of short steps are "
           "floors";
  return missing + " of slurm.conf do not call our hook";
}

std::string ClockProblem(Millis offset) {
  const Millis size = offset < Millis(0) ? -offset : offset;
  if (size <= kClockTolerance) return "";
  return "this host's clock is " + FormatDuration(size) +
         (offset < Millis(0) ? " ahead of" : " behind") + " the data plane's";
}

Status HealthFiles::TouchLoop(const platform::Clock& clock) const {
  return Touch(fs_, platform::JoinPath(directory_, "loop"), clock);
}

Status HealthFiles::TouchAccepted(const platform::Clock& clock) const {
  return Touch(fs_, platform::JoinPath(directory_, "accepted"), clock);
}

Status HealthFiles::WriteTable(const std::vector<data::v1::CollectorHealth>& table) const {
  data::v1::ComputeFacts facts;
  for (const auto& line : table) *facts.add_health() = line;
  EXPANSE_TRY(const std::string json, rpc::ToJson(facts, /*pretty=*/true));
  return fs_.WriteAtomic(platform::JoinPath(directory_, "health.json"), json + "\n", 0640);
}

HealthcheckReport Healthcheck(const HealthcheckOptions& options, const platform::Fs& fs,
                              const platform::Clock& clock) {
  const Marker loop = ReadMarker(fs, platform::JoinPath(options.directory, "loop"), clock);
  const Marker accepted = ReadMarker(fs, platform::JoinPath(options.directory, "accepted"), clock);
  std::string unhealthy;
  if (!loop.age)
    unhealthy = loop.problem;
  else if (*loop.age > options.max_age)
    unhealthy = "the loop has not turned for " + Seconds(*loop.age);
  if (unhealthy.empty() && options.max_accepted_age) {
    if (!accepted.age)
      unhealthy = accepted.problem;
    else if (*accepted.age > *options.max_accepted_age)
      unhealthy = "no heartbeat was accepted for " + Seconds(*accepted.age);
  }
  data::v1::ComputeFacts table;
  const auto json = fs.Read(platform::JoinPath(options.directory, "health.json"));
  if (!json.ok() || !rpc::FromJson(*json, &table).ok()) {
    // A table that cannot be read must not look like one without a problem.
    auto& line = *table.add_health();
    line.set_part("health-table");
    line.set_status("degraded");
    line.set_reason(json.ok() ? "health.json is damaged" : ToUtf8(json.error().message()));
  }

  HealthcheckReport report;
  report.healthy = unhealthy.empty();
  for (const auto& health : table.health()) report.degraded += health.status() == "degraded";
  if (options.json) {
    report.text = "{\"healthy\":" + std::string(report.healthy ? "true" : "false");
    if (!report.healthy) report.text += ",\"reason\":" + JsonText(unhealthy);
    if (loop.age)
      report.text += ",\"loop_age_seconds\":" + std::to_string(loop.age->count() / 1000);
    if (accepted.age)
      report.text += ",\"accepted_age_seconds\":" + std::to_string(accepted.age->count() / 1000);
    report.text += ",\"sources\":[";
    bool first = true;
    for (const auto& health : table.health()) {
      AppendSource(health, first, &report.text);
      first = false;
    }
    report.text += "],\"degraded\":" + std::to_string(report.degraded) + "}\n";
    return report;
  }
  report.text = report.healthy ? "healthy: the loop turned " + Seconds(*loop.age) + " ago\n"
                               : "unhealthy: " + EscapeForTerminal(ToUtf8(unhealthy)) + "\n";
  if (accepted.age) report.text += "last accepted heartbeat: " + Seconds(*accepted.age) + " ago\n";
  for (const auto& health : table.health()) {
    if (health.status() == "ok") continue;
    report.text += EscapeForTerminal(health.status() + ": " + SourceName(health));
    if (health.since_ms() > 0)
      report.text += " since " + FormatRfc3339(FromUnixMillis(health.since_ms()));
    if (!health.reason().empty()) report.text += ": " + EscapeForTerminal(health.reason());
    report.text += "\n";
  }
  return report;
}

}  // namespace expanse::collect::daemon
