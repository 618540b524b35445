// SPDX-License-Identifier: Apache-2.0
#include "install/transaction.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace expanse::install {
namespace {

/// Somebody whom permissions bind, also where the tests run as root.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_ && ::seteuid(kNobody) != 0) std::abort();
  }
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  static constexpr uid_t kNobody = 65534;

 private:
  bool was_root_;
};

TEST(TransactionTest, AWriteThatFailsAfterTheRenameIsTakenBack) {
  const platform::TempDir dir;
  const platform::Fs fs;
  const std::string folder = dir.path() + "/d";
  ASSERT_TRUE(fs.MakeDirs(folder).ok());
  ASSERT_TRUE(fs.WriteAtomic(folder + "/old", "before", 0644).ok());
  if (::geteuid() == 0) {
    ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
    ASSERT_TRUE(fs.Chown(folder, Unprivileged::kNobody, 0).ok());
    ASSERT_TRUE(fs.Chown(folder + "/old", Unprivileged::kNobody, 0).ok());
  }
  // Files can be made and renamed in it, and it cannot be opened to be synced.
  ASSERT_EQ(::chmod(folder.c_str(), 0300), 0);
  {
    const Unprivileged nobody;
    Transaction transaction(fs, [](const std::string&) {});
    const Owner owner{::geteuid(), ::getegid()};
    ASSERT_FALSE(transaction.WriteFile(folder + "/old", "after", 0644, owner).ok());
    ASSERT_EQ(fs.Read(folder + "/old").value_or(""), "after") << "the fault that is to be tested";
    ASSERT_FALSE(transaction.WriteFile(folder + "/new", "after", 0644, owner).ok());
    ASSERT_TRUE(fs.Exists(folder + "/new"));
    (void)transaction.Rollback();  // its own syncs fail as well
  }
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  EXPECT_EQ(fs.Read(folder + "/old").value_or(""), "before");
  EXPECT_FALSE(fs.Exists(folder + "/new"));
}

TEST(TransactionTest, AWriteThatDidNothingIsNoTroubleOfTheRollback) {
  const platform::TempDir dir;
  const platform::Fs fs;
  Transaction transaction(fs, [](const std::string&) {});
  ASSERT_FALSE(transaction.WriteFile(dir.path() + "/none/x", "a", 0644, {}).ok());
  EXPECT_TRUE(transaction.Rollback().ok());
}

TEST(TransactionTest, AGuardThatFailsKeepsNewHeldFilesAndNothingElse) {
  const platform::TempDir dir;
  const platform::Fs fs;
  const Owner owner{::geteuid(), ::getegid()};
  ASSERT_TRUE(fs.WriteAtomic(dir.path() + "/replaced", "before", 0644).ok());
  Transaction transaction(fs, [](const std::string&) {});
  ASSERT_TRUE(transaction.WriteFile(dir.path() + "/free", "a", 0644, owner).ok());
  transaction.BeginHeld();
  ASSERT_TRUE(transaction.WriteFile(dir.path() + "/held", "a", 0644, owner).ok());
  ASSERT_TRUE(transaction.WriteFile(dir.path() + "/replaced", "a", 0644, owner).ok());
  transaction.EndHeld();
  transaction.Guard("use", [] { return Status(Error(Code::kUnavailable, "in use")); });
  const Status undone = transaction.Rollback();
  ASSERT_FALSE(undone.ok());
  EXPECT_NE(undone.error().message().find(dir.path() + "/held"), std::string::npos);
  EXPECT_TRUE(fs.Exists(dir.path() + "/held"));
  EXPECT_FALSE(fs.Exists(dir.path() + "/free"));
  EXPECT_EQ(fs.Read(dir.path() + "/replaced").value_or(""), "before");
}

}  // namespace
}  // namespace expanse::install
