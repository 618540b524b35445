// SPDX-License-Identifier: Apache-2.0
#include "storage/blob/blob_store.h"

#include <algorithm>

#include "base/strings.h"
#include "storage/blob/fs/fs_blob_store.h"

namespace expanse::storage {
namespace {

bool IsKind(std::string_view kind) {
  return !kind.empty() && kind.size() <= 32 && std::all_of(kind.begin(), kind.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool IsSha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// An upper-case UUID would be a second directory of the same organisation.
bool IsCanonicalUuid(std::string_view text) {
  return IsUuid(text) &&
         std::none_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

Status BlobKey::Validate() const {
  if (IsCanonicalUuid(org.str()) && IsKind(kind) && IsSha256(sha256)) return {};
  return Error(Code::kInvalidArgument, "not a blob key (organisation/kind/sha256): " +
                                           EscapeForTerminal(ToString().substr(0, 200)));
}

Result<BlobKey> BlobKey::Parse(std::string_view text) {
  const auto parts = Split(text.substr(0, 256), '/');
  if (parts.size() != 3 || text.size() > 256)
    return Error(Code::kInvalidArgument, "not a blob key (organisation/kind/sha256): " +
                                             EscapeForTerminal(text.substr(0, 200)));
  BlobKey key{OrgId(std::string(parts[0])), std::string(parts[1]), std::string(parts[2])};
  EXPANSE_CHECK_OK(key.Validate());
  return key;
}

Result<std::unique_ptr<BlobStore>> BlobStore::Open(std::string_view url) {
  constexpr std::string_view kFile = "file:";
  if (url.starts_with(kFile) && url.substr(kFile.size()).starts_with('/'))
    return OpenFsBlobStore(std::string(url.substr(kFile.size())));
  return Error(Code::kInvalidArgument, "unknown blob store URL scheme '" +
                                           std::string(url.substr(0, url.find(':'))) +
                                           "'; use file:/absolute/directory");
}

}  // namespace expanse::storage
