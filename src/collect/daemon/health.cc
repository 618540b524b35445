// SPDX-License-Identifier: Apache-2.0
#include "collect/daemon/health.h"

#include "base/strings.h"
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

}  // namespace

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
  if (json.ok()) (void)rpc::FromJson(*json, &table).ok();  // an unreadable table lists nothing

  HealthcheckReport report;
  report.healthy = unhealthy.empty();
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
      report.text += std::string(first ? "" : ",") + "{\"node\":" + JsonText(health.node()) +
                     ",\"part\":" + JsonText(health.part()) +
                     ",\"status\":" + JsonText(health.status()) +
                     ",\"reason\":" + JsonText(health.reason()) + ",\"since_ms\":\"" +
                     std::to_string(health.since_ms()) + "\"}";
      first = false;
    }
    report.text += "]}\n";
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
