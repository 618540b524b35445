// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/json_fields.h"

namespace expanse::collect::slurm {

namespace json = boost::json;

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
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64() && value->get_uint64() <= INT64_MAX)
    return static_cast<int64_t>(value->get_uint64());
  return std::nullopt;
}

std::optional<std::string> JsonText(const json::object& object, std::string_view path) {
  const json::value* value = FindJson(object, path);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  const json::string& text = value->get_string();
  return std::string(text.data(), text.size());
}

const json::array* JsonArray(const json::object& object, std::string_view path) {
  const json::value* value = FindJson(object, path);
  return value == nullptr ? nullptr : value->if_array();
}

}  // namespace expanse::collect::slurm
