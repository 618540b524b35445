// SPDX-License-Identifier: Apache-2.0
// ~/.expanse/credentials.json (0600): the personal API key, the control plane it belongs to, and
// the cached session. Kept apart from config.json, which is a daemon's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "expanse/control/v1/control.pb.h"
#include "platform/fs/file_lock.h"
#include "platform/fs/fs.h"

namespace expanse::cli {

struct Credentials {
  std::string control_plane_url;
  Secret api_key;
  std::string organisation_id;  // asked for at login or refresh; empty: the key's own
  /// The answer of the last MintSession and the URL that gave it; empty URL: none cached.
  control::v1::MintSessionResponse session;
  std::string session_url;
};

class CredentialStore {
 public:
  /// home is absolute; the files lie in home/.expanse.
  CredentialStore(const platform::Fs& fs, const std::string& home);

  /// Nothing when nobody signed in; an error for a file that is not ours or cannot be read.
  Result<std::optional<Credentials>> Load() const;
  /// Creates the directory (0700) and replaces the file (0600) atomically.
  Status Save(const Credentials& credentials) const;

  /// Permission bits of the file when others than its owner can read it, made 0600 on the way.
  std::optional<mode_t> Tighten() const;

  const std::string& path() const { return path_; }

  /// Held while a token is minted, so that commands at the same time mint one. Null where the
  /// file system has no locks or the home cannot be written: each then mints its own.
  std::unique_ptr<platform::FileLock> Lock() const;

 private:
  const platform::Fs& fs_;
  std::string directory_;
  std::string path_;
};

}  // namespace expanse::cli
