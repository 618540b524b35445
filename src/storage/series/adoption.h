// SPDX-License-Identifier: Apache-2.0
// Small durable facts of a series store: which execution was adopted by which, and from when on
// samples are kept. One framed log, rewritten when the store is opened.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "storage/series/frame_log.h"

namespace expanse::storage {

/// Which execution the samples of another belong to. Not durable itself.
class Adoptions {
 public:
  /// kFailedPrecondition when `to` is, through others, adopted by `from`.
  Status Check(const OrgId& org, const ExecutionId& from, const ExecutionId& to) const;
  void Add(const OrgId& org, const ExecutionId& from, const ExecutionId& to);
  /// The execution at the end of the chain; the same one when it was not adopted.
  ExecutionId Resolve(const OrgId& org, const ExecutionId& execution) const;
  /// The execution that Resolve answers, and every one that ends there.
  std::vector<ExecutionId> AllOf(const OrgId& org, const ExecutionId& execution) const;
  bool empty() const { return to_.empty(); }

  struct Link {
    OrgId org;
    ExecutionId from;
    ExecutionId to;
  };
  std::vector<Link> Links() const;

 private:
  using Place = std::pair<OrgId, ExecutionId>;
  std::map<Place, ExecutionId> to_;
  std::multimap<Place, ExecutionId> from_;
};

/// The log file. Not for concurrent use.
class StoreFacts {
 public:
  /// Reads what is there and starts a new file. What a damaged file lost is reported, and the file
  /// kept beside as "<path>.damaged".
  static Result<StoreFacts> Open(const std::string& path);

  Status Adopt(const OrgId& org, const ExecutionId& from, const ExecutionId& to);
  Status DropBefore(int64_t time_ms);

  const Adoptions& adoptions() const { return adoptions_; }
  int64_t keep_from_ms() const { return keep_from_ms_; }
  int64_t damaged_parts() const { return damaged_parts_; }

 private:
  StoreFacts() = default;
  void Replay(std::string_view payload);
  Status Rewrite();
  Status Write(std::string_view payload);

  std::string path_;
  FrameLogWriter log_;
  Adoptions adoptions_;
  int64_t keep_from_ms_ = 0;
  int64_t damaged_parts_ = 0;
};

}  // namespace expanse::storage
