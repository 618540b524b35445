// SPDX-License-Identifier: Apache-2.0
#include "ingest_wire.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace expanse::bench {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels LabelsOf(const SeriesName& name) {
  Labels labels{{"compute", "0190a000-0000-7000-8000-0000000000c1"}, {"job", name.job}};
  if (name.gpu_index >= 0)
    labels.insert(labels.begin() + 1, {"gpu", std::to_string(name.gpu_index)});
  labels.emplace_back("node", name.node);
  labels.emplace_back("source", name.source);
  labels.emplace_back("step", name.step);
  return labels;  // sorted by name
}

common::v1::RunKey KeyOf(const SeriesName& name, int64_t submit_ms) {
  common::v1::RunKey key;
  key.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  key.set_native_id(name.job);
  key.set_submit_time_ms(submit_ms);
  key.set_restart_count(0);
  return key;
}

void PutVarUint(std::string& out, uint64_t value) {
  for (; value > 0x7f; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7f));
  out += static_cast<char>(value);
}
void PutVarInt(std::string& out, int64_t value) {
  PutVarUint(out, (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}
template <typename T>
void PutBigEndian(std::string& out, T value) {
  for (int shift = static_cast<int>(sizeof(T) * 8) - 8; shift >= 0; shift -= 8)
    out += static_cast<char>(value >> shift);
}
void PutBytes(std::string& out, const std::string& bytes) {
  PutVarUint(out, bytes.size());
  out += bytes;
}

// Encodings of number columns, by VictoriaMetrics' numbers for them (1.79; compared with the bytes
// of /api/v1/export/native).
constexpr char kDeltaConst = 2;
constexpr char kConst = 3;
constexpr char kNearestDelta = 6;

char PutColumn(std::string& out, const std::vector<int64_t>& column) {
  bool is_const = true;
  bool is_delta_const = column.size() > 1;
  for (size_t i = 1; i < column.size(); ++i) {
    is_const = is_const && column[i] == column[0];
    is_delta_const = is_delta_const && column[i] - column[i - 1] == column[1] - column[0];
  }
  if (is_const) return kConst;
  if (is_delta_const) {
    PutVarInt(out, column[1] - column[0]);
    return kDeltaConst;
  }
  for (size_t i = 1; i < column.size(); ++i) PutVarInt(out, column[i] - column[i - 1]);
  return kNearestDelta;
}

// Integers k with value = k / 10^digits.
std::vector<int64_t> AsDecimals(const std::vector<double>& values, int* digits) {
  std::vector<int64_t> out(values.size());
  double power = 1;
  for (*digits = 0;; ++*digits, power *= 10) {
    bool is_exact = true;
    for (size_t i = 0; i < values.size(); ++i) {
      out[i] = std::llround(values[i] * power);
      is_exact = is_exact && static_cast<double>(out[i]) / power == values[i];
    }
    if (is_exact || *digits == 6) return out;
  }
}

// protobuf wire format of Prometheus' remote write.
void PutField(std::string& out, int number, const std::string& bytes) {
  PutVarUint(out, static_cast<uint64_t>(number) << 3 | 2);
  PutBytes(out, bytes);
}

// Snappy's block form without compression: a length and literals. The server has least to do.
std::string SnappyLiterals(const std::string& bytes) {
  std::string out;
  PutVarUint(out, bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const size_t n = std::min<size_t>(bytes.size() - at, 65536);
    out += static_cast<char>(61 << 2);  // a literal with two bytes of length
    out += static_cast<char>((n - 1) & 0xff);
    out += static_cast<char>((n - 1) >> 8);
    out.append(bytes, at, n);
    at += n;
  }
  return out;
}

std::string RenderName(VictoriaForm form, const SeriesName& name) {
  const std::string metric = VictoriaName(name.metric);
  std::string out;
  switch (form) {
    case VictoriaForm::kNative:
      out = metric + '\x01';
      for (const auto& [key, value] : LabelsOf(name)) out += key + '\x01' + value + '\x01';
      return out;
    case VictoriaForm::kJson:
      out = R"({"metric":{"__name__":")" + metric + '"';
      for (const auto& [key, value] : LabelsOf(name)) out += ",\"" + key + "\":\"" + value + '"';
      return out + "},";
    case VictoriaForm::kInflux:
      out = metric;
      for (const auto& [key, value] : LabelsOf(name)) out += ',' + key + '=' + value;
      return out + " value=";
    case VictoriaForm::kRemoteWrite: {
      const auto add = [&out](const std::string& key, const std::string& value) {
        std::string label;
        PutField(label, 1, key);
        PutField(label, 2, value);
        PutField(out, 1, label);
      };
      add("__name__", metric);
      for (const auto& [key, value] : LabelsOf(name)) add(key, value);
      return out;
    }
  }
  return out;
}

void PutJson(std::string& out, const std::string& name, const SeriesSamples& samples) {
  out += name;
  out += R"("values":[)";
  for (const double value : samples.values) fmt::format_to(std::back_inserter(out), "{},", value);
  out.back() = ']';
  out += R"(,"timestamps":[)";
  for (const int64_t time : samples.times_ms) fmt::format_to(std::back_inserter(out), "{},", time);
  out.back() = ']';
  out += "}\n";
}

void PutInflux(std::string& out, const std::string& name, const SeriesSamples& samples) {
  for (size_t i = 0; i < samples.values.size(); ++i) {
    out += name;
    fmt::format_to(std::back_inserter(out), "{} {}000000\n", samples.values[i],
                   samples.times_ms[i]);
  }
}

void PutTimeSeries(std::string& out, const std::string& labels, const SeriesSamples& samples) {
  std::string series = labels;
  for (size_t i = 0; i < samples.values.size(); ++i) {
    std::string sample(1, '\x09');
    const auto bits = std::bit_cast<uint64_t>(samples.values[i]);
    sample.append(reinterpret_cast<const char*>(&bits), sizeof bits);
    sample += '\x10';
    PutVarUint(sample, static_cast<uint64_t>(samples.times_ms[i]));
    PutField(series, 2, sample);
  }
  PutField(out, 1, series);
}

}  // namespace

