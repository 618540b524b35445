// SPDX-License-Identifier: Apache-2.0
// Sends spools to the data plane: batches in order with the spool's own source id and sequences,
// acknowledged in the spool only after the data plane acknowledged them. A batch that was sent
// before a crash and not acknowledged in the spool is sent again; the data plane knows it by
// (source, sequence), so that each record counts exactly once. A record is given up only when the
// data plane's answer names it as refused; a call that fails never gives one up.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "collect/core/spool.h"
#include "expanse/data/v1/ingest.rpc.h"
#include "platform/clock/clock.h"
#include "rpc/channel.h"

namespace expanse::collect::uplink {

struct UplinkOptions {
  size_t batch_records = 1000;
  size_t batch_bytes = 4 << 20;
  Millis first_backoff{1'000};
  Millis most_backoff{60'000};
  Millis call_timeout{60'000};
};

/// What happens to a record on its way. kHold: it and what follows it in its spool wait for a later
/// pass (the run it belongs to is not known yet).
enum class Passage { kSend, kHold };
using Inspector = std::function<Passage(data::v1::Record*)>;

struct DrainReport {
  uint64_t delivered = 0;
  bool drained = false;  // nothing more waits in the spool
  bool held = false;
};

struct UplinkHealth {
  std::string status = "ok";  // "ok", "degraded"
  std::string reason;
  int64_t since_ms = 0;
  uint64_t delivered = 0;
  uint64_t rejected = 0;  // malformed by the data plane's judgement; not sent again
  uint64_t gaps = 0;      // records that were dropped before they could be sent
};

/// Whether a call failed for a reason that every source would meet: nobody answers, the setup of
/// this machine is wrong, the credential or the URL is.
bool IsOfEverySource(Code code);

/// One data plane. Calls come from one thread; health() from any.
class Uplink {
 public:
  /// channel outlives the uplink.
  Uplink(rpc::Channel& channel, Secret credential, const platform::Clock& clock,
         UplinkOptions options = {});

  /// Sends what waits in one spool. kUnavailable at once while a back-off runs after a failure that
  /// every spool would meet. What only this spool meets (the data plane refuses its batch, its
  /// cursor cannot be written) is returned with its own code, here and until its own back-off ends.
  Result<DrainReport> Drain(SpoolReader& reader, const Inspector& inspect);
  /// From any thread: from now on calls begin only within this time and none takes longer; a drain
  /// in progress ends with what it has delivered. A later call moves the limit.
  void StopWithin(Millis limit);
  UplinkHealth health() const;

 private:
  Result<data::v1::PushResponse> Push(const SpoolBatch& batch);
  Millis Remaining() const;  // until the stop; without one for ever
  Status SendBatch(SpoolReader& reader, const SpoolBatch& batch, DrainReport* report);
  Status SendHalves(SpoolReader& reader, const SpoolBatch& batch, DrainReport* report);
  void NoteResponse(const std::string& source_id, const data::v1::PushResponse& response,
                    uint64_t accepted);
  void NoteFailure(const Error& error);
  /// A source that does not go on, for a reason of its own.
  Error NoteStuck(const SpoolBatch& batch, const Error& error);
  /// Its error while the source's back-off runs.
  Status WaitsStill(const std::string& source_id) const;

  struct Backoff {
    Millis wait{0};
    Millis Grow(const UplinkOptions& options);
  };
  struct Stuck {
    Backoff backoff;
    MonoTime not_before{};
    int64_t since_ms = 0;
    Error error{Code::kUnknown, ""};
  };

  data::v1::IngestServiceClient client_;
  Secret credential_;
  const platform::Clock& clock_;
  UplinkOptions options_;
  MonoTime not_before_{};
  Backoff backoff_;
  mutable std::mutex mutex_;  // those below
  std::optional<MonoTime> stop_at_;
  UplinkHealth health_;
  std::map<std::string, Stuck> stuck_;  // by source id
};

}  // namespace expanse::collect::uplink
