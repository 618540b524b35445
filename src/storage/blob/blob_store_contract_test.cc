// SPDX-License-Identifier: Apache-2.0
// What every blob backend has to do. A backend joins by a line in kBackends.
#include <algorithm>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/crypto/crypto.h"
#include "platform/fs/fs.h"
#include "storage/blob/blob_store.h"

namespace expanse::storage {
namespace {

const OrgId kOrg("0190a000-0000-7000-8000-000000000001");
const OrgId kOther("0190a000-0000-7000-8000-000000000002");

struct Backend {
  const char* name;
  std::string (*url)(const platform::TempDir& directory);
};
const Backend kBackends[] = {
    {"Directory", [](const platform::TempDir& d) { return "file:" + d.path() + "/blobs"; }},
};

class BlobStoreContract : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    auto opened = BlobStore::Open(GetParam().url(directory_));
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    store_ = std::move(opened).value();
  }
  BlobKey Put(const OrgId& org, std::string_view kind, std::string_view bytes) {
    auto key = store_->Put(org, kind, bytes);
    EXPECT_TRUE(key.ok()) << key.error().message();
    return key.ok() ? *key : BlobKey();
  }

  platform::TempDir directory_;
  std::unique_ptr<BlobStore> store_;
};

TEST_P(BlobStoreContract, AnswersTheBytesThatWereStored) {
  std::string all;
  for (unsigned i = 0; i < 100'000; ++i) all += static_cast<char>(i * i >> 3);
  for (const std::string& bytes : {std::string(), std::string("a\0b\n", 4), all}) {
    const BlobKey key = Put(kOrg, "source", bytes);
    EXPECT_EQ(key.sha256, platform::Sha256Hex(bytes));
    const auto got = store_->Get(key);
    ASSERT_TRUE(got.ok()) << got.error().message();
    EXPECT_EQ(*got, bytes);
    const auto info = store_->Head(key);
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->size, static_cast<int64_t>(bytes.size()));
    EXPECT_GT(info->modified_ms, 1'600'000'000'000);
  }
}

TEST_P(BlobStoreContract, StoresTheSameBytesOnce) {
  const BlobKey first = Put(kOrg, "source", "x");
  EXPECT_EQ(Put(kOrg, "source", "x"), first);
  EXPECT_EQ(store_->List(kOrg, "source", "", 10).value().blobs.size(), 1U);
}

TEST_P(BlobStoreContract, KeepsOrganisationsAndKindsApart) {
  const BlobKey key = Put(kOrg, "source", "x");
  EXPECT_EQ(store_->Get({kOther, "source", key.sha256}).error().code(), Code::kNotFound);
  EXPECT_EQ(store_->Get({kOrg, "log-tail", key.sha256}).error().code(), Code::kNotFound);
  EXPECT_TRUE(store_->List(kOther, "source", "", 10).value().blobs.empty());
  Put(kOther, "source", "x");
  ASSERT_TRUE(store_->Delete(key).ok());
  EXPECT_TRUE(store_->Get({kOther, "source", key.sha256}).ok());
}

TEST_P(BlobStoreContract, DeletesAlsoWhatIsNotThere) {
  const BlobKey key = Put(kOrg, "source", "x");
  EXPECT_TRUE(store_->Delete(key).ok());
  EXPECT_TRUE(store_->Delete(key).ok());
  EXPECT_EQ(store_->Get(key).error().code(), Code::kNotFound);
  EXPECT_EQ(store_->Head(key).error().code(), Code::kNotFound);
  EXPECT_NE(store_->Head(key).error().message().find(key.ToString()), std::string::npos);
}

TEST_P(BlobStoreContract, BoundsWhatItReads) {
  const BlobKey key = Put(kOrg, "source", std::string(1'000'000, 'x'));
  EXPECT_EQ(store_->Get(key, 999'999).error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(store_->Get(key, 1'000'000).ok());
}

TEST_P(BlobStoreContract, ListsEverythingOncePageByPage) {
  std::vector<std::string> want;
  for (int i = 0; i < 57; ++i) want.push_back(Put(kOrg, "source", std::to_string(i)).sha256);
  std::sort(want.begin(), want.end());
  std::vector<std::string> got;
  std::string after;
  do {
    const auto page = store_->List(kOrg, "source", after, 10);
    ASSERT_TRUE(page.ok());
    EXPECT_LE(page->blobs.size(), 10U);
    for (const auto& blob : page->blobs) got.push_back(blob.key.sha256);
    after = page->next;
  } while (!after.empty());
  EXPECT_EQ(got, want);
}

TEST_P(BlobStoreContract, RefusesKeysThatAreNot) {
  const std::string sha(64, 'a');
  EXPECT_EQ(store_->Put(OrgId(".."), "source", "x").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->Put(kOrg, "../source", "x").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->Put(kOrg, "", "x").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->Put(kOrg, std::string(33, 'k'), "x").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->Get({kOrg, "source", "../../../etc/passwd"}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(store_->Get({kOrg, "source", std::string(64, 'A')}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(store_->Delete({kOrg, "source", sha + "0"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(
      store_->List(OrgId("0190A000-0000-7000-8000-000000000001"), "source", "", 1).error().code(),
      Code::kInvalidArgument);
}

TEST_P(BlobStoreContract, TakesTheSameBytesFromManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int n = 0; n < 4; ++n)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        if (!store_->Put(kOrg, "source", std::to_string(i)).ok()) ++failures;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(store_->List(kOrg, "source", "", 100).value().blobs.size(), 20U);
}

INSTANTIATE_TEST_SUITE_P(Backends, BlobStoreContract, testing::ValuesIn(kBackends),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(BlobKey, ReadsItsOwnTextAndNothingElse) {
  const BlobKey key{kOrg, "log-tail", std::string(64, '0')};
  EXPECT_EQ(BlobKey::Parse(key.ToString()).value(), key);
  for (const std::string& bad :
       {std::string(), std::string("a/b/c"), key.ToString() + "/x", "/" + key.ToString(),
        kOrg.str() + "/../" + key.sha256, std::string(10'000, '/'), kOrg.str() + "//" + key.sha256})
    EXPECT_EQ(BlobKey::Parse(bad).error().code(), Code::kInvalidArgument) << bad.substr(0, 99);
}

}  // namespace
}  // namespace expanse::storage
