// SPDX-License-Identifier: Apache-2.0
// HTTP messages as handlers and callers see them; no Boost or curl type leaves platform/net.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace expanse::platform {

/// Header names are lower case.
using HttpHeaders = std::map<std::string, std::string>;

struct HttpRequest {
  std::string method;  // "POST"
  std::string target;  // path and query
  HttpHeaders headers;
  std::string body;
  std::string peer;  // "127.0.0.1:4711"
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;
  std::string body;
};

/// Called on a worker thread of the server; must be thread-safe and must not throw.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

}  // namespace expanse::platform
