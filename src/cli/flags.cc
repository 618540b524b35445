// SPDX-License-Identifier: Apache-2.0
#include "cli/flags.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace expanse::cli {
namespace {

Error Usage(std::string message) { return Error(Code::kInvalidArgument, std::move(message)); }

/// A word of the command line in a message. Keys and tokens of ours never get there: a person who
/// typed one in the wrong place did not mean to have it in a terminal log.
std::string Shown(std::string_view word) {
  for (const std::string_view prefix : {"exp_user_", "exp_install_", "exp_compute_", "exp_plane_"})
    if (word.find(prefix) != std::string_view::npos) return std::string(prefix) + "...";
  return EscapeForTerminal(word);
}

const Flag* FindFlag(std::span<const Flag> table, std::string_view name) {
  for (const auto& flag : table)
    if (flag.name == name || (!flag.alias.empty() && flag.alias == name)) return &flag;
  return nullptr;
}

Error UnknownFlag(std::span<const Flag> table, std::string_view name) {
  std::vector<std::string> names{"--help"};
  for (const auto& flag : table) {
    names.emplace_back(flag.name);
    if (!flag.alias.empty()) names.emplace_back(flag.alias);
  }
  const auto nearest = NearestName(name, names);
  return Usage(fmt::format("unknown flag {}{}", Shown(name),
                           nearest ? ", did you mean " + *nearest + "?" : ""));
}

Error BadValue(const Flag& flag, std::string_view value, std::string_view why) {
  return Usage(fmt::format("{}: '{}' {}", flag.name, Shown(value), why));
}

Status CheckChoice(const Flag& flag, const std::string& value) {
  std::vector<std::string> names;
  for (const auto choice : flag.choices) {
    if (choice == value) return {};
    names.emplace_back(choice);
  }
  const auto nearest = NearestName(value, names);
  return BadValue(flag, value,
                  fmt::format("is not one of {}{}", Join(names, ", "),
                              nearest ? "; did you mean " + *nearest + "?" : ""));
}

Status CheckValue(const Flag& flag, const std::string& value) {
  switch (flag.kind) {
    case FlagKind::kBool:
      if (value != "true" && value != "false") return BadValue(flag, value, "is not true or false");
      return {};
    case FlagKind::kInt: {
      const auto number = ParseInt64(value);
      if (!number) return BadValue(flag, value, "is not a whole number");
      if (*number < flag.least)
        return BadValue(flag, value, fmt::format("is less than {}", flag.least));
      // The contract's counts are int32.
      if (*number > std::numeric_limits<int32_t>::max())
        return BadValue(flag, value, "is too large");
      return {};
    }
    case FlagKind::kChoice:
      return CheckChoice(flag, value);
    case FlagKind::kDuration:
      if (auto d = ParseDuration(value); !d.ok()) return d.error().WithContext(flag.name);
      return {};
    case FlagKind::kSize:
      if (auto s = ParseSize(value); !s.ok()) return s.error().WithContext(flag.name);
      return {};
    case FlagKind::kTime:
      if (auto t = ParseRfc3339(value); !t.ok()) return t.error().WithContext(flag.name);
      return {};
    case FlagKind::kUrl:
      if (!value.starts_with("http://") && !value.starts_with("https://"))
        return BadValue(flag, value, "is not a URL; write e.g. https://expanse.example.org");
      return {};
    case FlagKind::kText:
    case FlagKind::kPath:
      if (value.empty()) return BadValue(flag, value, "is empty");
      return {};
  }
  return {};
}

Status CheckRules(const Args& args, std::span<const Rule> rules) {
  // A boolean flag that was set to false is as good as absent.
  const auto given = [&](std::string_view name) {
    if (!args.Has(name)) return false;
    const auto text = args.Text(name);
    return !(text && *text == "false");
  };
  for (const auto& rule : rules) {
    if (rule.kind == Rule::kExcludes && given(rule.flag) && given(rule.other))
      return Usage(fmt::format("{} and {} exclude each other", rule.flag, rule.other));
    if (rule.kind == Rule::kRequires && given(rule.flag) && !given(rule.other))
      return Usage(fmt::format("{} needs {}", rule.flag, rule.other));
  }
  return {};
}

Status CheckPositionals(std::span<const Positional> table, const std::vector<std::string>& given) {
  size_t i = 0;
  for (const auto& positional : table) {
    if (positional.required && i >= given.size())
      return Usage(fmt::format("missing argument <{}>: {}", positional.name, positional.doc));
    ++i;
    if (positional.repeat) return {};
  }
  if (given.size() > table.size())
    return Usage(fmt::format("unexpected argument '{}'", Shown(given[table.size()])));
  return {};
}

}  // namespace

