// SPDX-License-Identifier: Apache-2.0
#include "collect/host/cgroup_tree.h"

#include <algorithm>

#include <sys/stat.h>

namespace expanse::collect::host {
namespace {

bool ListChildren(const platform::Fs& fs, AcceptName accept, CgroupDirectory* directory) {
  const auto names = fs.List(directory->path);
  if (!names.ok()) {
    const bool changed = !directory->children.empty();
    directory->children.clear();
    directory->links = 0;
    return changed;
  }
  bool changed = std::erase_if(directory->children, [&](const auto& child) {
                   return !std::binary_search(names->begin(), names->end(), child.first);
                 }) > 0;
  for (const std::string& name : *names) {
    if (!accept(name)) continue;
    const auto [child, added] = directory->children.try_emplace(name);
    if (!added) continue;
    child->second.path = directory->path + "/" + name;
    changed = true;
  }
  return changed;
}

}  // namespace

bool RefreshTree(const platform::Fs& fs, std::span<const AcceptName> levels, bool force,
                 CgroupDirectory* directory) {
  struct stat st {};
  if (::stat(fs.Host(directory->path).c_str(), &st) != 0) st = {};
  // Fewer than two links: a file system that does not count subdirectories (overlay, btrfs).
  bool changed = false;
  if (force || st.st_nlink < 2 || st.st_ino != directory->inode ||
      st.st_nlink != directory->links) {
    directory->inode = st.st_ino;
    directory->links = st.st_nlink;
    changed = ListChildren(fs, levels.front(), directory);
  }
  if (levels.size() > 1)
    for (auto& [name, child] : directory->children)
      changed = RefreshTree(fs, levels.subspan(1), force, &child) || changed;
  return changed;
}

}  // namespace expanse::collect::host
