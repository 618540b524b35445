// SPDX-License-Identifier: Apache-2.0
#include "install/release.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "platform/crypto/crypto.h"

namespace expanse::install {
namespace {

namespace stdfs = std::filesystem;

std::string Data(const std::string& name) {
  return platform::Fs().Read(std::string(EXPANSE_TESTDATA "/release/") + name).value_or("");
}

/// Answers by URL.
class FakeHttp final : public platform::HttpClient {
 public:
  Result<platform::HttpResponse> Do(const platform::HttpCall& call) override {
    asked.push_back(call.url);
    platform::HttpResponse response;
    const auto it = pages.find(call.url);
    response.status = it == pages.end() ? 404 : 200;
    if (it != pages.end()) response.body = it->second;
    return response;
  }
  std::map<std::string, std::string> pages;
  std::vector<std::string> asked;
};

class ReleaseTest : public ::testing::Test {
 protected:
  ReleaseTest() : fs_(dir_.path()), clock_(FromUnixMillis(0)) {
    for (const auto* name : {"expanse-daemon_linux_amd64.tar.gz",
                             "expanse-daemon_linux_amd64.tar.gz.sig", "cosign.pub"})
      std::ofstream(dir_.path() + "/" + name) << Data(name);
    options_.daemon_binary = "/expanse-daemon_linux_amd64.tar.gz";
    options_.cosign_key = "/cosign.pub";
    http_.pages["https://releases.example/daemon/manifest.json"] = Data("manifest.json");
    http_.pages["https://releases.example/daemon/manifest.json.sig"] = Data("manifest.json.sig");
    http_.pages["https://releases.example/daemon.tar.gz"] =
        Data("expanse-daemon_linux_amd64.tar.gz");
  }
  void UseVersion(const std::string& version) {
    options_.daemon_binary = "";
    options_.daemon_version = version;
    options_.releases_url = "https://releases.example";
  }
  Result<ReleaseFiles> Resolve() {
    Machine machine{.fs = fs_, .runner = runner_, .clock = clock_, .http = &http_};
    return ResolveRelease(options_, machine);
  }
  std::string Refusal() {
    const auto files = Resolve();
    EXPECT_FALSE(files.ok());
    return files.ok() ? "" : files.error().message();
  }

  platform::TempDir dir_;
  platform::Fs fs_;
  platform::SystemProcessRunner runner_;
  platform::FakeClock clock_;
  FakeHttp http_;
  InstallOptions options_;
};

TEST_F(ReleaseTest, ASignedArchiveIsUnpackedHardLinksAndAll) {
  const auto files = Resolve();
  ASSERT_TRUE(files.ok()) << files.error().message();
  EXPECT_EQ(files->daemon,
            "\x7f"
            "ELF daemon from the archive");
  EXPECT_EQ(files->hook,
            "\x7f"
            "ELF hook from the archive");
}

TEST_F(ReleaseTest, AChangedByteOfTheArchiveIsRefused) {
  std::string bytes = Data("expanse-daemon_linux_amd64.tar.gz");
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(dir_.path() + "/expanse-daemon_linux_amd64.tar.gz") << bytes;
  EXPECT_NE(Refusal().find("signature"), std::string::npos);
}

TEST_F(ReleaseTest, AnArchiveWithoutSignatureIsRefused) {
  stdfs::remove(dir_.path() + "/expanse-daemon_linux_amd64.tar.gz.sig");
  EXPECT_NE(Refusal().find("no signature"), std::string::npos);
}

TEST_F(ReleaseTest, WithoutAKeyNothingIsBelieved) {
  options_.cosign_key = "";
  EXPECT_NE(Refusal().find("--cosign-key"), std::string::npos);
}

TEST_F(ReleaseTest, AReleaseIsVerifiedManifestFirst) {
  UseVersion("1.5.0");
  const auto files = Resolve();
  ASSERT_TRUE(files.ok()) << files.error().message();
  EXPECT_EQ(files->origin, "https://releases.example/daemon.tar.gz");
}

TEST_F(ReleaseTest, ThePrefixesOfAVersionDoNotMatter) {
  for (const auto* version : {"v1.5.0", "daemon-v1.5.0"}) {
    UseVersion(version);
    EXPECT_TRUE(Resolve().ok()) << version;
  }
}

TEST_F(ReleaseTest, AManifestOfSomebodyElseStopsBeforeAnyArchiveIsFetched) {
  UseVersion("v1.5.0");
  http_.pages["https://releases.example/daemon/manifest.json"] += " ";
  EXPECT_NE(Refusal().find("signature"), std::string::npos);
  EXPECT_EQ(http_.asked.size(), 2u);
}

TEST_F(ReleaseTest, AnArchiveThatTheManifestDoesNotDescribeIsRefused) {
  UseVersion("v1.5.0");
  http_.pages["https://releases.example/daemon.tar.gz"] += "x";
  EXPECT_NE(Refusal().find("checksum"), std::string::npos);
}

TEST_F(ReleaseTest, AnotherVersionThanTheManifestOffersIsNamed) {
  UseVersion("v9.9.9");
  EXPECT_NE(Refusal().find("v1.5.0"), std::string::npos);
}

TEST(CosignSignature, RefusesMalformedSignaturesAndKeys) {
  const std::string key = Data("cosign.pub");
  const std::string archive = Data("expanse-daemon_linux_amd64.tar.gz");
  const std::string good = Data("expanse-daemon_linux_amd64.tar.gz.sig");
  EXPECT_TRUE(platform::VerifyCosignSignature(key, archive, good));
  EXPECT_FALSE(platform::VerifyCosignSignature(key, archive, ""));
  EXPECT_FALSE(platform::VerifyCosignSignature(key, archive, "!!!!"));
  EXPECT_FALSE(platform::VerifyCosignSignature(key, archive, good.substr(4)));
  EXPECT_FALSE(platform::VerifyCosignSignature("not a key", archive, good));
  EXPECT_FALSE(platform::VerifyCosignSignature(key, archive + "x", good));
}

}  // namespace
}  // namespace expanse::install
