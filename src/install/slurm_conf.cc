// SPDX-License-Identifier: Apache-2.0
#include "install/slurm_conf.h"

#include <algorithm>

#include "base/strings.h"

namespace expanse::install {
namespace {

constexpr std::string_view kWas = "# expanse was: ";
constexpr std::string_view kBegin =
    "# expanse begin: added by `expanse compute install`, taken out by `expanse compute uninstall`";
constexpr std::string_view kEnd = "# expanse end";

struct Line {
  size_t begin = 0;
  size_t end = 0;   // of the text, without the newline
  size_t next = 0;  // of the next line
};

/// Physical lines; a backslash before the newline continues the line (slurm.conf(5)).
std::vector<Line> Lines(std::string_view text) {
  std::vector<Line> lines;
  size_t at = 0;
  while (at < text.size()) {
    Line line{at, at, at};
    for (;;) {
      const size_t newline = text.find('\n', line.end);
      line.end = newline == std::string_view::npos ? text.size() : newline;
      line.next = std::min(text.size(), line.end + 1);
      const bool continued = newline != std::string_view::npos && line.end > line.begin &&
                             text[line.end - 1] == '\\' && line.next < text.size();
      if (!continued) break;
      line.end = line.next;
    }
    lines.push_back(line);
    at = line.next > at ? line.next : text.size();
  }
  return lines;
}

std::string WithoutContinuations(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
      continue;
    }
    out.push_back(text[i]);
  }
  return out;
}

std::optional<std::string> CanonicalKey(std::string_view key) {
  for (const auto known : kHookKeys)
    if (ToLower(key) == ToLower(known)) return std::string(known);
  return std::nullopt;
}

/// A value ends at a blank, a comment or the closing quote.
std::string ValueOf(std::string_view rest) {
  rest = Trim(rest);
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    return std::string(rest.substr(0, rest.find('"')));
  }
  return std::string(rest.substr(0, rest.find_first_of(" \t#\r")));
}

std::string OurHook(const std::string& directory, std::string_view key) {
  return directory + "/" + HookFileOf(key);
}

std::string OurLine(const std::string& directory, std::string_view key) {
  return std::string(key) + "=" + OurHook(directory, key);
}

/// A foreign assignment as one comment line that Unwire turns back: newlines of a continued line
/// are kept as such, each with its own mark.
std::string Commented(std::string_view line) {
  std::string out(kWas);
  for (const char c : line) {
    out.push_back(c);
    if (c == '\n') out += kWas;
  }
  return out;
}

std::string Uncommented(std::string_view line) {
  std::string out(line.substr(kWas.size()));
  const std::string mark = "\n" + std::string(kWas);
  for (size_t at = out.find(mark); at != std::string::npos; at = out.find(mark, at + 1))
    out.erase(at + 1, kWas.size());
  return out;
}

}  // namespace

std::string HookFileOf(std::string_view key) {
  std::string out;
  for (size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && i > 0) out.push_back('_');
    out.push_back(upper ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return out;
}

std::vector<std::string> SlurmConf::Values(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& hook : hooks)
    if (hook.key == key && !hook.value.empty() && ToLower(hook.value) != "(null)")
      values.push_back(hook.value);
  return values;
}

SlurmConf ParseSlurmConf(std::string text) {
  SlurmConf conf;
  conf.text = std::move(text);
  for (const Line& line : Lines(conf.text)) {
    const std::string joined =
        WithoutContinuations(std::string_view(conf.text).substr(line.begin, line.end - line.begin));
    const std::string_view trimmed = Trim(joined);
    if (trimmed.empty() || trimmed.starts_with('#')) continue;
    if (StartsWithIgnoreCase(trimmed, "include") && trimmed.size() > 7 &&
        (trimmed[7] == ' ' || trimmed[7] == '\t')) {
      conf.includes.emplace_back(Trim(trimmed.substr(7)));
      continue;
    }
    const auto equals = trimmed.find('=');
    if (equals == std::string_view::npos) continue;
    const auto key = CanonicalKey(Trim(trimmed.substr(0, equals)));
    if (key)
      conf.hooks.push_back({*key, ValueOf(trimmed.substr(equals + 1)), line.begin, line.end});
  }
  return conf;
}

