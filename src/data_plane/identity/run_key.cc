// SPDX-License-Identifier: Apache-2.0
#include "data_plane/identity/run_key.h"

#include <array>

#include "base/strings.h"
#include "platform/crypto/crypto.h"

namespace expanse::data_plane {
namespace {

using common::v1::RunKey;
using common::v1::SourceType;

constexpr size_t kMaxNativeId = 256;
constexpr size_t kMaxSluid = 64;
// Beyond year 2400 a time is garbage, not a time.
constexpr int64_t kMaxTimeMs = 13'569'465'600'000;

bool BadTime(bool has, int64_t ms) { return has && (ms <= 0 || ms > kMaxTimeMs); }

// Kubernetes pods and Nomad allocations carry UUIDs that are never used again.
bool NativeIdIsUnique(SourceType type) {
  return type == common::v1::SOURCE_TYPE_KUBERNETES || type == common::v1::SOURCE_TYPE_NOMAD;
}

std::string Seconds(int64_t ms) { return std::to_string(FloorToSecond(ms) / 1000); }

}  // namespace

int64_t FloorToSecond(int64_t ms) { return ms - ((ms % 1000) + 1000) % 1000; }

Status ValidateKey(const RunKey& key) {
  if (key.source_type() == common::v1::SOURCE_TYPE_UNSPECIFIED)
    return Error(Code::kInvalidArgument, "run key without source_type");
  if (key.native_id().empty() && key.sluid().empty() && key.original_sluid().empty())
    return Error(Code::kInvalidArgument, "run key without native_id and without SLUID");
  if (key.native_id().size() > kMaxNativeId)
    return Error(Code::kInvalidArgument, "run key: native_id is longer than 256 bytes");
  if (key.sluid().size() > kMaxSluid || key.original_sluid().size() > kMaxSluid)
    return Error(Code::kInvalidArgument, "run key: SLUID is longer than 64 bytes");
  for (const std::string* text : {&key.native_id(), &key.sluid(), &key.original_sluid()})
    if (text->find('\0') != std::string::npos)
      return Error(Code::kInvalidArgument, "run key: NUL byte in an id");
  if (BadTime(key.has_submit_time_ms(), key.submit_time_ms()) ||
      BadTime(key.has_start_time_ms(), key.start_time_ms()) ||
      BadTime(key.has_observed_time_ms(), key.observed_time_ms()))
    return Error(Code::kInvalidArgument, "run key: a time that is no unix time in milliseconds");
  if (key.has_restart_count() && key.restart_count() < 0)
    return Error(Code::kInvalidArgument, "run key: negative restart_count");
  return {};
}

std::vector<Alias> StrongAliases(const RunKey& key) {
  std::vector<Alias> out;
  const std::string& id = key.native_id();
  if (NativeIdIsUnique(key.source_type())) {
    if (!id.empty()) out.push_back({"uid", std::to_string(key.source_type()) + ":" + id});
    return out;
  }
  const std::string scope = std::to_string(key.source_type()) + ":" + id + "@";
  if (!id.empty() && key.has_submit_time_ms() && key.has_restart_count())
    out.push_back(
        {"nat", scope + Seconds(key.submit_time_ms()) + "#" + std::to_string(key.restart_count())});
  // The original first: it is the one that all segments of a resized run share.
  if (!key.original_sluid().empty()) out.push_back({"sluid", key.original_sluid()});
  if (!key.sluid().empty() && key.sluid() != key.original_sluid())
    out.push_back({"sluid", key.sluid()});
  if (!id.empty() && key.has_db_index() && key.db_index() > 0 && key.has_submit_time_ms())
    out.push_back(
        {"db", scope + Seconds(key.submit_time_ms()) + "/" + std::to_string(key.db_index())});
  if (!id.empty() && key.has_start_time_ms())
    out.push_back({"start", scope + Seconds(key.start_time_ms())});
  return out;
}

Alias WeakAlias(const RunKey& key, int64_t observed_ms, std::string_view origin,
                std::string_view node, std::string_view step_id) {
  std::string value = std::to_string(key.source_type()) + ":" + key.native_id() + "@";
  if (key.has_submit_time_ms()) value += Seconds(key.submit_time_ms());
  value += "#";
  if (key.has_restart_count()) value += std::to_string(key.restart_count());
  value += "~" + std::to_string(observed_ms) + "/" + std::string(origin) + "/" +
           std::string(step_id) + "/" + std::string(node);
  return {"weak", std::move(value)};
}

std::string DerivedId(const OrgId& org, const ComputeId& compute, const Alias& alias) {
  std::string seed = "expanse.fragment";
  for (const std::string* part : {&org.str(), &compute.str(), &alias.kind, &alias.value}) {
    seed.push_back('\0');
    seed += *part;
  }
  std::string bytes = platform::Sha256(seed).substr(0, 16);
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x80);  // version 8: custom
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);  // variant of RFC 9562
  const std::string hex = HexEncode(bytes);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

ExecutionId SightSeriesOwner(const OrgId& org, const ComputeId& compute, SourceType source_type,
                             std::string_view native_id) {
  return ExecutionId(DerivedId(
      org, compute, {"sight", std::to_string(source_type) + ":" + std::string(native_id)}));
}

std::string_view OriginName(data::v1::FactOrigin origin) {
  switch (origin) {
    case data::v1::FACT_ORIGIN_HOOK_PROLOG:
      return "prolog";
    case data::v1::FACT_ORIGIN_HOOK_EPILOG:
      return "epilog";
    case data::v1::FACT_ORIGIN_HOOK_TASK_PROLOG:
      return "task_prolog";
    case data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG:
      return "task_epilog";
    case data::v1::FACT_ORIGIN_SQUEUE:
      return "squeue";
    case data::v1::FACT_ORIGIN_SCONTROL:
      return "scontrol";
    case data::v1::FACT_ORIGIN_SACCT:
      return "sacct";
    case data::v1::FACT_ORIGIN_CGROUP:
      return "cgroup";
    case data::v1::FACT_ORIGIN_SUBMISSION:
      return "submission";
    default:
      return "";
  }
}

}  // namespace expanse::data_plane
