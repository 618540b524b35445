// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/marked_text.h"

#include <array>

#include "base/strings.h"

namespace expanse::collect::slurm {

std::string NewMark(platform::Random& random) {
  std::array<uint8_t, 8> bytes{};
  random.Fill(bytes);
  return "\x1f" + HexEncode({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) + "\x1f";
}

Result<std::vector<std::vector<std::string_view>>> SplitMarkedRows(std::string_view text,
                                                                   std::string_view mark,
                                                                   size_t fields) {
  std::vector<std::vector<std::string_view>> rows;
  while (!text.empty()) {
    std::vector<std::string_view> row;
    row.reserve(fields);
    while (row.size() < fields) {
      const size_t end = text.find(mark);
      if (end == std::string_view::npos)
        return Error(Code::kDataLoss,
                     "the answer ends within row " + std::to_string(rows.size() + 1));
      row.push_back(text.substr(0, end));
      text.remove_prefix(end + mark.size());
    }
    if (!text.starts_with('\n'))
      return Error(Code::kDataLoss,
                   "row " + std::to_string(rows.size() + 1) + " has another number of fields");
    text.remove_prefix(1);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace expanse::collect::slurm