int AddFacts(const DataSet& data, data::v1::PushRequest* request) {
  const int64_t start_ms = data.submit_ms;
  std::set<std::string> told;
  for (const SeriesName& name : data.names) {
    if (!told.insert(name.job).second) continue;
    data::v1::Record& record = *request->add_records();
    record.set_observed_time_ms(start_ms);
    auto& facts = *record.mutable_facts();
    *facts.mutable_key() = KeyOf(name, start_ms);
    facts.set_origin(data::v1::FACT_ORIGIN_SCONTROL);
    auto& execution = *facts.mutable_execution();
    execution.set_user("user" + name.job.substr(name.job.size() - 1));
    execution.set_job_name("train");
    execution.set_status(common::v1::EXECUTION_STATUS_RUNNING);
    execution.set_submit_time_ms(start_ms);
    execution.set_start_time_ms(start_ms);
  }
  return static_cast<int>(told.size());
}

int AddRecords(const DataSet& data, size_t batch, data::v1::PushRequest* request) {
  const int before = request->records_size();
  const SeriesName* last = nullptr;
  data::v1::Record* record = nullptr;
  for (size_t s = 0; s < data.names.size(); ++s) {
    const SeriesName& name = data.names[s];
    const SeriesSamples& samples = data.batches[batch][s];
    if (samples.values.empty()) continue;
    if (last == nullptr || last->job != name.job || last->node != name.node) {
      record = request->add_records();
      record->set_observed_time_ms(samples.times_ms.back());
      record->set_node(name.node);
    }
    last = &name;
    auto& series = *record->mutable_samples()->add_series();
    series.set_metric(name.metric);
    series.set_source(name.source);
    series.set_step_id(name.step);
    if (name.gpu_index >= 0) series.set_gpu_index(name.gpu_index);
    *series.mutable_run() = KeyOf(name, data.submit_ms);
    series.mutable_timestamps_ms()->Add(samples.times_ms.begin(), samples.times_ms.end());
    series.mutable_values()->Add(samples.values.begin(), samples.values.end());
  }
  return request->records_size() - before;
}

std::string VictoriaPath(VictoriaForm form) {
  switch (form) {
    case VictoriaForm::kNative:
      return "/api/v1/import/native";
    case VictoriaForm::kJson:
      return "/api/v1/import";
    case VictoriaForm::kInflux:
      return "/write";
    case VictoriaForm::kRemoteWrite:
      return "/api/v1/write";
  }
  return "";
}

std::string VictoriaName(const std::string& metric) {
  std::string out = metric;
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

VictoriaEncoder::VictoriaEncoder(VictoriaForm form, const DataSet& data) : form_(form) {
  for (const SeriesName& name : data.names) names_.push_back(RenderName(form, name));
}

void VictoriaEncoder::Native(std::string& out, const std::string& name,
                             const SeriesSamples& samples) const {
  int digits = 0;
  const auto values = AsDecimals(samples.values, &digits);
  std::string time_bytes;
  std::string value_bytes;
  const char time_form = PutColumn(time_bytes, samples.times_ms);
  const char value_form = PutColumn(value_bytes, values);
  std::string block;
  PutVarInt(block, samples.times_ms.front());
  PutVarInt(block, values.front());
  PutVarUint(block, values.size());
  PutVarInt(block, -digits);
  block += time_form;
  block += value_form;
  PutBytes(block, time_bytes);
  PutBytes(block, value_bytes);
  PutBigEndian(out, static_cast<uint32_t>(name.size()));
  out += name;
  PutBigEndian(out, static_cast<uint32_t>(block.size()));
  out += block;
}

std::string VictoriaEncoder::Encode(const DataSet& data, size_t batch) const {
  std::string out;
  if (form_ == VictoriaForm::kNative) {
    // The range of times that is taken, zig-zag: all of it.
    PutBigEndian(out, uint64_t{0});
    PutBigEndian(out, static_cast<uint64_t>(int64_t{1} << 46) << 1);
  }
  for (size_t s = 0; s < names_.size(); ++s) {
    const SeriesSamples& samples = data.batches[batch][s];
    if (samples.values.empty()) continue;
    switch (form_) {
      case VictoriaForm::kNative:
        Native(out, names_[s], samples);
        break;
      case VictoriaForm::kJson:
        PutJson(out, names_[s], samples);
        break;
      case VictoriaForm::kInflux:
        PutInflux(out, names_[s], samples);
        break;
      case VictoriaForm::kRemoteWrite:
        PutTimeSeries(out, names_[s], samples);
        break;
    }
  }
  return form_ == VictoriaForm::kRemoteWrite ? SnappyLiterals(out) : out;
}

}  // namespace expanse::bench
