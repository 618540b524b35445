// SPDX-License-Identifier: Apache-2.0
// Reading the JSON of SLURM's tools, whatever the version of the serializer (openapi v0.0.38 of
// 22.05, data_parser v0.0.40 to v0.0.45, with or without "+complex"). One notion has many shapes:
//
//   number        5, null, {"set": true, "infinite": false, "number": 5}
//   state         "COMPLETED", ["PENDING", "REQUEUED"] (base state and flags)
//   exit status   a wait status; {"status": ["SIGNALED"], "return_code": …, "signal": {"id": …}}
//
// A missing member, null, "not set", another type and a number that no machine can have are all
// "absent".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "base/result.h"
#include "collect/slurm/job_record.h"

namespace expanse::collect::slurm {

/// The whole text as one object. kDataLoss for anything else (cut off, empty, two values). Strings
/// may hold bytes that are not UTF-8: SLURM passes names through.
Result<boost::json::object> ParseToolJson(std::string_view text);

/// Member by a dotted path ("time.start"); null when any part is missing.
const boost::json::value* FindJson(const boost::json::object& object, std::string_view path);
/// A number that is set and finite.
std::optional<int64_t> JsonInt(const boost::json::object& object, std::string_view path);
/// True when the number is said to be infinite (a time limit that there is not).
bool JsonIsInfinite(const boost::json::object& object, std::string_view path);
std::optional<std::string> JsonText(const boost::json::object& object, std::string_view path);
std::optional<bool> JsonBool(const boost::json::object& object, std::string_view path);
const boost::json::array* JsonArray(const boost::json::object& object, std::string_view path);

/// Text that is not one of SLURM's words for "nothing".
std::optional<std::string> JsonWord(const boost::json::object& object, std::string_view path);
/// A count, id or time: greater than zero, below the numbers that SLURM uses for "not set".
std::optional<int64_t> JsonPositive(const boost::json::object& object, std::string_view path);
/// MiB to bytes; 0 is a value.
std::optional<int64_t> JsonMebibytes(const boost::json::object& object, std::string_view path);

/// Both shapes of a state. False: there is none.
bool ReadState(const boost::json::object& object, std::string_view path, std::string* state,
               std::string* state_text);

/// How an exit status is told. `code` is the number before the colon of scontrol's form.
struct JsonExit {
  std::optional<ExitStatus> status;
  std::optional<int64_t> code;
};
/// Both shapes of the controller's exit status, and accounting's from data_parser v0.0.40 on.
/// 22.05's sacct has another object, whose return code is not to be believed: only its signal is
/// read. A status of PENDING is no exit.
JsonExit ReadJsonExit(const boost::json::object& object, std::string_view path);

/// [{"type": "gres", "name": "gpu:a100", "count": 2}, …] as "gres/gpu:a100=2,…"; counts below zero
/// stand for "not set".
Tres ReadJsonTres(const boost::json::array* list);

/// One job of a list; null: the entry has no id or no state.
using ReadJsonJob = std::function<std::optional<JobRecord>(const boost::json::object&)>;
/// Every answer that lists jobs: kDataLoss when it is no whole JSON object, names errors or has no
/// list. An empty list is an empty batch. tool is for messages.
Result<RecordBatch> ParseJobsJson(std::string_view text, const char* tool, const ReadJsonJob& read);

}  // namespace expanse::collect::slurm
