// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/submit_line.h"

#include "base/strings.h"
#include "submission/slurm_script/sbatch_options.h"
#include "submission/slurm_script/sbatch_values.h"

namespace expanse::collect::slurm {
namespace {

using submission::SbatchArgument;
using submission::SbatchOption;

void Take(std::string_view option, std::string_view value, SubmitRequest* out) {
  if (option == "mem") {
    const auto bytes = submission::ParseSbatchMemory(value);
    // 0 is all memory of the node.
    if (bytes.ok() && bytes->value > 0) out->memory_per_node = bytes->value;
    out->memory_per_cpu.reset();
  } else if (option == "mem-per-cpu") {
    const auto bytes = submission::ParseSbatchMemory(value);
    if (bytes.ok() && bytes->value > 0) out->memory_per_cpu = bytes->value;
    out->memory_per_node.reset();
  } else if (option == "nodes") {
    const auto nodes = submission::ParseSbatchNodes(value);
    if (nodes.ok()) out->nodes = nodes->min;
  }
}

/// Reads the option at words[*i]. False: what follows cannot be told from an option's value.
bool ReadOption(const std::vector<std::string_view>& words, size_t* i, SubmitRequest* out) {
  const std::string_view word = words[*i];
  if (word.size() < 2 || word[0] != '-' || word == "--") return false;
  const SbatchOption* option = nullptr;
  std::string_view name;
  std::optional<std::string_view> value;
  if (word[1] == '-') {
    const size_t equals = word.find('=');
    name = word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    if (equals != std::string_view::npos) value = word.substr(equals + 1);
    option = submission::FindSbatchOption(name).option;
    if (option == nullptr) return value.has_value();  // of a later version or of srun
  } else {
    option = submission::FindSbatchOption(word[1]);
    if (option == nullptr) return false;
    if (word.size() > 2 && option->argument != SbatchArgument::kNone) value = word.substr(2);
  }
  if (option->name == "wrap") return false;  // the command follows, in several words
  if (!value && option->argument == SbatchArgument::kRequired) {
    if (*i + 1 >= words.size()) return false;
    value = words[++*i];
  }
  if (value) Take(option->name, *value, out);
  return true;
}

}  // namespace

std::optional<std::string> SubmitLineOption(const std::string& line, const std::string& name,
                                            char letter) {
  std::optional<std::string> found;
  const auto words = Split(line, ' ');
  const std::string with_value = "--" + name + "=", alone = "--" + name;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word.starts_with(with_value)) {
      found = std::string(word.substr(with_value.size()));
    } else if (word == alone && i + 1 < words.size()) {
      found = std::string(words[++i]);
    } else if (letter != '\0' && word.size() >= 2 && word[0] == '-' && word[1] == letter) {
      if (word.size() > 2)
        found = std::string(word.substr(2));
      else if (i + 1 < words.size())
        found = std::string(words[++i]);
    }
  }
  return found;
}

SubmitRequest ReadSubmitRequest(std::string_view line) {
  SubmitRequest out;
  const std::vector<std::string_view> words = Split(line, ' ');
  for (size_t i = 1; i < words.size(); ++i)
    if (!ReadOption(words, &i, &out)) break;
  return out;
}

}  // namespace expanse::collect::slurm
