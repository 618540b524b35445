// SPDX-License-Identifier: Apache-2.0
#include "submission/patch/sbatch_patch.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "submission/slurm_script/sbatch_values.h"

namespace expanse::submission {
namespace {

/// The replacement for a value's raw bytes: quotes around the whole value are kept; inner quotes
/// and backslashes have no use around digits and units.
std::string Requoted(std::string_view raw, const std::string& value) {
  if (raw.size() >= 2 && (raw.front() == '"' || raw.front() == '\'') && raw.back() == raw.front()) {
    return std::string(1, raw.front()) + value + raw.front();
  }
  return value;
}

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Patcher {
 public:
  Patcher(std::string_view bytes, const SbatchScript& script, const SbatchRequest& request,
          const WantedRequest& wanted)
      : bytes_(bytes), script_(script), request_(request), wanted_(wanted) {}

  SbatchPatch Make() {
    if (script_.components > 1) {
      Note("the job is heterogeneous; its components are not edited");
      return std::move(out_);
    }
    // Memory per core depends on the cores that will be in effect, so cores come first.
    cores_ = request_.total_cores;
    PatchCores();
    PatchMemory();
    PatchGpus();
    PatchWalltime();
    InsertLines();
    std::stable_sort(out_.edits.begin(), out_.edits.end(),
                     [](const ByteEdit& a, const ByteEdit& b) { return a.offset < b.offset; });
    return std::move(out_);
  }

 private:
  void Note(std::string text) { out_.notes.push_back(std::move(text)); }

  /// False when the value already stands there.
  bool Replace(const SbatchDirective& d, const std::string& value) {
    const auto raw = bytes_.substr(d.value_bytes.offset, d.value_bytes.length);
    std::string text = Requoted(raw, value);
    if (raw == text) return false;
    out_.edits.push_back({d.value_bytes.offset, d.value_bytes.length, std::move(text)});
    return true;
  }

  void PatchCores() {
    if (!wanted_.cores || *wanted_.cores == request_.total_cores) return;
    if (request_.exclusive) {
      Note("cores: --exclusive gives the job whole nodes, so a smaller number changes nothing");
      return;
    }
    const int32_t tasks = std::max(request_.total_tasks, 1);
    const auto per_task = static_cast<int32_t>(DivideUp(*wanted_.cores, tasks));
    if (per_task == request_.cpus_per_task.value_or(1)) {
      Note(fmt::format("cores: {} tasks need at least one core each", tasks));
      return;
    }
    const auto* d = script_.Find("cpus-per-task");
    if (d != nullptr) {
      if (!Replace(*d, std::to_string(per_task))) return;
    } else {
      Insert("cpus-per-task", 'c', std::to_string(per_task));
    }
    cores_ = int64_t{per_task} * tasks;
    out_.cores_changed = true;
  }

  void PatchMemory() {
    const bool cores_scale = out_.cores_changed && request_.memory_form == MemoryForm::kPerCpu;
    if (!wanted_.memory && !cores_scale) return;
    const Bytes total = wanted_.memory ? *wanted_.memory : request_.total_memory.value_or(Bytes{0});
    if (total.value <= 0) return;
    std::string_view name = "mem";
    int64_t units = std::max(request_.total_nodes, 1);
    if (request_.memory_form == MemoryForm::kPerCpu) {
      name = "mem-per-cpu";
      units = std::max<int64_t>(cores_, 1);
    } else if (request_.memory_form == MemoryForm::kPerGpu) {
      name = "mem-per-gpu";
      units = std::max(wanted_.gpus.value_or(request_.total_gpus.value_or(0)), 0);
      if (units == 0) {
        Note("memory: --mem-per-gpu without a known number of GPUs");
        return;
      }
    }
    const Bytes each{DivideUp(total.value, units)};
    const auto* d = script_.Find(name);
    if (d == nullptr) {
      Insert(name, 0, FormatSbatchMemoryLike("G", each));
      out_.memory_changed = true;
      return;
    }
    out_.memory_changed = Replace(*d, FormatSbatchMemoryLike(d->value, each));
  }

  void PatchGpus() {
    if (!wanted_.gpus || !request_.total_gpus || *wanted_.gpus == *request_.total_gpus) return;
    const auto* d = script_.Find(request_.gpu_option);
    if (d == nullptr) return;
    auto list = request_.gpu_option == "gres" ? ParseSbatchGres(d->value)
                                              : ParseSbatchGpus(d->value, request_.gpu_option);
    int64_t units = 1;
    if (request_.gpu_option == "gpus-per-task") units = request_.total_tasks;
    if (request_.gpu_option == "gres" || request_.gpu_option == "gpus-per-node") {
      units = request_.total_nodes;
    }
    const auto is_gpu = [](const SbatchGres& gres) { return gres.name == "gpu"; };
    if (!list.ok() || std::count_if(list->begin(), list->end(), is_gpu) != 1 ||
        *wanted_.gpus % units != 0) {
      Note("gpus: the request names several kinds of GPU or cannot be divided evenly");
      return;
    }
    const auto& gres = *std::find_if(list->begin(), list->end(), is_gpu);
    const std::string count = std::to_string(*wanted_.gpus / units);
    std::string value = d->value;
    if (gres.count_offset == std::string::npos) {
      if (list->size() != 1) {
        Note("gpus: the list states no count");
        return;
      }
      value += ":" + count;
    } else {
      value.replace(gres.count_offset, gres.count_length, count);
    }
    out_.gpus_changed = Replace(*d, value);
  }

  void PatchWalltime() {
    if (!wanted_.walltime) return;
    const auto* d = script_.Find("time");
    if (d == nullptr) {
      Insert("time", 't', FormatSbatchTimeLike("0:0:0", *wanted_.walltime));
      out_.walltime_changed = true;
      return;
    }
    const auto stated = ParseSbatchTime(d->value);
    if (stated.ok() && stated->limit && *stated->limit == *wanted_.walltime) return;
    out_.walltime_changed = Replace(*d, FormatSbatchTimeLike(d->value, *wanted_.walltime));
  }

  /// How the author writes options: of the directives on the lines that are in effect.
  struct Style {
    std::string lead = "#SBATCH ";
    bool uses_short = false;
    char separator = '=';
  };
  Style AuthorsStyle() const {
    Style style;
    int shorts = 0;
    int longs = 0;
    int spaces = 0;
    for (const auto& d : script_.directives) {
      if (!d.has_value || d.value_bytes.offset <= d.name.end() - 1) continue;
      const bool is_long = d.name.length >= 2 && bytes_[d.name.offset + 1] == '-';
      (is_long ? longs : shorts) += 1;
      if (is_long && bytes_[d.name.end()] != '=') ++spaces;
    }
    style.uses_short = shorts > longs;
    if (2 * spaces > longs) style.separator = ' ';
    const SbatchDirective* last = script_.directives.empty() ? nullptr : &script_.directives.back();
    for (const auto& line : script_.lines)
      if (last != nullptr && line.number == last->line && last->name.offset >= line.bytes.offset) {
        const auto lead = bytes_.substr(line.bytes.offset, last->name.offset - line.bytes.offset);
        // Only when the option is the first of its line.
        if (lead.find('-') == std::string_view::npos) style.lead = std::string(lead);
      }
    return style;
  }

  void Insert(std::string_view name, char letter, const std::string& value) {
    const Style style = AuthorsStyle();
    if (style.uses_short && letter != 0) {
      inserted_.push_back(fmt::format("{}-{} {}", style.lead, letter, value));
    } else {
      inserted_.push_back(fmt::format("{}--{}{}{}", style.lead, name, style.separator, value));
    }
  }

  void InsertLines() {
    if (inserted_.empty()) return;
    // After the last directive, else after the "#!" line.
    size_t line_start = script_.lines.empty() ? 0 : script_.lines.back().bytes.offset;
    const size_t newline = bytes_.find('\n', line_start);
    const std::string end = script_.crlf ? "\r\n" : "\n";
    std::string text;
    if (newline == std::string_view::npos) {
      for (const auto& line : inserted_) text += end + line;
      out_.edits.push_back({bytes_.size(), 0, text});
      return;
    }
    for (const auto& line : inserted_) text += line + end;
    out_.edits.push_back({newline + 1, 0, text});
  }

  std::string_view bytes_;
  const SbatchScript& script_;
  const SbatchRequest& request_;
  const WantedRequest& wanted_;
  SbatchPatch out_;
  int64_t cores_ = 1;
  std::vector<std::string> inserted_;
};

}  // namespace

SbatchPatch PatchSbatchScript(std::string_view bytes, const SbatchScript& script,
                              const SbatchRequest& request, const WantedRequest& wanted) {
  return Patcher(bytes, script, request, wanted).Make();
}

std::string FormatSbatchMemoryLike(std::string_view like, Bytes size) {
  size_t unit_at = like.size();
  while (unit_at > 0 && std::isalpha(static_cast<unsigned char>(like[unit_at - 1])) != 0) --unit_at;
  const std::string_view unit = like.substr(unit_at);
  const int64_t mib = std::max<int64_t>(DivideUp(size.value, kMiB), 1);
  if (unit.empty()) return std::to_string(mib);
  const bool lower = std::islower(static_cast<unsigned char>(unit[0])) != 0;
  // "B" of "GB"; sbatch takes nothing else there.
  const std::string_view rest =
      unit.size() == 2 && (unit[1] == 'B' || unit[1] == 'b') ? unit.substr(1) : std::string_view();
  const auto spell = [&](int64_t number, char letter) {
    const char shown =
        lower ? static_cast<char>(std::tolower(static_cast<unsigned char>(letter))) : letter;
    return fmt::format("{}{}{}", number, shown, rest);
  };
  const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
  if (letter == 'T' && mib % (kTiB / kMiB) == 0) return spell(mib / (kTiB / kMiB), 'T');
  if ((letter == 'G' || letter == 'T') && mib % (kGiB / kMiB) == 0) {
    return spell(mib / (kGiB / kMiB), 'G');
  }
  if (letter == 'K') return spell(mib * 1024, 'K');
  return spell(mib, 'M');
}

std::string FormatSbatchTimeLike(std::string_view like, Seconds limit) {
  const int64_t minutes = std::max<int64_t>(DivideUp(limit.count(), 60), 1);
  const auto colons = std::count(like.begin(), like.end(), ':');
  const size_t dash = like.find('-');
  if (dash != std::string_view::npos && dash > 0) {
    const int64_t days = minutes / 1440;
    const int64_t hours = minutes % 1440 / 60;
    if (colons == 0 && minutes % 60 == 0) return fmt::format("{}-{}", days, hours);
    if (colons == 1) return fmt::format("{}-{:02}:{:02}", days, hours, minutes % 60);
    return fmt::format("{}-{:02}:{:02}:00", days, hours, minutes % 60);
  }
  if (colons == 2) return fmt::format("{:02}:{:02}:00", minutes / 60, minutes % 60);
  if (colons == 1) return fmt::format("{}:00", minutes);
  return std::to_string(minutes);
}

}  // namespace expanse::submission
