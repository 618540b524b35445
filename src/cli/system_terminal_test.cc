// SPDX-License-Identifier: Apache-2.0
// The real terminal, on a pseudo-terminal of the kernel.
#include <csignal>
#include <functional>

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "cli/terminal.h"

namespace expanse::cli {
namespace {

/// A child on a new terminal; what it writes there, until `end` of it or the end of all.
class Child {
 public:
  explicit Child(const std::function<int()>& body) {
    pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ == 0) _exit(body());
  }
  ~Child() { close(fd_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  std::string ReadUntil(std::string_view end) {
    std::string out;
    char c = 0;
    while (!out.ends_with(end) && read(fd_, &c, 1) == 1) out.push_back(c);
    return out;
  }
  void Type(std::string_view text) {
    EXPECT_EQ(write(fd_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool Echoes() const {
    termios state{};
    EXPECT_EQ(tcgetattr(fd_, &state), 0);
    return (state.c_lflag & static_cast<tcflag_t>(ECHO)) != 0;
  }
  int Wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
};

int AskHidden() {
  const auto terminal = NewSystemTerminal();
  if (!terminal->can_prompt() || !terminal->interactive()) return 1;
  terminal->Err("name: ");
  const auto name = terminal->ReadLine(false);
  terminal->Err("secret: ");
  const auto secret = terminal->ReadLine(true);
  return name.ok() && *name == "ada" && secret.ok() && *secret == "exp_install_x" ? 0 : 2;
}

TEST(SystemTerminal, DoesNotEchoWhatIsTypedHidden) {
  Child child(AskHidden);
  EXPECT_EQ(child.ReadUntil("name: "), "name: ");
  child.Type("ada\n");
  EXPECT_EQ(child.ReadUntil("secret: "), "ada\r\nsecret: ");
  while (child.Echoes()) {
  }
  child.Type("exp_install_x\n");
  EXPECT_EQ(child.ReadUntil("(never)"), "\r\n");
  EXPECT_EQ(child.Wait(), 0);
}

TEST(SystemTerminal, AnInterruptedHiddenPromptRestoresEcho) {
  Child child(AskHidden);
  child.ReadUntil("name: ");
  child.Type("ada\n");
  child.ReadUntil("secret: ");
  while (child.Echoes()) {
  }
  child.Type("\x03");
  const int status = child.Wait();
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  EXPECT_TRUE(child.Echoes());
}

TEST(SystemTerminal, TheEndOfInputIsNoAnswer) {
  Child child([] {
    const auto terminal = NewSystemTerminal();
    terminal->Err("? ");
    const auto line = terminal->ReadLine(false);
    return !line.ok() && line.error().code() == Code::kAborted ? 0 : 1;
  });
  child.ReadUntil("? ");
  child.Type("\x04");
  EXPECT_EQ(child.Wait(), 0);
}

TEST(SystemTerminal, AFullDiskIsReportedByFlush) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (freopen("/dev/full", "w", stdout) == nullptr) _exit(2);
    const auto terminal = NewSystemTerminal();
    terminal->Out("text");
    _exit(terminal->Flush().ok() ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace expanse::cli
