// SPDX-License-Identifier: Apache-2.0
// The programs to install and where they come from.
#pragma once

#include <string>

#include "base/result.h"
#include "install/installer.h"

namespace expanse::install {

struct ReleaseFiles {
  std::string daemon;  // bytes of expanse-daemon
  std::string hook;    // bytes of expanse-hook
  std::string origin;  // for the log: path or URL, and how it was verified
};

/// --daemon-binary PATH (bare program, or a .tar.gz with its .sig beside it, which is verified), or
/// --daemon-version V (signed manifest of --releases-url). Without either, the expanse-daemon
/// beside this program. kFailedPrecondition: missing, not a program, or a signature that does not
/// hold; nothing has been placed then.
Result<ReleaseFiles> ResolveRelease(const InstallOptions& options, Machine& machine);

}  // namespace expanse::install