bool IsWired(const SlurmConf& conf, const HookWiring& wiring) {
  return std::all_of(wiring.keys.begin(), wiring.keys.end(), [&](const std::string& key) {
    const auto values = conf.Values(key);
    return values.size() == 1 && values[0] == OurHook(wiring.hook_directory, key);
  });
}

std::map<std::string, std::vector<std::string>> ForeignHooks(const SlurmConf& conf,
                                                             const HookWiring& wiring) {
  std::map<std::string, std::vector<std::string>> foreign;
  for (const auto& key : wiring.keys)
    for (const auto& value : conf.Values(key))
      if (value != OurHook(wiring.hook_directory, key)) foreign[key].push_back(value);
  return foreign;
}

std::string Wire(const SlurmConf& conf, const HookWiring& wiring) {
  const auto wanted = [&](const std::string& key) {
    return std::find(wiring.keys.begin(), wiring.keys.end(), key) != wiring.keys.end();
  };
  std::string out;
  std::vector<std::string> written;
  size_t at = 0;
  for (const auto& hook : conf.hooks) {
    if (!wanted(hook.key)) continue;
    const std::string_view line =
        std::string_view(conf.text).substr(hook.begin, hook.end - hook.begin);
    const bool ours = hook.value == OurHook(wiring.hook_directory, hook.key);
    const bool first = std::find(written.begin(), written.end(), hook.key) == written.end();
    if (first) written.push_back(hook.key);
    if (ours) continue;
    out += conf.text.substr(at, hook.begin - at);
    out += Commented(line);
    if (first) out += "\n" + OurLine(wiring.hook_directory, hook.key);
    at = hook.end;
  }
  out += conf.text.substr(at);
  std::string block;
  for (const auto& key : wiring.keys)
    if (std::find(written.begin(), written.end(), key) == written.end())
      block += OurLine(wiring.hook_directory, key) + "\n";
  if (block.empty()) return out;
  // A last line without a newline gets one inside our block, so that taking it out restores it.
  const std::string glue = out.empty() || out.ends_with('\n') ? "" : "\n";
  return out + glue + std::string(kBegin) + "\n" + block + std::string(kEnd) +
         (glue.empty() ? "\n" : "");
}

Result<std::string> Unwire(const std::string& text, const std::string& hook_directory) {
  std::string out;
  bool in_block = false;
  bool after_mark = false;
  const std::vector<Line> lines = Lines(text);
  for (const Line& line : lines) {
    const std::string_view body = std::string_view(text).substr(line.begin, line.end - line.begin);
    const std::string_view newline = std::string_view(text).substr(line.end, line.next - line.end);
    const SlurmConf parsed = ParseSlurmConf(std::string(body));
    const bool ours = !parsed.hooks.empty() &&
                      parsed.hooks[0].value == OurHook(hook_directory, parsed.hooks[0].key);
    if (body == kBegin) {
      in_block = true;
      continue;
    }
    if (body == kEnd && in_block) {
      in_block = false;
      // Without a newline at its end, the block brought its own before it.
      if (newline.empty() && out.ends_with('\n')) out.pop_back();
      continue;
    }
    if (in_block && ours) continue;
    if (body.starts_with(kWas)) {
      out += Uncommented(body) + std::string(newline);
      after_mark = true;
      continue;
    }
    if (ours && after_mark) {
      // Ours came with its own newline after the foreign line; at the end of the file that one
      // was not there before.
      if (newline.empty() && out.ends_with('\n')) out.pop_back();
      continue;
    }
    if (ours)
      return Error(Code::kFailedPrecondition,
                   "slurm.conf names our hooks in a line that `expanse compute install` did not "
                   "write: \"" +
                       std::string(Trim(body)) + "\"; take it out, then run this again");
    after_mark = false;
    out += std::string(body) + std::string(newline);
  }
  return out;
}

std::string DescribeWiring(const SlurmConf& conf, const HookWiring& wiring) {
  std::string out;
  const auto foreign = ForeignHooks(conf, wiring);
  for (const auto& key : wiring.keys) {
    const auto values = conf.Values(key);
    if (values.size() == 1 && values[0] == OurHook(wiring.hook_directory, key)) continue;
    if (const auto it = foreign.find(key); it != foreign.end())
      for (const auto& value : it->second) out += "  - " + key + "=" + value + "\n";
    out += "  + " + OurLine(wiring.hook_directory, key) + "\n";
  }
  return out;
}

}  // namespace expanse::install
