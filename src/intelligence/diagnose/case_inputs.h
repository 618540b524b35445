// SPDX-License-Identifier: Apache-2.0
// Everything a diagnosis may look at, as plain values. The service collects it from the data plane;
// tests and the case program fill it from files. The engine itself does no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "expanse/common/v1/execution.pb.h"
#include "expanse/data/v1/data.pb.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::intelligence::diagnose {

enum class TextKind {
  kProgram = 1,    // written by the job: standard output and error
  kKernel = 2,     // kernel messages of the run's nodes
  kScheduler = 4,  // events and messages of the scheduler or orchestrator
};

/// A stream of lines, or the tail of one. Bytes from outside: any encoding, any length.
struct TextSource {
  std::string name;  // "stderr", "stdout", "kernel", "events"
  TextKind kind = TextKind::kProgram;
  std::string path;
  std::string content;
  int64_t offset = 0;  // of content[0] in the file
};

/// One thing that a source reported and that has no field in Execution: a counter, a condition of
/// a pod, a limit. Values are text as the source printed them.
struct Observation {
  std::string source;  // "scheduler", "cgroup", "kernel"
  std::string key;     // "memory.events.oom_kill"
  std::string value;
};

struct CaseInputs {
  common::v1::Execution execution;
  std::string compute_name;
  std::vector<TextSource> texts;
  std::vector<Observation> observations;
  std::optional<data::v1::SourceBundle> bundle;     // captured at submission
  std::vector<data::v1::BundleFile> added_sources;  // given with the question
  std::vector<data::v1::RecordedRun> similar;       // without this run, newest first
  std::vector<data::v1::MetricSeries> series;
  std::vector<data::v1::NodeFacts> nodes;  // of this run, as they are now
  /// What could not be looked at: input ("similar", "logs", "bundle", "metrics", "nodes") to
  /// reason.
  std::map<std::string, std::string> not_seeable;
};

}  // namespace expanse::intelligence::diagnose
