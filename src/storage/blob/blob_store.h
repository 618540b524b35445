// SPDX-License-Identifier: Apache-2.0
// Content-addressed bytes (source files, log tails, artefacts), never shared between organisations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace expanse::storage {

/// "<org>/<kind>/<sha256>": the name of bytes by their own hash.
struct BlobKey {
  OrgId org;           // canonical UUID
  std::string kind;    // 1 to 32 of a-z, 0-9, '-', '_': "source", "log-tail", "artefact"
  std::string sha256;  // 64 lower-case hexadecimal digits, of exactly the stored bytes

  std::string ToString() const { return org.str() + "/" + kind + "/" + sha256; }
  /// kInvalidArgument on anything that is not exactly this form ("..", upper case, extra parts).
  static Result<BlobKey> Parse(std::string_view text);
  Status Validate() const;
  bool operator==(const BlobKey&) const = default;
};

struct BlobInfo {
  BlobKey key;
  int64_t size = 0;         // bytes of the content
  int64_t stored_size = 0;  // bytes on disk
  int64_t modified_ms = 0;
};

struct BlobPage {
  std::vector<BlobInfo> blobs;  // in the order of their sha256
  std::string next;             // pass as `after`; empty: no more
};

/// Safe for any number of threads and processes.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  /// "file:/absolute/directory".
  static Result<std::unique_ptr<BlobStore>> Open(std::string_view url);

  /// Durable on return. Storing the same bytes again is ok and changes nothing.
  virtual Result<BlobKey> Put(const OrgId& org, std::string_view kind, std::string_view bytes) = 0;
  /// kNotFound; kDataLoss naming the key when the stored bytes no longer have that hash;
  /// kResourceExhausted when the content is larger than max_bytes.
  virtual Result<std::string> Get(const BlobKey& key, int64_t max_bytes = int64_t{64} << 20) = 0;
  /// kNotFound when absent. Does not read the content.
  virtual Result<BlobInfo> Head(const BlobKey& key) = 0;
  /// Ok when it is not there.
  virtual Status Delete(const BlobKey& key) = 0;
  /// Blobs of one kind after a sha256, at most `limit`.
  virtual Result<BlobPage> List(const OrgId& org, std::string_view kind, std::string_view after,
                                size_t limit) = 0;
};

}  // namespace expanse::storage
