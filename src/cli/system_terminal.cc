// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include "cli/terminal.h"

namespace expanse::cli {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

/// The terminal's state before echo was switched off, for the signal handler.
termios g_saved_termios;

/// An interrupted hidden prompt must not leave the shell without echo: restore, then die of the
/// same signal, so that the caller sees it.
extern "C" void RestoreEchoAndDie(int signal_number) {
  tcsetattr(STDIN_FILENO, TCSANOW, &g_saved_termios);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

class EchoOff {
 public:
  EchoOff() {
    if (tcgetattr(STDIN_FILENO, &g_saved_termios) != 0) return;
    active_ = true;
    struct sigaction action {};
    action.sa_handler = RestoreEchoAndDie;
    for (size_t i = 0; i < 3; ++i) sigaction(kSignals[i], &action, &old_[i]);
    termios quiet = g_saved_termios;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
  }
  ~EchoOff() {
    if (!active_) return;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &g_saved_termios);
    for (size_t i = 0; i < 3; ++i) sigaction(kSignals[i], &old_[i], nullptr);
  }
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;

 private:
  static constexpr int kSignals[3] = {SIGINT, SIGTERM, SIGQUIT};
  bool active_ = false;
  struct sigaction old_[3] = {};
};

class SystemTerminal final : public Terminal {
 public:
  ~SystemTerminal() override { (void)Flush(); }

  void Out(std::string_view bytes) override {
    buffer_ += bytes;
    if (buffer_.size() >= kBufferBytes) Drain();
  }
  void Err(std::string_view bytes) override {
    Drain();
    // Nobody is left to tell when stderr cannot be written.
    (void)WriteAll(STDERR_FILENO, bytes);
  }
  Result<std::string> ReadLine(bool hidden) override {
    Drain();
    if (!hidden) return ReadBytes();
    auto line = [this] {
      const EchoOff echo_off;
      return ReadBytes();
    }();
    Err("\n");  // the newline that was typed but not echoed
    return line;
  }
  bool in_is_terminal() const override { return isatty(STDIN_FILENO) == 1; }
  bool out_is_terminal() const override { return isatty(STDOUT_FILENO) == 1; }
  bool err_is_terminal() const override { return isatty(STDERR_FILENO) == 1; }
  Status Flush() override {
    Drain();
    if (out_errno_ == 0) return {};
    return Error(Code::kDataLoss,
                 std::string("writing to standard output: ") + std::strerror(out_errno_));
  }

 private:
  static int WriteAll(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = write(fd, bytes.data(), bytes.size());
      if (n < 0) {
        if (errno == EINTR) continue;
        return errno;
      }
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return 0;
  }
  void Drain() {
    if (out_errno_ == 0) out_errno_ = WriteAll(STDOUT_FILENO, buffer_);
    buffer_.clear();
  }
  /// Byte by byte: what follows the line belongs to whoever reads stdin next.
  static Result<std::string> ReadBytes() {
    std::string line;
    while (true) {
      char c = 0;
      const ssize_t n = read(STDIN_FILENO, &c, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        if (!line.empty()) return line;
        return Error(Code::kAborted, "no answer: end of input");
      }
      if (c == '\n') {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        return line;
      }
      line.push_back(c);
    }
  }

  std::string buffer_;
  int out_errno_ = 0;
};

}  // namespace

std::unique_ptr<Terminal> NewSystemTerminal() { return std::make_unique<SystemTerminal>(); }

}  // namespace expanse::cli
