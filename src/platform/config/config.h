// SPDX-License-Identifier: Apache-2.0
// Settings of a binary, declared once as a table: file < environment < flag. Unknown keys are
// errors with the nearest name; --print-config shows each value and where it came from.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::platform {

enum class SettingKind { kString, kInt, kBool, kDuration, kSize };

struct Setting {
  std::string_view key;  // "listen"; flag --listen, file key `listen`
  std::string_view env;  // "EXPANSE_DATA_LISTEN"; empty: none
  SettingKind kind;
  std::string_view default_value;
  std::string_view doc;
  bool secret = false;  // never from a flag, never printed
};

class Config {
 public:
  /// args: the words after the subcommand. Handles --config FILE (lines `key = value`, # comments),
  /// --key VALUE, --key=VALUE, and --flag alone for booleans. Positional words are kept apart.
  /// file_flag: another name of --config, where that name means something else. Errors name
  /// FILE:LINE, the variable or the flag; the value of a secret is in no message.
  static Result<Config> Load(std::span<const Setting> table, std::span<const std::string> args,
                             const std::map<std::string, std::string>& environment,
                             std::string_view file_flag = "config");

  const std::string& GetString(std::string_view key) const;
  int64_t GetInt(std::string_view key) const;
  bool GetBool(std::string_view key) const;
  int64_t GetMillis(std::string_view key) const;  // kDuration
  int64_t GetBytes(std::string_view key) const;   // kSize
  const std::vector<std::string>& positional() const { return positional_; }
  bool print_config() const { return print_config_; }
  bool help() const { return help_; }

  /// "default", "file PATH:LINE", "environment NAME" or "flag".
  const std::string& origin(std::string_view key) const;

  /// One line a setting: key = value  # origin. Secrets print as "(set)" or "(unset)", URLs without
  /// the user and password in them.
  std::string Print() const;
  static std::string Help(std::string_view program, std::string_view summary,
                          std::span<const Setting> table, std::string_view file_flag = "config");

 private:
  Status ReadFile(std::span<const Setting> table, const std::string& path);

  struct Value {
    std::string text;
    std::string origin;
  };
  std::map<std::string, Value, std::less<>> values_;
  std::vector<const Setting*> order_;
  std::vector<std::string> positional_;
  bool print_config_ = false;
  bool help_ = false;
};

/// The process environment as a map.
std::map<std::string, std::string> ProcessEnvironment();

}  // namespace expanse::platform
