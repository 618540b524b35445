// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/log_path.h"

#include "platform/fs/fs.h"

namespace expanse::collect::slurm {
namespace {

/// What an array task id prints as when there is none (NO_VAL).
constexpr int64_t kNoTask = 4'294'967'294;

std::optional<std::string> Expand(char letter, size_t width, const LogPathContext& context) {
  const auto number = [width](int64_t n) {
    std::string text = std::to_string(n);
    if (text.size() < width) text.insert(0, width - text.size(), '0');
    return text;
  };
  switch (letter) {
    case 'A':
      return number(context.array_job_id.value_or(context.job_id));
    case 'a':
      return number(context.array_task_id.value_or(kNoTask));
    case 'j':
      return number(context.job_id);
    case 'J':
      return std::to_string(context.job_id);  // "jobid.stepid"; the batch step has no id
    case 'n':
      return number(0);  // the batch step runs on the first node
    case 't':
      return number(0);
    case 's':
      return std::string("batch");
    case 'u':
      return context.user;
    case 'x':
      return context.job_name;
    case 'N':
      if (context.first_node.empty()) return std::nullopt;
      return context.first_node;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> ExpandLogPath(std::string_view pattern, const LogPathContext& context) {
  if (pattern.empty()) pattern = context.array_task_id ? "slurm-%A_%a.out" : "slurm-%j.out";
  std::string path;
  const bool literal = pattern.find('\\') != std::string_view::npos;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (literal) {
      if (pattern[i] != '\\') path += pattern[i];
      continue;
    }
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    if (i + 1 < pattern.size() && pattern[i + 1] == '%') {
      path += '%';
      ++i;
      continue;
    }
    size_t at = i + 1;
    size_t width = 0;
    while (at < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9' && width < 10)
      width = width * 10 + static_cast<size_t>(pattern[at++] - '0');
    if (at >= pattern.size()) return std::nullopt;
    const auto value = Expand(pattern[at], std::min<size_t>(width, 10), context);
    if (!value) return std::nullopt;
    path += *value;
    i = at;
  }
  if (path.starts_with('/')) return path;
  if (context.work_dir.empty()) return std::nullopt;
  return platform::JoinPath(context.work_dir, path);
}

}  // namespace expanse::collect::slurm
