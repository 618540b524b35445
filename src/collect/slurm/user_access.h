// SPDX-License-Identifier: Apache-2.0
// May this user read that file? The collector runs as the SLURM user or root and follows paths that
// users choose (job output, sources named in a script): without this check a user could have it
// read files for them that they may not read themselves (slurmdbd.conf, another user's home).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "platform/fs/fs.h"
#include "submission/bundle/scoped_identity.h"

namespace expanse::collect::slurm {

struct UserAccess {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> gids;
  std::string home;

  /// By name, with all groups of the user database. kNotFound: no such user here.
  static Result<UserAccess> Of(const std::string& user);
  /// By permission bits of the file and of every directory above it. path is canonical (no
  /// symlinks). ACLs that give more are not looked at: the answer is then no.
  bool MayRead(const platform::Fs& fs, const std::string& path) const;
  /// The user's rights for this thread, while the result lives. Nothing when the process has no
  /// right to take them: then MayRead is what protects.
  std::optional<submission::ScopedIdentity> Assume() const;

 private:
  bool Has(const platform::FileInfo& info, mode_t bit) const;
};

/// The last max_bytes of a file that a user chose, opened once: what is checked is what is read.
Result<platform::Fs::Tail> ReadTailAs(const UserAccess& user, const platform::Fs& fs,
                                      const std::string& path, size_t max_bytes);

}  // namespace expanse::collect::slurm
