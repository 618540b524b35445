// SPDX-License-Identifier: Apache-2.0
// Flags and arguments of a command as a table, and the words of a command line read by it.
// Small and our own: boolean flags take --flag and --flag=true|false, a mistake names the nearest
// flag, and the same table prints help, completion, man page and reference.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/units.h"

namespace expanse::cli {

enum class FlagKind { kBool, kText, kInt, kChoice, kDuration, kSize, kTime, kUrl, kPath };

struct Flag {
  std::string_view name;  // "--limit"
  FlagKind kind = FlagKind::kText;
  std::string_view doc;                                 // no full stop at the end
  std::string_view default_text = {};                   // as help shows it; kBool: "true" or none
  std::span<const std::string_view> choices = {};       // kChoice
  std::string_view alias = {};                          // "--force"
  std::string_view value_name = {};                     // in help; by kind when empty
  int64_t least = std::numeric_limits<int64_t>::min();  // kInt
  bool repeat = false;
  bool required = false;
};

struct Positional {
  std::string_view name;  // "execution-id"
  std::string_view doc;
  bool required = true;
  bool repeat = false;  // only the last one
};

/// A condition between two flags, checked after parsing and shown in help.
struct Rule {
  enum Kind { kExcludes, kRequires } kind;
  std::string_view flag;
  std::string_view other;
};

/// Words of one command line by its table. Getters abort on a flag the table lacks, and hold
/// values that were checked while parsing.
class Args {
 public:
  bool Has(std::string_view flag) const;
  /// The flag's value, else its default in the table, else false.
  bool Bool(std::string_view flag) const;
  /// The last value given; nothing when the flag was not given.
  std::optional<std::string> Text(std::string_view flag) const;
  std::vector<std::string> All(std::string_view flag) const;
  std::optional<int64_t> Int(std::string_view flag) const;
  std::optional<Millis> Duration(std::string_view flag) const;
  std::optional<Bytes> Size(std::string_view flag) const;
  std::optional<WallTime> Time(std::string_view flag) const;
  const std::vector<std::string>& positionals() const { return positionals_; }

 private:
  friend Result<Args> ParseArgs(std::span<const Flag>, std::span<const Positional>,
                                std::span<const Rule>, std::span<const std::string>);
  const Flag& Find(std::string_view flag) const;

  std::span<const Flag> table_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> positionals_;
};

/// Reads the words after the command's name. Every error is a usage error and says what to write.
Result<Args> ParseArgs(std::span<const Flag> flags, std::span<const Positional> positionals,
                       std::span<const Rule> rules, std::span<const std::string> words);

/// "N", "DURATION", "slurm|kubernetes": what stands for the value in help. Empty for kBool.
std::string ValueName(const Flag& flag);

}  // namespace expanse::cli
