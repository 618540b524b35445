// SPDX-License-Identifier: Apache-2.0
// What is particular to blobs as files: damage, leftovers of a crash.
#include <fstream>

#include <gtest/gtest.h>

#include "platform/fs/fs.h"
#include "storage/blob/blob_store.h"

namespace expanse::storage {
namespace {

const OrgId kOrg("0190a000-0000-7000-8000-000000000001");

class FsBlobStoreTest : public testing::Test {
 protected:
  std::string PathOf(const BlobKey& key) const {
    return directory_.path() + "/" + key.org.str() + "/" + key.kind + "/" +
           key.sha256.substr(0, 2) + "/" + key.sha256 + ".zst";
  }

  static void Overwrite(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  platform::TempDir directory_;
  platform::Fs fs_;
  std::unique_ptr<BlobStore> store_ = BlobStore::Open("file:" + directory_.path()).value();
};

TEST_F(FsBlobStoreTest, CompressesText) {
  const auto key = store_->Put(kOrg, "log-tail", std::string(100'000, 'x')).value();
  EXPECT_LT(store_->Head(key).value().stored_size, 200);
}

TEST_F(FsBlobStoreTest, NoticesEveryFlippedBitAndEveryTruncation) {
  std::string content;
  for (int i = 0; i < 64; ++i) content += static_cast<char>(i * 37);
  const auto key = store_->Put(kOrg, "source", content).value();
  const std::string stored = fs_.Read(PathOf(key)).value();
  for (size_t at = 0; at < stored.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = stored;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      Overwrite(PathOf(key), damaged);
      const auto got = store_->Get(key);
      if (got.ok()) {
        // Bits that zstd does not use; what is answered is right nevertheless.
        ASSERT_EQ(*got, content);
        continue;
      }
      ASSERT_TRUE(got.error().code() == Code::kDataLoss ||
                  got.error().code() == Code::kResourceExhausted)
          << got.error().message();
      ASSERT_NE(got.error().message().find(key.ToString()), std::string::npos);
    }
    Overwrite(PathOf(key), stored.substr(0, at));
    ASSERT_EQ(store_->Get(key).error().code(), Code::kDataLoss);
  }
}

TEST_F(FsBlobStoreTest, RepairsADamagedBlobWhenItIsStoredAgain) {
  const auto key = store_->Put(kOrg, "source", "content").value();
  ASSERT_TRUE(fs_.WriteAtomic(PathOf(key), "rubbish", 0600).ok());
  ASSERT_FALSE(store_->Get(key).ok());
  EXPECT_EQ(store_->List(kOrg, "source", "", 10).value().blobs.size(), 1U);
  ASSERT_TRUE(store_->Put(kOrg, "source", "content").ok());
  EXPECT_EQ(store_->Get(key).value(), "content");
}

TEST_F(FsBlobStoreTest, IgnoresFilesOfOthersAndLeavesNoTemporaries) {
  const auto key = store_->Put(kOrg, "source", "content").value();
  const std::string beside = platform::DirName(PathOf(key));
  ASSERT_TRUE(fs_.WriteAtomic(beside + "/README", "x", 0600).ok());
  ASSERT_TRUE(fs_.WriteAtomic(beside + "/zz.zst", "x", 0600).ok());
  EXPECT_EQ(store_->List(kOrg, "source", "", 10).value().blobs.size(), 1U);
  EXPECT_TRUE(fs_.List(directory_.path() + "/tmp").value().empty());
}

}  // namespace
}  // namespace expanse::storage