const Flag& Args::Find(std::string_view flag) const {
  const Flag* found = FindFlag(table_, flag);
  EXPANSE_CHECK(found != nullptr);
  return *found;
}

bool Args::Has(std::string_view flag) const {
  return values_.find(Find(flag).name) != values_.end();
}

std::vector<std::string> Args::All(std::string_view flag) const {
  const auto it = values_.find(Find(flag).name);
  return it == values_.end() ? std::vector<std::string>() : it->second;
}

std::optional<std::string> Args::Text(std::string_view flag) const {
  auto all = All(flag);
  if (all.empty()) return std::nullopt;
  return std::move(all.back());
}

bool Args::Bool(std::string_view flag) const {
  return Text(flag).value_or(std::string(Find(flag).default_text)) == "true";
}

std::optional<int64_t> Args::Int(std::string_view flag) const {
  const auto text = Text(flag);
  return text ? ParseInt64(*text) : std::nullopt;
}

std::optional<Millis> Args::Duration(std::string_view flag) const {
  const auto text = Text(flag);
  if (!text) return std::nullopt;
  return ParseDuration(*text).value();
}

std::optional<Bytes> Args::Size(std::string_view flag) const {
  const auto text = Text(flag);
  if (!text) return std::nullopt;
  return ParseSize(*text).value();
}

std::optional<WallTime> Args::Time(std::string_view flag) const {
  const auto text = Text(flag);
  if (!text) return std::nullopt;
  return ParseRfc3339(*text).value();
}

Result<Args> ParseArgs(std::span<const Flag> flags, std::span<const Positional> positionals,
                       std::span<const Rule> rules, std::span<const std::string> words) {
  Args args;
  args.table_ = flags;
  bool flags_over = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (flags_over || word.size() < 2 || word[0] != '-') {
      args.positionals_.push_back(word);
      continue;
    }
    if (word == "--") {
      flags_over = true;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Flag* flag = FindFlag(flags, name);
    if (flag == nullptr) return UnknownFlag(flags, name);
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (flag->kind == FlagKind::kBool) {
      value = "true";
    } else if (i + 1 < words.size() && !words[i + 1].starts_with("--")) {
      value = words[++i];
    } else {
      return Usage(fmt::format("{} needs a value: {} {}", name, name, ValueName(*flag)));
    }
    EXPANSE_CHECK_OK(CheckValue(*flag, value));
    auto& values = args.values_[std::string(flag->name)];
    if (!flag->repeat) values.clear();
    values.push_back(std::move(value));
  }
  for (const auto& flag : flags)
    if (flag.required && !args.Has(flag.name))
      return Usage(fmt::format("missing flag {} {}: {}", flag.name, ValueName(flag), flag.doc));
  EXPANSE_CHECK_OK(CheckRules(args, rules));
  EXPANSE_CHECK_OK(CheckPositionals(positionals, args.positionals_));
  return args;
}

std::string ValueName(const Flag& flag) {
  if (!flag.value_name.empty()) return std::string(flag.value_name);
  switch (flag.kind) {
    case FlagKind::kBool:
      return "";
    case FlagKind::kInt:
      return "N";
    case FlagKind::kChoice: {
      std::string out;
      for (const auto choice : flag.choices) out += (out.empty() ? "" : "|") + std::string(choice);
      return out;
    }
    case FlagKind::kDuration:
      return "DURATION";
    case FlagKind::kSize:
      return "SIZE";
    case FlagKind::kTime:
      return "TIME";
    case FlagKind::kUrl:
      return "URL";
    case FlagKind::kPath:
      return "PATH";
    case FlagKind::kText:
      return "TEXT";
  }
  return "";
}

}  // namespace expanse::cli
