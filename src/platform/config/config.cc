// SPDX-License-Identifier: Apache-2.0
#include "platform/config/config.h"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/time.h"
#include "base/units.h"
#include "platform/fs/fs.h"

extern char** environ;

namespace expanse::platform {
namespace {

constexpr size_t kMostShownKey = 100;

const Setting* Find(std::span<const Setting> table, std::string_view key) {
  for (const auto& s : table)
    if (s.key == key) return &s;
  return nullptr;
}

Error UnknownKey(std::span<const Setting> table, std::string_view key, std::string_view where) {
  std::vector<std::string> names;
  for (const auto& s : table) names.emplace_back(s.key);
  key = key.substr(0, kMostShownKey);
  const auto near = NearestName(key, names);
  return Error(Code::kInvalidArgument,
               fmt::format("{}: unknown setting '{}'{}", where, EscapeForTerminal(ToUtf8(key)),
                           near ? fmt::format("; did you mean '{}'?", *near) : ""));
}

bool ParseBool(std::string_view text, bool& out) {
  const std::string t = ToLower(text);
  if (t == "true" || t == "1" || t == "yes" || t == "on") return out = true, true;
  if (t == "false" || t == "0" || t == "no" || t == "off") return out = false, true;
  return false;
}

Status CheckValue(const Setting& s, const std::string& text, std::string_view origin) {
  const auto bad = [&](std::string_view what) {
    return Error(Code::kInvalidArgument,
                 s.secret ? fmt::format("{}: {} is not {}", origin, s.key, what)
                          : fmt::format("{}: {} = '{}' is not {}", origin, s.key, text, what));
  };
  bool flag = false;
  switch (s.kind) {
    case SettingKind::kString:
      return {};
    case SettingKind::kInt:
      return ParseInt64(text) ? Status() : Status(bad("a whole number"));
    case SettingKind::kBool:
      return ParseBool(text, flag) ? Status() : Status(bad("true or false"));
    case SettingKind::kDuration:
      return ParseDuration(text).ok() ? Status() : Status(bad("a duration such as 30s or 5m"));
    case SettingKind::kSize:
      return ParseSize(text).ok() ? Status() : Status(bad("a size such as 512M or 1GiB"));
  }
  return {};
}

/// "https://user:password@host" without what nobody else should see.
std::string ShownValue(const std::string& text) {
  const size_t scheme = text.find("://");
  const size_t at = text.find('@', scheme == std::string::npos ? 0 : scheme);
  if (scheme == std::string::npos || at == std::string::npos) return text;
  if (text.find('/', scheme + 3) < at) return text;
  return text.substr(0, scheme + 3) + "(set)" + text.substr(at);
}

struct Words {
  std::map<std::string, std::string, std::less<>> flags;
  std::vector<std::string> positional;
  std::string config_file;
  bool print_config = false;
  bool help = false;
};

Result<Words> ReadWords(std::span<const Setting> table, std::span<const std::string> args,
                        std::string_view file_flag) {
  Words words;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (!arg.starts_with("--")) {
      if (arg == "-h") {
        words.help = true;
      } else {
        words.positional.push_back(arg);
      }
      continue;
    }
    const size_t eq = arg.find('=');
    const std::string key = arg.substr(2, eq == std::string::npos ? eq : eq - 2);
    if (key == "help" || key == "print-config") {
      (key == "help" ? words.help : words.print_config) = true;
      continue;
    }
    const Setting* s = Find(table, key);
    if (s == nullptr && key != file_flag) return UnknownKey(table, key, "command line");
    if (s != nullptr && s->secret)
      return Error(Code::kInvalidArgument,
                   fmt::format("command line: {} is a secret and cannot be a flag; use {}", key,
                               s->env.empty() ? "the configuration file" : s->env));
    std::string value;
    if (eq != std::string::npos) {
      value = arg.substr(eq + 1);
    } else if (s != nullptr && s->kind == SettingKind::kBool) {
      value = "true";
    } else if (i + 1 < args.size()) {
      value = args[++i];
    } else {
      return Error(Code::kInvalidArgument, fmt::format("command line: --{} needs a value", key));
    }
    if (key == file_flag) {
      words.config_file = value;
    } else {
      words.flags[key] = value;
    }
  }
  return words;
}

}  // namespace

