// SPDX-License-Identifier: Apache-2.0
// Folding of facts of one origin: commutative, associative and idempotent, so that the order of
// arrival, resent facts and facts split into parts change nothing.
#pragma once

#include <cstdint>
#include <string>

#include "expanse/data/v1/ingest.pb.h"
#include "expanse/data/v1/stored.pb.h"

namespace expanse::data_plane {

/// True of a count of CPUs or nodes that is 0: no run has 0 of them. A source that did not know the
/// count sent it, and it is no sight of the field.
bool IsNoCount(const google::protobuf::Message& message,
               const google::protobuf::FieldDescriptor* field);

/// Folds one more sight into the row. Of each field the newest value stays; of `requested` the
/// oldest (a resize does not change what was asked for); of peaks the better one (BetterPeak).
/// Values seen at one time that differ: the larger by bytes, so that the choice has no order.
void FoldFacts(const data::v1::ExecutionFacts& facts, int64_t observed_ms,
               data::v1::StoredFacts* row);

/// Folds a whole row into another one of the same origin, node and step.
void FoldStored(const data::v1::StoredFacts& from, data::v1::StoredFacts* into);

/// When the field of Execution (by number) was observed; 0 when it was not.
int64_t ObservedAt(const data::v1::StoredFacts& row, int field_number);

/// The same bytes for the same message, maps included.
std::string DeterministicBytes(const google::protobuf::Message& message);

}  // namespace expanse::data_plane
