// SPDX-License-Identifier: Apache-2.0
// Messages kept in SQL columns.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

namespace expanse::data_plane {

/// False, with one error in the log, when the bytes are damaged. The row counts as absent then, so
/// that a damaged one takes nothing else with it: the next facts write it anew.
bool ParseStored(const std::string& bytes, std::string_view table, const std::string& id,
                 google::protobuf::Message* out);

/// For a TEXT column: a NUL, which a protobuf string may hold and SQL text may not, becomes U+FFFD.
std::string SqlText(const std::string& text);

}  // namespace expanse::data_plane
