// SPDX-License-Identifier: Apache-2.0
// From the series of steps and nodes to the series of a run. Pure functions on buckets.
//
// What the total of a run is:
//   cpu, processes   sum over all steps and nodes, at each moment
//   memory…          sum over the steps of a node at each moment, then the worst node: a limit is
//                    enforced by node, and memory_peak_enforced of an execution is the worst node's
//   counters         sum of the rates
// Where a series of the whole job exists on a node (no step), it is taken and the steps are not:
// they are part of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "expanse/data/v1/data.pb.h"
#include "storage/series/series_store.h"

namespace expanse::data_plane {

enum class AcrossNodes { kSum, kWorst };

/// kWorst for memory metrics, kSum for the rest.
AcrossNodes AcrossNodesOf(const std::string& metric);

/// Buckets of one series of the run by several owners (the run was known under several names):
/// joined by time. Both are ascending.
std::vector<storage::Bucket> JoinOwners(const std::vector<storage::Bucket>& a,
                                        const std::vector<storage::Bucket>& b);

/// Drops the steps of nodes that have a series of the whole job.
void PreferWholeJob(std::vector<storage::BucketSeries>* series);

/// The total at each base bucket. A series counts with its last value over one empty bucket, so
/// that samplers out of step do not make dips.
std::vector<storage::Bucket> Total(const std::vector<storage::BucketSeries>& series,
                                   AcrossNodes across_nodes, int64_t base_ms);

/// Base buckets into buckets of the interval.
std::vector<storage::Bucket> Rebucket(const std::vector<storage::Bucket>& base, int64_t interval_ms,
                                      storage::Aggregation aggregation);

/// Per second, from buckets of last values; a fall is a restart of the counter.
std::vector<storage::Bucket> Rate(const std::vector<storage::Bucket>& last, int64_t interval_ms);

/// A width that divides the interval and holds a sample of each series: whole seconds.
int64_t BaseInterval(int64_t sampling_period_ms, int64_t interval_ms);

/// A round width with about 300 buckets in the window.
int64_t ChooseInterval(int64_t window_ms);

}  // namespace expanse::data_plane
