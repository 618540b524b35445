// SPDX-License-Identifier: Apache-2.0
// What belongs to a submission: its batch script and the source files that it runs. The CLI and
// the collector call the same function, so that a script which is analysed and the job that was
// submitted from it have the same identity. Nothing is executed; files are read, never written.
//
// Identity (docs/adr/0006-bundle-identity.md): three hashes, each SHA-256 over raw bytes with its
// own domain prefix, and bundle_id = "b1:" + SHA-256 over the three.
//   script_hash  the script without its resource directives (slurm_script/SbatchScript says which)
//   tree_hash    path and content of every source file that was found
//   args_hash    arguments of the script and the names set by --export, sorted
// Paths are relative to the job's working directory when the file lies below it, otherwise
// absolute; the working directory itself is in no hash. The name of the script is in no hash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/fs/fs.h"

namespace expanse::submission {

struct BundleLimits {
  size_t max_script_bytes = 4 << 20;    // sbatch refuses more (SchedulerParameters max_script_size)
  size_t max_file_bytes = 1 << 20;      // of one source file's kept content
  size_t max_total_bytes = 10 << 20;    // of all kept contents
  int64_t max_hashed_bytes = 64 << 20;  // a larger file is identified by its size alone
  size_t max_files = 500;
  size_t max_lookups = 20'000;  // candidates of imports and includes that are looked for
};

/// Whose rights reading happens with, when the process has more (a collector that runs as root must
/// not carry off what the job's owner could not read). Applied to the calling thread only, by
/// setfsuid(2).
struct FileIdentity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

/// A submission as the caller saw it. For equal hashes the callers must agree on `home` (the
/// owner's home directory) and on the arguments; everything else follows from script and files.
struct BundleInput {
  std::string script;       // exact bytes
  std::string script_path;  // absolute, or empty when unknown (a copy from the scheduler)
  /// The job's working directory, when the caller knows it (the scheduler's WorkDir).
  std::string work_dir;
  /// Else the directory where sbatch was or would be called; --chdir of the script applies.
  std::string submit_dir;
  std::vector<std::string> arguments;          // of the script
  std::vector<std::string> environment_names;  // set by --export of the submit line
  std::vector<std::string> extra_files;        // absolute or below the working directory
  std::string home;                            // "~" and $HOME in the script; empty: unresolved
  std::optional<FileIdentity> read_as;
};

struct BundledFile {
  std::string path;
  std::string sha256;  // 64 hexadecimal characters; empty when only the size is known
  int64_t size = 0;
  std::optional<std::string> content;  // raw bytes; absent beyond the limits and for programs
};

struct Bundle {
  std::string bundle_id;
  std::string script_hash;
  std::string tree_hash;
  std::string args_hash;
  std::vector<BundledFile> files;  // script first, then by path
  std::string script_path;         // path of files[0]
  std::vector<std::string> arguments;
  std::string work_dir;                        // as resolved; not part of the identity
  std::map<std::string, std::string> unknown;  // path to reason
};

/// Reads a batch script from a file. Refused with a reason: directory, FIFO, device or socket
/// (never opened), a symlink loop, larger than the limit, empty, NUL bytes.
Result<std::string> ReadScript(const platform::Fs& fs, const std::string& path,
                               const BundleLimits& limits = {});

/// Fails only for a script that no scheduler takes (see ReadScript). A file that cannot be read
/// is a named entry of `unknown`.
Result<Bundle> CollectBundle(const BundleInput& input, const platform::Fs& fs,
                             const BundleLimits& limits = {});

/// Paths and reasons become well-formed UTF-8; contents stay bytes. The run key is left unset.
expanse::data::v1::SourceBundle ToProto(const Bundle& bundle);

}  // namespace expanse::submission
