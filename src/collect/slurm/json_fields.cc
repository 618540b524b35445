// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/json_fields.h"

#include <cmath>

#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/state_map.h"

namespace expanse::collect::slurm {
namespace {

namespace json = boost::json;

std::optional<int64_t> NumberOf(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64() && value.get_uint64() <= INT64_MAX)
    return static_cast<int64_t>(value.get_uint64());
  // Some counts are serialized as 2.0.
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value.is_double() && std::abs(value.get_double()) < kExact &&
      std::nearbyint(value.get_double()) == value.get_double())
    return static_cast<int64_t>(value.get_double());
  return std::nullopt;
}

bool IsTrue(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr && value->is_bool() && value->get_bool();
}

}  // namespace

Result<json::object> ParseToolJson(std::string_view text) {
  if (text.empty()) return Error(Code::kDataLoss, "the tool answered nothing");
  json::parse_options options;
  options.max_depth = 64;
  options.allow_invalid_utf8 = true;
  json::error_code failed;
  json::value value = json::parse({text.data(), text.size()}, failed, {}, options);
  if (failed)
    return Error(Code::kDataLoss, "the answer is no whole JSON text: " + failed.message());
  if (!value.is_object()) return Error(Code::kDataLoss, "the answer is no JSON object");
  return std::move(value.as_object());
}

const json::value* FindJson(const json::object& object, std::string_view path) {
  const json::object* at = &object;
  while (true) {
    const size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    const json::value* member = at->if_contains({name.data(), name.size()});
    if (member == nullptr || dot == std::string_view::npos) return member;
    at = member->if_object();
    if (at == nullptr) return nullptr;
    path.remove_prefix(dot + 1);
  }
}

std::optional<int64_t> JsonInt(const json::object& object, std::string_view path) {
  const json::value* value = FindJson(object, path);
  if (value == nullptr) return std::nullopt;
  const json::object* wrapped = value->if_object();
  if (wrapped == nullptr) return NumberOf(*value);
  if (!IsTrue(*wrapped, "set") || IsTrue(*wrapped, "infinite")) return std::nullopt;
  const json::value* number = wrapped->if_contains("number");
  return number == nullptr ? std::nullopt : NumberOf(*number);
}

bool JsonIsInfinite(const json::object& object, std::string_view path) {
  const json::value* value = FindJson(object, path);
  if (value == nullptr) return false;
  if (const json::object* wrapped = value->if_object()) return IsTrue(*wrapped, "infinite");
  // "+complex" prints the word, since JSON has no such number.
  return value->is_string() &&
         StartsWithIgnoreCase({value->get_string().data(), value->get_string().size()}, "inf");
}

std::optional<std::string> JsonText(const json::object& object, std::string_view path) {
  const json::value* value = FindJson(object, path);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  const json::string& text = value->get_string();
  return std::string(text.data(), text.size());
}

std::optional<bool> JsonBool(const json::object& object, std::string_view path) {
  const json::value* value = FindJson(object, path);
  if (value == nullptr || !value->is_bool()) return std::nullopt;
  return value->get_bool();
}

const json::array* JsonArray(const json::object& object, std::string_view path) {
  const json::value* value = FindJson(object, path);
  return value == nullptr ? nullptr : value->if_array();
}

std::optional<std::string> JsonWord(const json::object& object, std::string_view path) {
  auto text = JsonText(object, path);
  if (text && IsSlurmNull(*text)) text.reset();
  return text;
}

std::optional<int64_t> JsonPositive(const json::object& object, std::string_view path) {
  const auto number = JsonInt(object, path);
  if (!number || *number <= 0 || *number >= kSlurmNotSet) return std::nullopt;
  return number;
}

std::optional<int64_t> JsonMebibytes(const json::object& object, std::string_view path) {
  const auto number = JsonInt(object, path);
  if (!number || *number < 0 || *number >= (int64_t{1} << 40)) return std::nullopt;
  return *number * kMiB;
}

bool ReadState(const json::object& object, std::string_view path, std::string* state,
               std::string* state_text) {
  const json::value* value = FindJson(object, path);
  if (value == nullptr) return false;
  std::vector<std::string> words;
  const auto add = [&](const json::value& word) {
    if (word.is_string() && !word.get_string().empty())
      words.emplace_back(word.get_string().data(), word.get_string().size());
  };
  add(*value);
  if (const json::array* list = value->if_array())
    for (const json::value& word : *list) add(word);
  if (words.empty()) return false;
  *state = OneState(words);
  *state_text = Join(words, ",");
  return true;
}

JsonExit ReadJsonExit(const json::object& object, std::string_view path) {
  JsonExit out;
  const json::value* value = FindJson(object, path);
  if (value == nullptr) return out;
  const json::object* told = value->if_object();
  if (told == nullptr) {
    if (const auto status = NumberOf(*value); status && *status >= 0 && *status <= 0xffff) {
      out.status = FromWaitStatus(*status);
      out.code = (*status >> 8) & 0xff;
    }
    return out;
  }
  // 22.05's sacct: {"status": "SUCCESS", "return_code": 0, "signal": {"signal_id": 15}}
  if (const auto signal = JsonInt(*told, "signal.signal_id")) {
    if (*signal > 0 && *signal <= 127) out.status = FromWaitStatus(*signal);
    return out;
  }
  if (JsonArray(*told, "status") == nullptr) return out;
  const auto signal = JsonInt(*told, "signal.id");
  const auto code = JsonInt(*told, "return_code");
  if (signal && *signal > 0 && *signal <= 127) {
    out.status = FromWaitStatus(*signal);
    out.code = 0;
  } else if (code && *code >= 0 && *code <= 255) {
    out.status = FromWaitStatus(*code << 8);
    out.code = code;
  }
  return out;
}

Tres ReadJsonTres(const json::array* list) {
  std::string text;
  if (list != nullptr) {
    for (const json::value& value : *list) {
      const json::object* item = value.if_object();
      if (item == nullptr) continue;
      const auto type = JsonText(*item, "type");
      const auto count = JsonInt(*item, "count");
      if (!type || !count || *count < 0) continue;
      const auto name = JsonText(*item, "name");
      text += (text.empty() ? "" : ",") + *type + (name && !name->empty() ? "/" + *name : "") +
              "=" + std::to_string(*count);
    }
  }
  return ParseTres(text, kMiB);
}

Result<RecordBatch> ParseJobsJson(std::string_view text, const char* tool,
                                  const ReadJsonJob& read) {
  EXPANSE_TRY(const json::object root, ParseToolJson(text));
  if (const auto* errors = JsonArray(root, "errors"); errors != nullptr && !errors->empty())
    return Error(Code::kDataLoss, "the answer lists errors: " + json::serialize(errors->front()));
  const auto* jobs = JsonArray(root, "jobs");
  if (jobs == nullptr) return Error(Code::kDataLoss, "the answer has no list of jobs");
  RecordBatch out;
  for (const json::value& value : *jobs) {
    const json::object* object = value.if_object();
    std::optional<JobRecord> job;
    if (object != nullptr) job = read(*object);
    if (job)
      out.jobs.push_back(std::move(*job));
    else
      out.problems.push_back(std::string(tool) + ": an entry without an id or a state");
  }
  return out;
}

}  // namespace expanse::collect::slurm
