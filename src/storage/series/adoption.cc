// SPDX-License-Identifier: Apache-2.0
#include "storage/series/adoption.h"

#include <algorithm>

#include "base/log.h"
#include "storage/series/byte_io.h"

namespace expanse::storage {
namespace {

constexpr uint8_t kAdoption = 1;
constexpr uint8_t kDropBefore = 2;

std::string AdoptionRecord(const Adoptions::Link& link) {
  std::string out(1, static_cast<char>(kAdoption));
  PutText(out, link.org.str());
  PutText(out, link.from.str());
  PutText(out, link.to.str());
  return out;
}

std::string DropRecord(int64_t time_ms) {
  std::string out(1, static_cast<char>(kDropBefore));
  PutVarint(out, ZigZag(time_ms));
  return out;
}

}  // namespace

Status Adoptions::Check(const OrgId& org, const ExecutionId& from, const ExecutionId& to) const {
  if (org.empty() || from.empty() || to.empty())
    return Error(Code::kInvalidArgument, "adoption needs an organisation and two executions");
  if (from == to || Resolve(org, to) == from)
    return Error(Code::kFailedPrecondition, "execution " + to.str() + " is adopted by " +
                                                from.str() + " already; not the other way round");
  if (const auto known = to_.find({org, from}); known != to_.end() && known->second != to)
    return Error(Code::kFailedPrecondition,
                 "execution " + from.str() + " is adopted by " + known->second.str() + " already");
  return {};
}

void Adoptions::Add(const OrgId& org, const ExecutionId& from, const ExecutionId& to) {
  if (to_.emplace(Place(org, from), to).second) from_.emplace(Place(org, to), from);
}

ExecutionId Adoptions::Resolve(const OrgId& org, const ExecutionId& execution) const {
  ExecutionId at = execution;
  for (auto next = to_.find({org, at}); next != to_.end(); next = to_.find({org, at}))
    at = next->second;
  return at;
}

std::vector<ExecutionId> Adoptions::AllOf(const OrgId& org, const ExecutionId& execution) const {
  std::vector<ExecutionId> out{Resolve(org, execution)};
  for (size_t i = 0; i < out.size(); ++i) {
    const auto [begin, end] = from_.equal_range({org, out[i]});
    for (auto it = begin; it != end; ++it) out.push_back(it->second);
  }
  return out;
}

std::vector<Adoptions::Link> Adoptions::Links() const {
  std::vector<Link> out;
  for (const auto& [place, to] : to_) out.push_back({place.first, place.second, to});
  return out;
}

Result<StoreFacts> StoreFacts::Open(const std::string& path) {
  StoreFacts facts;
  facts.path_ = path;
  const auto read = ReadFrameLog(path, [&](std::string_view payload) { facts.Replay(payload); });
  if (!read.ok() && read.error().code() != Code::kNotFound) return read.error();
  if (read.ok() && (read->lost_frames > 0 || read->skipped_bytes > 0)) {
    facts.damaged_parts_ = std::max<int64_t>(1, read->lost_frames);
    log::Error("storage.series_facts_damaged",
               {{"file", path}, {"lost_records", read->lost_frames}, {"kept", path + ".damaged"}});
    EXPANSE_CHECK_OK(PublishFile(path, path + ".damaged"));
  }
  EXPANSE_CHECK_OK(facts.Rewrite());
  return facts;
}

void StoreFacts::Replay(std::string_view payload) {
  ByteReader reader(payload);
  const uint8_t type = reader.U8();
  if (type == kAdoption) {
    const OrgId org{std::string(reader.Text())};
    const ExecutionId from{std::string(reader.Text())};
    const ExecutionId to{std::string(reader.Text())};
    if (reader.AtEnd() && adoptions_.Check(org, from, to).ok()) adoptions_.Add(org, from, to);
  } else if (type == kDropBefore) {
    const int64_t time_ms = UnZigZag(reader.Varint());
    if (reader.AtEnd()) keep_from_ms_ = std::max(keep_from_ms_, time_ms);
  }
}

Status StoreFacts::Rewrite() {
  const std::string temporary = path_ + ".new";
  EXPANSE_CHECK_OK(RemoveFile(temporary));
  EXPANSE_TRY(log_, FrameLogWriter::Create(temporary));
  log_.Add(DropRecord(keep_from_ms_));
  for (const auto& link : adoptions_.Links()) log_.Add(AdoptionRecord(link));
  EXPANSE_CHECK_OK(log_.Commit());
  return PublishFile(temporary, path_);
}

Status StoreFacts::Write(std::string_view payload) {
  // A log whose sync failed says nothing certain any more: everything goes into a new one.
  if (log_.broken()) EXPANSE_CHECK_OK(Rewrite());
  log_.Add(payload);
  return log_.Commit();
}

Status StoreFacts::Adopt(const OrgId& org, const ExecutionId& from, const ExecutionId& to) {
  EXPANSE_CHECK_OK(adoptions_.Check(org, from, to));
  EXPANSE_CHECK_OK(Write(AdoptionRecord({org, from, to})));
  adoptions_.Add(org, from, to);
  return {};
}

Status StoreFacts::DropBefore(int64_t time_ms) {
  if (time_ms <= keep_from_ms_) return {};
  EXPANSE_CHECK_OK(Write(DropRecord(time_ms)));
  keep_from_ms_ = time_ms;
  return {};
}

}  // namespace expanse::storage
