// SPDX-License-Identifier: Apache-2.0
#include "data_plane/stored_message.h"

#include "base/log.h"

namespace expanse::data_plane {

bool ParseStored(const std::string& bytes, std::string_view table, const std::string& id,
                 google::protobuf::Message* out) {
  if (out->ParseFromString(bytes)) return true;
  out->Clear();
  log::Error("data.row_damaged", {{"table", table}, {"id", id}});
  return false;
}

std::string SqlText(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '\0')
      out += "\xEF\xBF\xBD";
    else
      out += c;
  }
  return out;
}

}  // namespace expanse::data_plane
