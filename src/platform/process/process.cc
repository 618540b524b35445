// SPDX-License-Identifier: Apache-2.0
#include "platform/process/process.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strings.h"

namespace expanse::platform {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  bool Open() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
  void CloseRead() {
    if (read >= 0) ::close(std::exchange(read, -1));
  }
  void CloseWrite() {
    if (write >= 0) ::close(std::exchange(write, -1));
  }
};

/// Looks argv[0] up in the PATH that the child will have, as execvpe would.
std::string FindProgram(const ProcessSpec& spec) {
  const std::string& name = spec.argv[0];
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const auto it = spec.env.find("PATH");
  const std::string path = it != spec.env.end()
                               ? it->second
                               : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  for (const auto dir : Split(path, ':')) {
    const std::string candidate = std::string(dir) + "/" + name;
    if (!dir.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      int status = 0;
      while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Waits until the deadline; true when the child has ended.
  bool Reap(Deadline deadline, int& status) {
    while (true) {
      const pid_t r = ::waitpid(pid_, &status, WNOHANG);
      if (r == pid_) {
        pid_ = -1;
        return true;
      }
      if (deadline.Expired()) return false;
      ::usleep(1000);
    }
  }

 private:
  pid_t pid_;
};

/// Reads what is there; false at end of file or on error.
bool Drain(int fd, std::string& into) {
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  into.append(buffer, static_cast<size_t>(n));
  return true;
}

struct Streams {
  Pipe in, out, err;
};

Result<pid_t> Spawn(const ProcessSpec& spec, const std::string& program, Streams& s) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, s.in.read, 0);
  ::posix_spawn_file_actions_adddup2(&actions, s.out.write, 1);
  ::posix_spawn_file_actions_adddup2(&actions, s.err.write, 2);
  if (!spec.working_directory.empty())
    ::posix_spawn_file_actions_addchdir_np(&actions, spec.working_directory.c_str());
  // Its own process group, so that a time-out ends its children too; default signals.
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  std::vector<char*> argv;
  for (const auto& a : spec.argv) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> env_text;
  for (const auto& [k, v] : spec.env) env_text.push_back(k + "=" + v);
  std::vector<char*> envp;
  for (auto& e : env_text) envp.push_back(e.data());
  envp.push_back(nullptr);
  pid_t pid = -1;
  const int rc =
      ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), envp.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (rc != 0)
    return Error(Code::kUnavailable, fmt::format("starting {}: {}", program, std::strerror(rc)));
  return pid;
}

/// Feeds stdin and collects both outputs until they are closed or the deadline.
Status Communicate(const ProcessSpec& spec, Streams& s, Deadline deadline, ProcessResult& result) {
  std::string_view to_write = spec.stdin_bytes;
  if (to_write.empty()) s.in.CloseWrite();
  ::fcntl(s.in.write, F_SETFL, O_NONBLOCK);
  while (s.out.read >= 0 || s.err.read >= 0) {
    std::array<pollfd, 3> fds{
        {{s.out.read, POLLIN, 0}, {s.err.read, POLLIN, 0}, {s.in.write, POLLOUT, 0}}};
    const int ready =
        ::poll(fds.data(), fds.size(), static_cast<int>(deadline.Remaining().count()));
    if (ready < 0 && errno != EINTR)
      return Error(Code::kInternal,
                   fmt::format("waiting for {}: {}", spec.argv[0], std::strerror(errno)));
    if (deadline.Expired())
      return Error(Code::kDeadlineExceeded, fmt::format("{} ran longer than {}", spec.argv[0],
                                                        FormatDuration(spec.timeout)));
    if (fds[0].revents != 0 && !Drain(s.out.read, result.out)) s.out.CloseRead();
    if (fds[1].revents != 0 && !Drain(s.err.read, result.err)) s.err.CloseRead();
    if (s.in.write >= 0 && fds[2].revents != 0) {
      const ssize_t n = ::write(s.in.write, to_write.data(), to_write.size());
      if (n > 0) to_write.remove_prefix(static_cast<size_t>(n));
      if (to_write.empty() || (n < 0 && errno != EAGAIN && errno != EINTR)) s.in.CloseWrite();
    }
    if (result.out.size() > spec.max_output || result.err.size() > spec.max_output)
      return Error(Code::kResourceExhausted,
                   fmt::format("{} wrote more than {} bytes", spec.argv[0], spec.max_output));
  }
  return {};
}

}  // namespace

Result<ProcessResult> SystemProcessRunner::Run(const ProcessSpec& spec) {
  if (spec.argv.empty()) return Error(Code::kInvalidArgument, "running a program: no argv");
  const std::string program = FindProgram(spec);
  if (program.empty())
    return Error(Code::kNotFound, fmt::format("running {}: no such program in PATH", spec.argv[0]));
  Streams streams;
  if (!streams.in.Open() || !streams.out.Open() || !streams.err.Open())
    return Error(Code::kResourceExhausted,
                 fmt::format("running {}: {}", spec.argv[0], std::strerror(errno)));
  const MonoTime start = std::chrono::steady_clock::now();
  const Deadline deadline = Deadline::In(spec.timeout);
  EXPANSE_TRY(const pid_t pid, Spawn(spec, program, streams));
  Child child(pid);
  streams.in.CloseRead();
  streams.out.CloseWrite();
  streams.err.CloseWrite();
  ProcessResult result;
  EXPANSE_CHECK_OK(Communicate(spec, streams, deadline, result));
  int status = 0;
  if (!child.Reap(deadline, status))
    return Error(Code::kDeadlineExceeded,
                 fmt::format("{} ran longer than {}", spec.argv[0], FormatDuration(spec.timeout)));
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.wall = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - start);
  return result;
}

void RecordedProcessRunner::Add(std::vector<std::string> argv, ProcessResult result) {
  recordings_.emplace_back(std::move(argv), std::move(result));
}

void RecordedProcessRunner::AddError(std::vector<std::string> argv, Error error) {
  recordings_.emplace_back(std::move(argv), std::move(error));
}

Result<ProcessResult> RecordedProcessRunner::Run(const ProcessSpec& spec) {
  calls_.push_back(spec.argv);
  for (auto it = recordings_.rbegin(); it != recordings_.rend(); ++it)
    if (it->first == spec.argv) return it->second;
  return Error(Code::kNotFound, "no recording of: " + Join(spec.argv, " "));
}

}  // namespace expanse::platform
