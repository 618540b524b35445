// SPDX-License-Identifier: Apache-2.0
#include "collect/host/process_reader.h"

#include <array>

#include <unistd.h>

#include "base/strings.h"
#include "collect/host/command_line.h"

namespace expanse::collect::host {
namespace {

std::string LinkTarget(const platform::Fs& fs, const std::string& path) {
  std::array<char, 256> target{};
  const ssize_t n = ::readlink(fs.Host(path).c_str(), target.data(), target.size());
  return n > 0 ? std::string(target.data(), static_cast<size_t>(n)) : std::string();
}

void Add(std::optional<int64_t> value, std::optional<int64_t>* sum) {
  if (value) *sum = Sum(sum->value_or(0), value);
}

}  // namespace

std::optional<Process> ParseProcessStat(std::string_view text, int64_t page_bytes) {
  // "pid (name) state ppid ...": the name may hold spaces and brackets, so look from the end.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  std::array<int64_t, 25> field{};  // by the numbers of proc(5), which start at 1
  const auto words = Split(Trim(text.substr(close + 1)), ' ');
  constexpr size_t kFirst = 3;  // the state, a letter
  if (words.size() + kFirst < field.size()) return std::nullopt;
  for (size_t n = kFirst + 1; n < field.size(); ++n)
    field[n] = CountOf(words[n - kFirst]).value_or(0);
  Process process;
  const auto pid = CountOf(text.substr(0, open));
  if (!pid) return std::nullopt;
  process.pid = static_cast<int32_t>(*pid);
  process.name = std::string(text.substr(open + 1, close - open - 1));
  process.parent = static_cast<int32_t>(field[4]);
  process.cpu_ticks = field[14] + field[15] + field[16] + field[17];
  process.threads = static_cast<int32_t>(field[20]);
  process.start_ticks = field[22];
  process.resident_bytes = Times(field[24], page_bytes).value_or(0);
  return process;
}

IoBytes ParseProcessIo(std::string_view text) {
  IoBytes io;
  ReadKeyed(text, {{"read_bytes:", &io.read}, {"write_bytes:", &io.written}});
  return io;
}

IoBytes ParseNetDev(std::string_view text) {
  // "  eth0: rx_bytes packets errs drop fifo frame compressed multicast tx_bytes ..."
  constexpr size_t kSent = 8;
  IoBytes bytes{0, 0};
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || Trim(line.substr(0, colon)) == "lo") continue;
    size_t n = 0;
    for (const std::string_view word : Split(line.substr(colon + 1), ' ')) {
      if (word.empty()) continue;
      if (n == 0) bytes.read = Sum(bytes.read, CountOf(word));
      if (n == kSent) bytes.written = Sum(bytes.written, CountOf(word));
      ++n;
    }
  }
  return bytes;
}

ProcessReader::ProcessReader(const platform::Fs& fs) : fs_(fs) {
  const long page = ::sysconf(_SC_PAGESIZE);
  if (page > 0) page_bytes_ = page;
  own_network_ = LinkTarget(fs_, "/proc/self/ns/net");
}

std::optional<Process> ProcessReader::ReadOne(int32_t pid, std::string* io_problem) {
  const std::string directory = "/proc/" + std::to_string(pid);
  auto process = ParseProcessStat(ReadText(fs_, directory + "/stat"), page_bytes_);
  if (!process) return std::nullopt;
  const auto io = fs_.Read(directory + "/io", 4096);
  if (io.ok()) {
    process->io = ParseProcessIo(*io);
  } else if (fs_.Exists(directory)) {
    *io_problem = io.error().code() == Code::kPermissionDenied
                      ? "reading /proc/<pid>/io of other users needs CAP_SYS_PTRACE"
                      : io.error().message();
  }
  Known& known = known_[pid];
  if (known.start_ticks != process->start_ticks || known.command.empty()) {
    known.start_ticks = process->start_ticks;
    known.command = MaskedCommandLine(ReadText(fs_, directory + "/cmdline"));
    // A thread of the kernel and a process that is ending have none.
    if (known.command.empty()) known.command = "[" + ToUtf8(process->name) + "]";
  }
  known.is_current = true;
  process->command = known.command;
  return process;
}

void ProcessReader::ReadNetwork(int32_t pid, StepProcesses* step) const {
  const std::string directory = "/proc/" + std::to_string(pid);
  const std::string network = LinkTarget(fs_, directory + "/ns/net");
  if (network.empty() || own_network_.empty()) {
    step->network_problem = "the network namespace of the job cannot be read (CAP_SYS_PTRACE)";
  } else if (network == own_network_) {
    step->network_problem = "the job shares the node's network: the kernel does not count by job";
  } else if (const std::string text = ReadText(fs_, directory + "/net/dev"); !text.empty()) {
    step->network = ParseNetDev(text);
    step->network_problem.clear();
  }
}

StepProcesses ProcessReader::Read(const std::vector<int32_t>& pids) {
  StepProcesses step;
  for (const int32_t pid : pids) {
    auto process = ReadOne(pid, &step.io_problem);
    if (!process) continue;
    Add(process->threads, &step.threads);
    Add(process->resident_bytes, &step.resident_bytes);
    Add(process->io.read, &step.io.read);
    Add(process->io.written, &step.io.written);
    step.processes.push_back(std::move(*process));
  }
  if (step.processes.empty()) {
    step.io_problem = step.network_problem = "no process was seen";
  } else {
    ReadNetwork(step.processes.front().pid, &step);
  }
  return step;
}

void ProcessReader::ForgetOthers() {
  std::erase_if(known_, [](const auto& entry) { return !entry.second.is_current; });
  for (auto& [pid, known] : known_) known.is_current = false;
}

}  // namespace expanse::collect::host
