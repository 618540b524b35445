// SPDX-License-Identifier: Apache-2.0
// Temporaries of these tests go to memory where that is possible: they open and sync thousands of
// small stores, and what a disk adds is time only.
#include <cstdlib>

#include <gtest/gtest.h>
#include <unistd.h>

namespace {

class MemoryTemporaries final : public testing::Environment {
 public:
  void SetUp() override {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  }
};

const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new MemoryTemporaries);

}  // namespace
