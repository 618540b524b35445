// SPDX-License-Identifier: Apache-2.0
// The run table on disk: JSON, written whole and atomically. Text is bytes and kept as such.
#include <cstdio>

#include "base/strings.h"
#include "collect/slurm/json_fields.h"
#include "collect/slurm/run_table.h"
#include "platform/crypto/crypto.h"

namespace expanse::collect::slurm {
namespace {

namespace json = boost::json;

constexpr std::string_view kChecksum = "\ncrc32c=";

std::string ChecksumLine(std::string_view text) {
  char line[32];
  std::snprintf(line, sizeof line, "\ncrc32c=%08x\n", platform::Crc32c(text));
  return line;
}

void Put(json::object* out, const char* key, const std::optional<int64_t>& value) {
  if (value) (*out)[key] = *value;
}
void Put(json::object* out, const char* key, const std::string& value) {
  if (!value.empty()) (*out)[key] = value;
}
void PutFlag(json::object* out, const char* key, bool value) {
  if (value) (*out)[key] = 1;
}

json::object ToJson(const RunState& run) {
  json::object out;
  out["job"] = run.id.job_id;
  out["submit"] = run.id.submit;
  out["restarts"] = run.id.restarts;
  out["attempt"] = run.attempt_submit;
  Put(&out, "start", run.start);
  Put(&out, "end", run.end);
  Put(&out, "db", run.db_index);
  Put(&out, "uid", run.uid);
  if (!run.sluids.empty()) out["sluids"] = Join(run.sluids, ",");
  if (run.IsResized()) {
    json::array times(run.resize_times.begin(), run.resize_times.end());
    out["resized"] = std::move(times);
  }
  if (run.request) {
    Put(&out, "asked_cpus", run.request->cpus);
    Put(&out, "asked_memory", run.request->memory_bytes);
    Put(&out, "asked_nodes", run.request->nodes);
    Put(&out, "asked_gpus", run.request->gpus);
  }
  Put(&out, "state", run.state);
  PutFlag(&out, "ended", run.ended);
  PutFlag(&out, "settled", run.settled);
  PutFlag(&out, "bundle", run.bundle_sent);
  PutFlag(&out, "logs", run.logs_sent);
  PutFlag(&out, "many", run.many_tasks);
  Put(&out, "requeue", run.requeue_cause);
  out["first"] = run.first_seen_ms;
  PutFlag(&out, "live", run.seen_live);
  out["ended_seen"] = run.ended_seen_ms;
  for (const auto& [tool, print] : run.sent) out["sent_" + tool] = print;
  if (run.exit) {
    if (run.exit->code) out["code"] = *run.exit->code;
    if (run.exit->signal) out["signal"] = *run.exit->signal;
    PutFlag(&out, "oom", run.exit->out_of_memory);
    out["exit"] = 1;
  }
  Put(&out, "memory_form", run.memory_form);
  Put(&out, "user", run.user);
  Put(&out, "name", run.name);
  Put(&out, "command", run.command);
  Put(&out, "work_dir", run.work_dir);
  Put(&out, "stdout", run.stdout_path);
  Put(&out, "stderr", run.stderr_path);
  Put(&out, "submit_line", run.submit_line);
  Put(&out, "nodes", run.node_list);
  if (run.batch) out["batch"] = *run.batch ? 1 : 0;
  Put(&out, "array_job", run.array_job_id);
  Put(&out, "array_task", run.array_task_id);
  return out;
}

std::string Text(const json::object& in, std::string_view key) {
  return JsonText(in, key).value_or("");
}
bool Flag(const json::object& in, std::string_view key) { return JsonInt(in, key).has_value(); }

RunState FromJson(const json::object& in) {
  RunState run;
  run.id.job_id = JsonInt(in, "job").value_or(0);
  run.id.submit = JsonInt(in, "submit").value_or(0);
  run.id.restarts = static_cast<int32_t>(JsonInt(in, "restarts").value_or(0));
  run.attempt_submit = JsonInt(in, "attempt").value_or(0);
  run.start = JsonInt(in, "start");
  run.end = JsonInt(in, "end");
  run.db_index = JsonInt(in, "db");
  run.uid = JsonInt(in, "uid");
  const std::string sluids = Text(in, "sluids");
  for (std::string_view sluid : Split(sluids, ','))
    if (!sluid.empty()) run.sluids.emplace_back(sluid);
  if (const auto* times = JsonArray(in, "resized"))
    for (const auto& time : *times)
      if (time.is_int64()) run.resize_times.push_back(time.get_int64());
  Tres asked;
  asked.cpus = JsonPositive(in, "asked_cpus");
  asked.memory_bytes = JsonInt(in, "asked_memory");
  asked.nodes = JsonPositive(in, "asked_nodes");
  asked.gpus = JsonInt(in, "asked_gpus");
  if (asked.cpus || asked.memory_bytes) run.request = asked;
  run.state = Text(in, "state");
  run.ended = Flag(in, "ended");
  run.settled = Flag(in, "settled");
  run.bundle_sent = Flag(in, "bundle");
  run.logs_sent = Flag(in, "logs");
  run.many_tasks = Flag(in, "many");
  run.requeue_cause = Text(in, "requeue");
  run.first_seen_ms = JsonInt(in, "first").value_or(0);
  run.seen_live = Flag(in, "live");
  run.ended_seen_ms = JsonInt(in, "ended_seen").value_or(0);
  for (const char* tool : {"squeue", "scontrol", "sacct"})
    if (const std::string print = Text(in, std::string("sent_") + tool); !print.empty())
      run.sent[tool] = print;
  if (Flag(in, "exit")) {
    ExitStatus exit;
    if (const auto code = JsonInt(in, "code")) exit.code = static_cast<int>(*code);
    if (const auto signal = JsonInt(in, "signal")) exit.signal = static_cast<int>(*signal);
    exit.out_of_memory = Flag(in, "oom");
    run.exit = exit;
  }
  run.memory_form = Text(in, "memory_form");
  run.user = Text(in, "user");
  run.name = Text(in, "name");
  run.command = Text(in, "command");
  run.work_dir = Text(in, "work_dir");
  run.stdout_path = Text(in, "stdout");
  run.stderr_path = Text(in, "stderr");
  run.submit_line = Text(in, "submit_line");
  run.node_list = Text(in, "nodes");
  if (const auto batch = JsonInt(in, "batch")) run.batch = *batch != 0;
  run.array_job_id = JsonInt(in, "array_job");
  run.array_task_id = JsonInt(in, "array_task");
  return run;
}

}  // namespace

Status RunTable::Load(const platform::Fs& fs, const std::string& path) {
  if (!fs.Exists(path)) return {};
  EXPANSE_TRY(const std::string text, fs.Read(path, size_t{1} << 30));
  const Status parsed = Parse(text);
  if (!parsed.ok()) return parsed.error().WithContext(path);
  return {};
}

Status RunTable::Parse(std::string_view text) {
  const size_t at = text.rfind(kChecksum);
  const bool has_checksum =
      at != std::string_view::npos && text.substr(at) == ChecksumLine(text.substr(0, at));
  auto root = ParseToolJson(std::string(has_checksum ? text.substr(0, at) : text));
  if (!root.ok()) return root.error();
  // A flipped digit of the cursor would skip what accounting says. Version 0.1 (format 1) had no
  // checksum.
  if (!has_checksum && JsonInt(*root, "format").value_or(0) != 1)
    return Error(Code::kDataLoss, "the checksum of the run table is wrong");
  sacct_cursor = JsonInt(*root, "sacct_cursor").value_or(0);
  runs_.clear();
  if (const auto* runs = JsonArray(*root, "runs")) {
    for (const auto& value : *runs) {
      const json::object* object = value.if_object();
      if (object == nullptr) continue;
      RunState run = FromJson(*object);
      runs_[run.id] = std::move(run);
    }
  }
  return {};
}

Status RunTable::Save(const platform::Fs& fs, const std::string& path) const {
  json::object root;
  root["format"] = 2;
  root["sacct_cursor"] = sacct_cursor;
  json::array runs;
  runs.reserve(runs_.size());
  for (const auto& [id, run] : runs_) runs.push_back(ToJson(run));
  root["runs"] = std::move(runs);
  std::string text = json::serialize(root);
  text += ChecksumLine(text);
  return fs.WriteAtomic(path, text, 0600);
}

}  // namespace expanse::collect::slurm
