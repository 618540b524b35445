// SPDX-License-Identifier: Apache-2.0
// From what a user writes to the id that the contract wants.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/context.h"
#include "cli/flags.h"
#include "cli/session.h"
#include "expanse/common/v1/execution.pb.h"

namespace expanse::cli {

/// The id behind --compute: an id as it is, or the name of one compute of the organisation.
/// Empty when the flag was not given.
Result<std::string> ResolveCompute(Session& session, const Args& args);
/// The same for a question about one compute: without --compute the only one that is not pending
/// or revoked; when there are several, an error that lists them.
Result<std::string> RequireCompute(Session& session, const Args& args);

/// The execution behind a scheduler-native id. Ids are reused: the newest run wins, with a warning
/// that names the others.
Result<common::v1::Execution> ResolveNativeId(Context& context, Session& session,
                                              common::v1::SourceType source_type,
                                              const std::string& native_id,
                                              const std::string& compute_id);

}  // namespace expanse::cli
