// SPDX-License-Identifier: Apache-2.0
// For tests: a private certificate authority below a directory, made by openssl(1).
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "platform/fs/fs.h"
#include "platform/process/process.h"

namespace expanse::platform {

class TestAuthority {
 public:
  /// The authority's own certificate is <directory>/<name>.pem.
  explicit TestAuthority(std::string directory, std::string name = "ca")
      : base_(directory + "/" + std::move(name)), directory_(std::move(directory)) {
    Openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", base_ + ".key", "-out", base_ + ".pem", "-days", "2", "-subj",
             "/CN=Test Authority"});
  }

  std::string certificate() const { return base_ + ".pem"; }

  /// <directory>/<name>.pem and .key (0600) for the names ("DNS:localhost,IP:127.0.0.1").
  /// days: of life from now; negative: expired.
  void Issue(const std::string& name, const std::string& alternative_names, int days = 1) const {
    const std::string file = directory_ + "/" + name;
    Openssl({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
             file + ".key", "-out", file + ".csr", "-subj", "/CN=" + name});
    ASSERT_TRUE(
        Fs().WriteAtomic(file + ".ext", "subjectAltName=" + alternative_names + "\n", 0644).ok());
    // -days may be negative in OpenSSL 3.0 (x509_req), which gives a certificate of the past.
    Openssl({"x509", "-req", "-in", file + ".csr", "-CA", base_ + ".pem", "-CAkey", base_ + ".key",
             "-CAcreateserial", "-days", std::to_string(days), "-extfile", file + ".ext", "-out",
             file + ".pem"});
  }

 private:
  static void Openssl(std::vector<std::string> words) {
    words.insert(words.begin(), "openssl");
    ProcessSpec spec;
    spec.argv = std::move(words);
    SystemProcessRunner runner;
    const auto made = runner.Run(spec);
    ASSERT_TRUE(made.ok()) << made.error().message();
    ASSERT_EQ(made->exit_code, 0) << made->err;
  }

  const std::string base_;
  const std::string directory_;
};

}  // namespace expanse::platform
