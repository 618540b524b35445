// SPDX-License-Identifier: Apache-2.0
// Exit codes of `expanse`, as documented by `expanse --help`.
#pragma once

#include "base/result.h"

namespace expanse::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;       // refused, not found, or an analysis ended in failure
inline constexpr int kExitUsage = 2;        // unknown flag, excluded combination, missing argument
inline constexpr int kExitNotSignedIn = 3;  // no session, or the session was rejected
inline constexpr int kExitUnreachable = 4;  // no answer from the server
inline constexpr int kExitInterrupted = 130;

/// The exit code an error ends the command with. Usage errors are not Errors (see command.h): an
/// argument that the server refuses is a failed request.
constexpr int ExitStatusOf(Code code) {
  switch (code) {
    case Code::kUnauthenticated:
      return kExitNotSignedIn;
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
      return kExitUnreachable;
    case Code::kCanceled:
      return kExitInterrupted;
    default:
      return kExitFailed;
  }
}

}  // namespace expanse::cli
