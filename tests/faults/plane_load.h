// SPDX-License-Identifier: Apache-2.0
// A data plane in a process of its own, load for it, and the question whether everything that it
// acknowledged is there once. For the tests here.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "expanse/data/v1/ingest.pb.h"

namespace expanse::faults {

/// Rounds of a test: a few in ./test, EXPANSE_FAULT_ROUNDS by command.
int Rounds(int quick);

/// `<program> --serve DIR [PORT]`: a data plane that asks nobody who is calling.
int ServeDataPlane(const std::string& directory, const std::string& port);

/// The test program itself as a server; killed at the end.
class Server {
 public:
  /// file_size_limit: RLIMIT_FSIZE of the process, as a disk that is full for each file; 0: none.
  explicit Server(const std::string& directory, uint64_t file_size_limit = 0);
  ~Server() { Kill(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  void Kill();                                     // kill -9
  const std::string& url() const { return url_; }  // "": it did not start

 private:
  pid_t pid_ = 0;
  std::string url_;
};

/// One collector's spool: sends in order, and again what was not acknowledged. Of ten records five
/// are samples of one job, one is a log tail and four are jobs of their own.
class Sender {
 public:
  explicit Sender(int number) : number_(number) {}

  /// One push. False: not acknowledged.
  bool SendOnce(const std::string& url);
  int64_t acknowledged() const { return next_ - 1; }
  const std::string& last_error() const { return last_error_; }

  /// Every acknowledged record (or those up to `through`) is there once. Failures are gtest's.
  void Check(const std::string& url, int64_t through = -1) const;

  static constexpr int kRecordsInBatch = 20;

 private:
  std::string JobOf(int64_t sequence) const;
  std::string TextOf(int64_t sequence) const;
  expanse::data::v1::PushRequest Batch() const;
  void CheckSamples(const std::string& url, int64_t next) const;

  int number_;
  int64_t next_ = 1;
  std::string last_error_;
};

/// Senders in threads of their own until Stop.
class Load {
 public:
  Load(const std::string& url, std::vector<Sender>* senders);
  ~Load() { Stop(); }
  void Stop();
  /// Until so many pushes were acknowledged, at most 20 s.
  void WaitFor(int pushes) const;

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> pushes_{0};
  std::vector<std::thread> threads_;
};

}  // namespace expanse::faults
