// SPDX-License-Identifier: Apache-2.0
#include "collect/host/event_collector.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strings.h"
#include "collect/core/spool_files.h"
#include "collect/hook/event_format.h"
#include "collect/host/event_facts.h"

namespace expanse::collect::host {
namespace {

using hook::HookEvent;
using hook::HookKind;

constexpr mode_t kEventsMode = 01733;  // anybody may add, nobody but the service may list
// From the first sight of a file: its times are its owner's to set.
constexpr Millis kAbandoned{60'000};   // a hook lives for 2 s
constexpr Millis kWaitForJob{10'000};  // its prolog's file may come later
constexpr int64_t kForgetEndedMs = 600'000;
constexpr int64_t kForgetMs = int64_t{30} * 24 * 3600 * 1000;
constexpr int64_t kFileBytesOnDisk = 4096;  // an event takes one block

}  // namespace

EventCollector::EventCollector(EventCollectorOptions options, const platform::Clock& clock,
                               const platform::Fs& fs)
    : options_(std::move(options)), clock_(clock), fs_(fs) {
  LoadState();
}

Status EventCollector::EnsureDirectory() {
  if (fs_.Exists(options_.events_directory)) return {};
  EXPANSE_CHECK_OK(fs_.MakeDirs(options_.events_directory, 0755));
  return fs_.Chmod(options_.events_directory, kEventsMode);  // past the umask
}

Result<EventCollector::Incoming> EventCollector::ReadFile(const std::string& name) const {
  const std::string path = fs_.Host(options_.events_directory + "/" + name);
  // Anybody may put anything here: no links, no pipes, no waiting.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == EACCES) return Error(Code::kPermissionDenied, "not readable");
    if (errno == ENOENT) return Error(Code::kNotFound, "gone");
    return Error(Code::kInvalidArgument, "not a plain file");
  }
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode))
    return Error(Code::kInvalidArgument, "not a plain file");
  if (st.st_size > static_cast<off_t>(hook::kMaxEventBytes))
    return Error(Code::kInvalidArgument, "larger than an event can be");
  std::string bytes(static_cast<size_t>(st.st_size), '\0');
  const ssize_t n = ::read(fd.get(), bytes.data(), bytes.size());
  if (n != st.st_size) return Error(Code::kInvalidArgument, "cut short");
  Incoming incoming;
  incoming.name = name;
  incoming.owner = st.st_uid;
  EXPANSE_TRY(incoming.event, hook::ParseHookEvent(bytes));
  return incoming;
}

