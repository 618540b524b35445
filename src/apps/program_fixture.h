// SPDX-License-Identifier: Apache-2.0
// For tests: the programs of this build, each in a process of its own.
#pragma once

#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/fs/fs.h"
#include "platform/process/process.h"

namespace expanse::apps {

class ProgramTest : public testing::Test {
 protected:
  /// stdout and stderr go to NAME.out and NAME.err below the test's directory.
  pid_t Spawn(const std::string& name, std::vector<std::string> words) {
    words.insert(words.begin(), std::string(EXPANSE_BIN_DIR) + "/" + name);
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string out = Path(name + ".out");
    const std::string err = Path(name + ".err");
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t pid = -1;
    EXPECT_EQ(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
  }
  /// Polls for the first line with the mark, since the other side is another process: up to 20 s.
  std::string AwaitLine(const std::string& file, const std::string& mark) {
    for (int i = 0; i < 2000; ++i) {
      const std::string text = fs_.Read(Path(file)).value_or("");
      const size_t at = text.find(mark);
      const size_t end = text.find('\n', at);
      if (at != std::string::npos && end != std::string::npos) return text.substr(at, end - at);
      std::this_thread::sleep_for(Millis(10));
    }
    ADD_FAILURE() << file << " never said " << mark << ": " << fs_.Read(Path(file)).value_or("");
    return "";
  }
  /// The URL that the program says it listens on.
  std::string UrlOf(const std::string& name) {
    return AwaitLine(name + ".err", " url=http").substr(5);
  }
  void ExpectEndsCleanly(pid_t pid) {
    ASSERT_EQ(::kill(pid, SIGTERM), 0);
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  platform::ProcessResult Run(const std::string& name, std::vector<std::string> words) {
    platform::ProcessSpec spec;
    spec.argv = {std::string(EXPANSE_BIN_DIR) + "/" + name};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    auto result = runner_.Run(spec);
    EXPECT_TRUE(result.ok()) << result.error().message();
    return result.ok() ? std::move(result).value() : platform::ProcessResult{};
  }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  platform::TempDir dir_;
  platform::Fs fs_;
  platform::SystemProcessRunner runner_;
};

}  // namespace expanse::apps
