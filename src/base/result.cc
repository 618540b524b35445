// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <array>
#include <cstdio>

namespace expanse {
namespace {
constexpr std::array<std::pair<Code, std::string_view>, 16> kNames{{
    {Code::kCanceled, "canceled"},
    {Code::kUnknown, "unknown"},
    {Code::kInvalidArgument, "invalid_argument"},
    {Code::kDeadlineExceeded, "deadline_exceeded"},
    {Code::kNotFound, "not_found"},
    {Code::kAlreadyExists, "already_exists"},
    {Code::kPermissionDenied, "permission_denied"},
    {Code::kResourceExhausted, "resource_exhausted"},
    {Code::kFailedPrecondition, "failed_precondition"},
    {Code::kAborted, "aborted"},
    {Code::kOutOfRange, "out_of_range"},
    {Code::kUnimplemented, "unimplemented"},
    {Code::kInternal, "internal"},
    {Code::kUnavailable, "unavailable"},
    {Code::kDataLoss, "data_loss"},
    {Code::kUnauthenticated, "unauthenticated"},
}};
}  // namespace

std::string_view CodeName(Code code) {
  for (const auto& [c, name] : kNames)
    if (c == code) return name;
  return "unknown";
}

std::optional<Code> CodeFromName(std::string_view name) {
  for (const auto& [c, n] : kNames)
    if (n == name) return c;
  return std::nullopt;
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace expanse
