// SPDX-License-Identifier: Apache-2.0
// Delivers every node's part of the shared spool (<shared-prefix>/spool/<node>/). Samplers hold no
// credential and know only a part of a run's key; what they wrote is completed from what the
// scheduler said and sent under the node's own source and sequences.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/core/spool.h"
#include "collect/uplink/uplink.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"

namespace expanse::collect::uplink {

struct AggregatorOptions {
  std::string spool_directory;  // <shared-prefix>/spool
  /// A record whose run is not known yet waits this long for the reconciler; then it goes with the
  /// key it has, and the data plane joins it later.
  Millis hold{20'000};
  Millis log_every{60'000};
  Millis silent_after{300'000};  // a node that wrote nothing for so long is named
};

class Aggregator {
 public:
  /// Fills a partial key; false: the run is not known. origin: of the facts that the key stands in;
  /// unspecified for samples.
  using Complete =
      std::function<bool(common::v1::RunKey*, int64_t observed_ms, data::v1::FactOrigin origin)>;

  Aggregator(AggregatorOptions options, Uplink& uplink, Complete complete,
             const platform::Clock& clock, const platform::Fs& fs);

  struct PassReport {
    uint64_t delivered = 0;
    int nodes = 0;
    bool drained = false;
    bool held = false;  // runs are awaited: the reconciler should look now
  };
  /// One pass over all nodes. A spool that cannot be read is named and does not stop the others.
  PassReport Pass();
  std::vector<data::v1::CollectorHealth> health() const;

 private:
  struct Node {
    std::unique_ptr<SpoolReader> reader;
    std::string problem;
    int64_t problem_since_ms = 0;
    int64_t last_record_ms = 0;
    uint64_t lost = 0;
    std::vector<data::v1::CollectorHealth> told;  // by the node's own sampler
  };
  Passage Inspect(data::v1::Record* record, Node* node) const;
  bool CompleteKey(common::v1::RunKey* key, int64_t observed_ms,
                   data::v1::FactOrigin origin = data::v1::FACT_ORIGIN_UNSPECIFIED) const;
  void FindNodes();
  void SetProblem(Node* node, const std::string& problem) const;

  AggregatorOptions options_;
  Uplink& uplink_;
  Complete complete_;
  const platform::Clock& clock_;
  const platform::Fs& fs_;
  std::map<std::string, Node> nodes_;
  std::string directory_problem_;
  MonoTime last_log_{};
  bool logged_ = false;
  uint64_t delivered_since_log_ = 0;
  mutable std::mutex mutex_;  // health_
  std::vector<data::v1::CollectorHealth> health_;
};

}  // namespace expanse::collect::uplink
