// SPDX-License-Identifier: Apache-2.0
// A tree of directories that is looked at every second: a directory is listed again only when its
// inode or its number of links changed (in a cgroup file system that number is its
// subdirectories' plus two).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "platform/fs/fs.h"

namespace expanse::collect::host {

struct CgroupDirectory {
  std::string path;
  uint64_t inode = 0;
  uint64_t links = 0;
  std::map<std::string, CgroupDirectory, std::less<>> children;
};

/// Whether a name is a directory of that level.
using AcceptName = bool (*)(std::string_view name);

/// Brings the tree up to date, one level for each of levels; true when something came or went.
/// Directories of the last level are not looked into. force: list everything.
bool RefreshTree(const platform::Fs& fs, std::span<const AcceptName> levels, bool force,
                 CgroupDirectory* directory);

}  // namespace expanse::collect::host
