// SPDX-License-Identifier: Apache-2.0
// A request as text, for whoever wants to check what a plane receives.
#pragma once

#include <string>

#include "platform/net/http.h"

namespace expanse::apps {

/// The request line, the headers and the body as received, but for credentials: the values of
/// headers that carry them, and our keys and session tokens wherever they stand, are replaced by
/// "[redacted]". The kind of a key ("exp_compute_") stays.
std::string RecordedRequest(const platform::HttpRequest& request);

}  // namespace expanse::apps
