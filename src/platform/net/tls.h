// SPDX-License-Identifier: Apache-2.0
// Certificate and private key of a listener, which can be renewed while it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace expanse::platform {

/// Thread-safe. TLS 1.2 is the least version.
class TlsIdentity {
 public:
  /// PEM files: the certificate with its intermediates behind it, and its key. kFailedPrecondition:
  /// the key belongs to another certificate, or every account of the machine may read it.
  static Result<std::unique_ptr<TlsIdentity>> Load(std::string certificate_file,
                                                   std::string key_file);

  /// For new connections; those that exist keep what they began with.
  std::shared_ptr<ssl_ctx_st> context() const;

  /// Reads both files again. On an error the old pair stays in use: unreadable, not a pair (a
  /// renewal is half done), or expired.
  Status Reload();
  /// Reload when a file is another than at the last attempt, or when that attempt failed. The
  /// outcome is logged when it differs from the one before.
  void ReloadIfChanged();

  /// Of the pair in use, seconds since the epoch.
  int64_t not_after_s() const;
  uint64_t reloads() const;
  uint64_t failed_reloads() const;

 private:
  struct Loaded {
    std::shared_ptr<ssl_ctx_st> context;
    int64_t not_after_s = 0;
  };
  TlsIdentity(std::string certificate_file, std::string key_file)
      : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}
  Result<Loaded> Read() const;
  Status ReloadLocked();
  /// Inode, size and time of both files; changes when either is replaced or written.
  std::string Signature() const;

  const std::string certificate_file_;
  const std::string key_file_;
  std::mutex reload_mutex_;  // one reload at a time; before mutex_
  std::string signature_;
  std::string last_failure_;
  mutable std::mutex mutex_;  // the rest
  Loaded loaded_;
  uint64_t reloads_ = 0;
  uint64_t failed_reloads_ = 0;
};

}  // namespace expanse::platform