void EventCollector::Reject(const std::string& name, const std::string& why) {
  ++rejected_;
  last_rejection_ = EscapeForTerminal(name) + ": " + why;
  (void)fs_.Remove(options_.events_directory + "/" + name);
  // A user who writes thousands does not fill the log.
  if (rejection_logged_ && clock_.Mono() - *rejection_logged_ < Millis(1'000)) return;
  rejection_logged_ = clock_.Mono();
  log::Warning("hooks.event_rejected", {{"file", EscapeForTerminal(name)},
                                        {"reason", why},
                                        {"rejected", static_cast<int64_t>(rejected_)}});
}

std::optional<uid_t> EventCollector::OwnerOf(const std::string& name) const {
  const auto info = fs_.LStat(options_.events_directory + "/" + name);
  return info.ok() ? std::optional(info->uid) : std::nullopt;
}

void EventCollector::NoteFlood(uid_t owner) {
  flooded_ = clock_.Mono();
  flooding_user_ = owner;
}

std::string EventCollector::flood() const {
  if (!flooded_ || clock_.Mono() - *flooded_ > Millis(60'000)) return "";
  return "user " + std::to_string(flooding_user_) +
         " writes more event files than any job does; they are removed";
}

/// Files that a hook began and never renamed.
void EventCollector::RemoveAbandoned(const std::vector<std::string>& names) {
  std::map<uid_t, size_t> fresh;
  for (const auto& name : names) {
    bool remove = backlog_.AgeOf(name) > kAbandoned;
    if (!remove && names.size() > kMostWaitingOfUser) {
      const auto owner = OwnerOf(name);
      remove = owner && *owner != 0 && ++fresh[*owner] > kMostWaitingOfUser;
      if (remove) NoteFlood(*owner);
    }
    if (remove) (void)fs_.Remove(options_.events_directory + "/" + name);
  }
}

std::vector<EventCollector::Incoming> EventCollector::ReadFiles(
    const std::vector<std::string>& names) {
  backlog_.Begin(names, clock_.Mono());
  std::vector<std::string> unfinished;
  std::vector<std::string> ready;
  for (const auto& name : names) {
    if (name.starts_with(".")) {
      unfinished.push_back(name);
      continue;
    }
    // One that waits takes nobody's place.
    const auto job = backlog_.WaitsFor(name);
    const bool waits = job && Find(std::to_string(*job)) == nullptr;
    if (!waits || backlog_.AgeOf(name) >= kWaitForJob) ready.push_back(name);
  }
  RemoveAbandoned(unfinished);
  std::vector<Incoming> incoming;
  for (const auto& name : EventBacklog::Choose(
           std::move(ready), options_.max_events_a_round, {0, options_.service_uid},
           [this](const std::string& file) { return OwnerOf(file); })) {
    auto read = ReadFile(name);
    if (read.ok()) {
      incoming.push_back(std::move(read).value());
    } else if (read.error().code() != Code::kNotFound) {
      Reject(name, read.error().message());
    }
  }
  // Names begin with the time, but the name is the writer's word; so is the time, yet a wrong one
  // only harms the job that it claims.
  std::stable_sort(incoming.begin(), incoming.end(), [](const Incoming& a, const Incoming& b) {
    return a.event.time_ns < b.event.time_ns;
  });
  return incoming;
}

EventCollector::Verdict EventCollector::Judge(const Incoming& incoming, std::string* why) const {
  const HookEvent& event = incoming.event;
  const auto id = event.job_id();
  if (!id || *id <= 0) {
    *why = "no job id";
    return Verdict::kReject;
  }
  const bool privileged = incoming.owner == 0 || incoming.owner == options_.service_uid;
  if (!IsTaskKind(event.kind)) {
    if (privileged) return Verdict::kAccept;
    *why = "written by user " + std::to_string(incoming.owner) + ", not by SLURM";
    return Verdict::kReject;
  }
  if (event.step_id.empty()) {
    *why = "a task without a step id";
    return Verdict::kReject;
  }
  const KnownJob* job = Find(std::to_string(*id));
  if (job == nullptr) {
    if (incoming.owner == 0) return Verdict::kAccept;
    *why = "job " + std::to_string(*id) + " is not known on this node";
    return backlog_.AgeOf(incoming.name) < kWaitForJob ? Verdict::kWait : Verdict::kReject;
  }
  if (job->uid == incoming.owner || incoming.owner == 0) return Verdict::kAccept;
  *why = "written by user " + std::to_string(incoming.owner) + ", but job " + std::to_string(*id) +
         " belongs to user " + std::to_string(job->uid);
  return Verdict::kReject;
}

void EventCollector::Note(const HookEvent& event) {
  const auto id = event.job_id();
  if (!id) return;
  if (IsTaskKind(event.kind)) {
    const auto known = jobs_.find(std::to_string(*id));
    if (known == jobs_.end()) return;
    if (event.step && event.step->oom_kills.value_or(0) > 0) known->second.killed = true;
    if (const auto task = event.EnvInt("SLURM_LOCALID");
        task && event.kind == HookKind::kTaskEpilog)
      known->second.ended_tasks[event.step_id].insert(*task);
    return;
  }
  KnownJob& job = jobs_[std::to_string(*id)];
  if (const auto uid = event.EnvInt("SLURM_JOB_UID")) job.uid = static_cast<uid_t>(*uid);
  const bool starts = event.kind == HookKind::kProlog || event.kind == HookKind::kPrologSlurmctld;
  if (starts) {
    // A job id that comes again is another run: nothing of the last one holds.
    job.restart_count.reset();
    job.start_time_ms.reset();
    job.sluid.clear();
    job.killed = false;
    job.ended_tasks.clear();
  }
  if (const auto count = event.EnvInt("SLURM_JOB_RESTART_COUNT"))
    job.restart_count = static_cast<int32_t>(*count);
  if (const auto start = event.EnvInt("SLURM_JOB_START_TIME"); start && *start > 0)
    job.start_time_ms = *start * 1000;
  if (const auto sluid = event.Env("SLURM_JOB_SLUID")) job.sluid = ToUtf8(*sluid);
  job.ended = !starts;
  job.last_seen_ms = std::max(job.last_seen_ms, ToUnixMillis(event.time()));
  jobs_changed_ = true;
}

/// Has every task of the step ended on this node? Unknown counts as no.
bool EventCollector::HasEnded(const HookEvent& event) const {
  const auto tasks = TasksOnNode(event);
  if (!tasks) return false;
  if (*tasks == 1) return true;
  const KnownJob* job = Find(std::to_string(event.job_id().value_or(0)));
  if (job == nullptr) return false;
  const auto ended = job->ended_tasks.find(event.step_id);
  return ended != job->ended_tasks.end() && ended->second.size() >= static_cast<size_t>(*tasks);
}

data::v1::Record EventCollector::ToRecord(const HookEvent& event) const {
  const std::string id = std::to_string(event.job_id().value_or(0));
  const KnownJob* job = Find(id);
  EventContext context;
  context.job_killed = job != nullptr && job->killed;
  context.step_ended = event.kind == HookKind::kTaskEpilog && HasEnded(event);
  if (seen_of_ && event.kind != HookKind::kTaskProlog) {
    if (!event.step_id.empty()) context.step = seen_of_(id, event.step_id);
    context.job = seen_of_(id, "");
  }
  data::v1::Record record = FactsOfEvent(event, options_.node, context);
  // Task hooks are not told which attempt they belong to; the node's prolog was. After the epilog
  // of that attempt its word no longer holds: SLURM does not run Prolog for every later attempt.
  auto* key = record.mutable_facts()->mutable_key();
  const bool is_later = job != nullptr && job->ended && IsTaskKind(event.kind) &&
                        ToUnixMillis(event.time()) > job->last_seen_ms;
  if (job != nullptr && !is_later) {
    if (!key->has_restart_count() && job->restart_count)
      key->set_restart_count(*job->restart_count);
    if (!key->has_start_time_ms() && job->start_time_ms)
      key->set_start_time_ms(*job->start_time_ms);
    if (key->sluid().empty()) key->set_sluid(job->sluid);
  }
  return record;
}

void EventCollector::ApplyCap(size_t files) {
  const std::string marker = platform::DirName(options_.events_directory) + "/full";
  const auto bytes = static_cast<int64_t>(files) * kFileBytesOnDisk;
  if (!over_cap_ && bytes > options_.max_bytes) {
    over_cap_ = fs_.WriteAtomic(marker, "", 0644).ok();
    log::Warning("hooks.spool_full", {{"files", static_cast<int64_t>(files)}});
  } else if (bytes <= options_.max_bytes / 2 && (over_cap_ || fs_.Exists(marker))) {
    if (fs_.Remove(marker).ok()) over_cap_ = false;
  }
}

/// Those that become records. Of the tasks of one step, the first start and the last end say it
/// all: the cgroup's numbers only grow.
std::vector<EventCollector::Incoming> EventCollector::Accept(std::vector<Incoming> incoming,
                                                             std::vector<std::string>* done) {
  std::vector<Incoming> accepted;
  std::map<std::string, size_t> of_step;
  for (auto& one : incoming) {
    std::string why;
    const Verdict verdict = Judge(one, &why);
    if (verdict == Verdict::kWait) {
      if (backlog_.Wait(one.name, one.owner, *one.event.job_id())) continue;
      NoteFlood(one.owner);
      why = "too many files of this user wait for jobs that are not known on this node";
    }
    if (verdict != Verdict::kAccept) {
      Reject(one.name, why);
      continue;
    }
    Note(one.event);
    for (const auto& note : one.event.notes)
      log::Warning("hooks.note", {{"node", options_.node}, {"note", EscapeForTerminal(note)}});
    done->push_back(one.name);
    if (!IsTaskKind(one.event.kind)) {
      accepted.push_back(std::move(one));
      continue;
    }
    const std::string step = std::to_string(*one.event.job_id()) + "." + one.event.step_id + "." +
                             std::string(HookKindName(one.event.kind));
    const auto [it, added] = of_step.try_emplace(step, accepted.size());
    if (added) {
      accepted.push_back(std::move(one));
    } else if (one.event.kind == HookKind::kTaskEpilog) {
      accepted[it->second] = std::move(one);
    }
  }
  return accepted;
}

Status EventCollector::Collect(SpoolWriter& spool) {
  EXPANSE_CHECK_OK(EnsureDirectory());
  EXPANSE_TRY(const auto names, fs_.List(options_.events_directory));
  ApplyCap(names.size());
  if (names.empty()) {
    ForgetOldJobs();
    SaveState();
    return {};
  }
  std::vector<std::string> done;
  for (const auto& incoming : Accept(ReadFiles(names), &done)) {
    if (const auto sequence = spool.AppendKept(ToRecord(incoming.event)); !sequence.ok())
      return sequence.error();
  }
  SaveState();
  // Only what is in the spool may go; a crash in between sends it twice, which changes nothing.
  EXPANSE_CHECK_OK(spool.Sync());
  for (const auto& name : done) (void)fs_.Remove(options_.events_directory + "/" + name);
  accepted_ += done.size();
  ForgetOldJobs();
  return {};
}

void EventCollector::Learn(const std::string& job_id, uid_t uid) {
  auto [it, added] = jobs_.try_emplace(job_id);
  KnownJob& job = it->second;
  if (job.ended) {
    // A cgroup after the epilog is the job's next attempt, or another job of the same id, whose
    // prolog has not been seen: what was known of the last one would be said of this one.
    job = KnownJob{};
    jobs_changed_ = true;
  }
  if (added || job.uid != uid) {
    job.uid = uid;
    jobs_changed_ = true;
  }
  job.last_seen_ms = ToUnixMillis(clock_.Now());
}

const KnownJob* EventCollector::Find(const std::string& job_id) const {
  const auto it = jobs_.find(job_id);
  return it == jobs_.end() ? nullptr : &it->second;
}

std::string EventCollector::JobOfSluid(const std::string& sluid) const {
  for (const auto& [id, job] : jobs_)
    if (!sluid.empty() && job.sluid == sluid) return id;
  return "";
}

void EventCollector::ForgetOldJobs() {
  const int64_t now = ToUnixMillis(clock_.Now());
  const size_t forgotten = std::erase_if(jobs_, [now](const auto& entry) {
    const int64_t age = now - entry.second.last_seen_ms;
    return age > (entry.second.ended ? kForgetEndedMs : kForgetMs);
  });
  if (forgotten > 0) jobs_changed_ = true;
}

// One job a line: id uid restart_count start_time_ms last_seen_ms flags sluid, "-" for unknown.
// flags: 1 ended, 2 killed.
void EventCollector::LoadState() {
  if (options_.state_file.empty()) return;
  const auto text = fs_.Read(options_.state_file);
  if (!text.ok()) return;
  for (const auto line : Split(*text, '\n')) {
    const auto f = Split(line, ' ');
    if (f.size() != 7) continue;
    const auto uid = ParseInt64(f[1]);
    const auto seen = ParseInt64(f[4]);
    if (!ParseInt64(f[0]) || !uid || !seen) continue;
    KnownJob& job = jobs_[std::string(f[0])];
    job.uid = static_cast<uid_t>(*uid);
    job.last_seen_ms = *seen;
    if (const auto count = ParseInt64(f[2])) job.restart_count = static_cast<int32_t>(*count);
    job.start_time_ms = ParseInt64(f[3]);
    const int64_t flags = ParseInt64(f[5]).value_or(0);
    job.ended = (flags & 1) != 0;
    job.killed = (flags & 2) != 0;
    if (f[6] != "-") job.sluid = std::string(f[6]);
  }
}

void EventCollector::SaveState() {
  if (!jobs_changed_ || options_.state_file.empty()) return;
  const auto number = [](const auto& value) {
    return value ? std::to_string(*value) : std::string("-");
  };
  std::string text;
  for (const auto& [id, job] : jobs_)
    text += id + " " + std::to_string(job.uid) + " " + number(job.restart_count) + " " +
            number(job.start_time_ms) + " " + std::to_string(job.last_seen_ms) + " " +
            std::to_string((job.ended ? 1 : 0) + (job.killed ? 2 : 0)) + " " +
            (job.sluid.empty() ? "-" : job.sluid) + "\n";
  const Status saved = fs_.WriteAtomic(options_.state_file, text, 0600);
  if (saved.ok()) jobs_changed_ = false;
}

}  // namespace expanse::collect::host
