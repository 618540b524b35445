// SPDX-License-Identifier: Apache-2.0
// The command line of a process, fit to leave the node.
#pragma once

#include <string>
#include <string_view>

namespace expanse::collect::host {

/// From the bytes of /proc/<pid>/cmdline (arguments that end in NUL): arguments separated by
/// spaces, valid UTF-8, at most max_bytes. Secrets are replaced: what follows or is assigned to a
/// flag or a variable that is named after a secret, and tokens and URL passwords known by their
/// form. Errs towards removing too much.
std::string MaskedCommandLine(std::string_view cmdline, size_t max_bytes = 1024);

}  // namespace expanse::collect::host
