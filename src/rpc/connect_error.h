// SPDX-License-Identifier: Apache-2.0
// Connect's unary error shape and its mapping to HTTP status
// (https://connectrpc.com/docs/protocol#error-codes).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::rpc {

int HttpStatusOf(Code code);
/// {"code":"not_found","message":"…"}
std::string ErrorBody(const Error& error);
/// An error from a response that is not 200; understands bodies that are not Connect's (proxies).
Error ErrorFromResponse(int http_status, std::string_view body);

}  // namespace expanse::rpc