Status Config::ReadFile(std::span<const Setting> table, const std::string& path) {
  EXPANSE_TRY(const std::string text, Fs().Read(path, 1 << 20));
  std::map<std::string, int, std::less<>> lines;  // where a key stands already
  int line_number = 0;
  for (const auto raw : Split(text, '\n')) {
    ++line_number;
    const auto line = Trim(raw);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = fmt::format("{}:{}", path, line_number);
    const size_t eq = line.find('=');
    if (eq == std::string_view::npos)
      return Error(Code::kInvalidArgument, where + ": expected 'key = value'");
    const auto key = Trim(line.substr(0, eq));
    const Setting* s = Find(table, key);
    if (s == nullptr) return UnknownKey(table, key, where);
    const auto [before, is_new] = lines.emplace(key, line_number);
    if (!is_new)
      return Error(Code::kInvalidArgument,
                   fmt::format("{}: {} is set in line {} already", where, key, before->second));
    const std::string value(Trim(line.substr(eq + 1)));
    EXPANSE_CHECK_OK(CheckValue(*s, value, where));
    values_[std::string(key)] = {value, "file " + where};
  }
  return {};
}

Result<Config> Config::Load(std::span<const Setting> table, std::span<const std::string> args,
                            const std::map<std::string, std::string>& environment,
                            std::string_view file_flag) {
  EXPANSE_TRY(auto words, ReadWords(table, args, file_flag));
  Config config;
  config.positional_ = std::move(words.positional);
  config.print_config_ = words.print_config;
  config.help_ = words.help;
  for (const auto& s : table) {
    config.order_.push_back(&s);
    config.values_[std::string(s.key)] = {std::string(s.default_value), "default"};
  }
  if (!words.config_file.empty()) EXPANSE_CHECK_OK(config.ReadFile(table, words.config_file));
  for (const auto& s : table) {
    if (s.env.empty()) continue;
    const auto it = environment.find(std::string(s.env));
    if (it == environment.end()) continue;
    EXPANSE_CHECK_OK(CheckValue(s, it->second, s.env));
    config.values_[std::string(s.key)] = {it->second, fmt::format("environment {}", s.env)};
  }
  for (const auto& [key, value] : words.flags) {
    EXPANSE_CHECK_OK(CheckValue(*Find(table, key), value, "command line"));
    config.values_[key] = {value, "flag"};
  }
  return config;
}

const std::string& Config::GetString(std::string_view key) const {
  const auto it = values_.find(key);
  EXPANSE_CHECK(it != values_.end());
  return it->second.text;
}
const std::string& Config::origin(std::string_view key) const {
  const auto it = values_.find(key);
  EXPANSE_CHECK(it != values_.end());
  return it->second.origin;
}
int64_t Config::GetInt(std::string_view key) const {
  return ParseInt64(GetString(key)).value_or(0);
}
bool Config::GetBool(std::string_view key) const {
  bool out = false;
  ParseBool(GetString(key), out);
  return out;
}
int64_t Config::GetMillis(std::string_view key) const {
  return ParseDuration(GetString(key)).value_or(Millis(0)).count();
}
int64_t Config::GetBytes(std::string_view key) const {
  return ParseSize(GetString(key)).value_or(Bytes{0}).value;
}

std::string Config::Print() const {
  std::string out;
  for (const Setting* s : order_) {
    const Value& v = values_.find(s->key)->second;
    const std::string shown =
        s->secret ? (v.text.empty() ? "(unset)" : "(set)") : ShownValue(v.text);
    out += fmt::format("{} = {}  # {}\n", s->key, shown, v.origin);
  }
  return out;
}

std::string Config::Help(std::string_view program, std::string_view summary,
                         std::span<const Setting> table, std::string_view file_flag) {
  std::string out = fmt::format("usage: {} [--flag VALUE]...\n\n{}\n\nflags:\n", program, summary);
  out += fmt::format("  {:<26} read settings from FILE (key = value)\n",
                     fmt::format("--{} FILE", file_flag));
  out += "  --print-config             show each value and where it came from, then exit\n";
  for (const auto& s : table) {
    if (s.secret) continue;
    out += fmt::format("  {:<26} {}{}{}\n", fmt::format("--{}", s.key), s.doc,
                       s.default_value.empty() ? "" : fmt::format(" (default {})", s.default_value),
                       s.env.empty() ? "" : fmt::format(" [{}]", s.env));
  }
  return out;
}

std::map<std::string, std::string> ProcessEnvironment() {
  std::map<std::string, std::string> out;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const size_t eq = entry.find('=');
    if (eq != std::string_view::npos)
      out.emplace(std::string(entry.substr(0, eq)), std::string(entry.substr(eq + 1)));
  }
  return out;
}

}  // namespace expanse::platform
