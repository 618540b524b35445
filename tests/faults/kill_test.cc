// SPDX-License-Identifier: Apache-2.0
// kill -9 of a data plane under load: what was acknowledged is there, once.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "plane_load.h"
#include "platform/fs/fs.h"

namespace expanse::faults {
namespace {

TEST(Kill, WhatWasAcknowledgedBeforeAKillIsThereOnce) {
  const int rounds = Rounds(8);
  const platform::TempDir dir;
  std::vector<Sender> senders{Sender(0), Sender(1), Sender(2)};
  std::mt19937 random(7);
  for (int round = 0; round < rounds; ++round) {
    Server server(dir.path());
    ASSERT_FALSE(server.url().empty()) << "round " << round;
    Load load(server.url(), &senders);
    // Real time on purpose: the kill has to fall into real system calls.
    load.WaitFor(1 + static_cast<int>(random() % 8));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    server.Kill();
  }
  const Server server(dir.path());
  int64_t acknowledged = 0;
  for (const Sender& sender : senders) {
    sender.Check(server.url());
    acknowledged += sender.acknowledged();
  }
  EXPECT_GT(acknowledged, 0);
  std::printf("%d kills, %lld records acknowledged\n", rounds,
              static_cast<long long>(acknowledged));
}

}  // namespace
}  // namespace expanse::faults

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--serve") == 0)
    return expanse::faults::ServeDataPlane(argv[2], argv[3]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
