// SPDX-License-Identifier: Apache-2.0
// Random truncations and bit flips of files, the same in every run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "platform/fs/fs.h"

namespace expanse::faults {

class Damager {
 public:
  explicit Damager(uint64_t seed) : random_(seed) {}

  /// One flipped bit (three times of four) or a truncation of the file; what was done, for
  /// messages.
  std::string Damage(const std::string& path) {
    std::string bytes = platform::Fs().Read(path, size_t{1} << 30).value();
    std::string what;
    is_cut_ = random_() % 4 == 0;
    if (is_cut_) {
      at_ = random_() % bytes.size();
      bytes.resize(at_);
      what = "cut to " + std::to_string(at_);
    } else {
      const size_t bit = random_() % (bytes.size() * 8);
      at_ = bit / 8;
      bytes[at_] = static_cast<char>(bytes[at_] ^ (1 << (bit % 8)));
      what = "flipped bit " + std::to_string(bit);
    }
    // Not in place: the file may be a hard link.
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
    return path + ": " + what;
  }
  bool is_cut() const { return is_cut_; }
  size_t at() const { return at_; }

  size_t Pick(size_t below) { return random_() % below; }

 private:
  std::mt19937_64 random_;
  bool is_cut_ = false;
  size_t at_ = 0;
};

/// Regular files below a directory, sorted.
inline std::vector<std::string> FilesBelow(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file() && entry.file_size() > 0) out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// `to` becomes a copy of `from`.
inline void CopyTree(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

}  // namespace expanse::faults
