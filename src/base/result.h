// SPDX-License-Identifier: Apache-2.0
// Errors as values. Every fallible function returns Result<T>; no exception crosses a folder.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace expanse {

/// Error codes: the Connect/gRPC set, so that one table maps them to HTTP status
/// (rpc/connect_error.h) and to CLI exit codes (cli/exit_status.h).
enum class Code {
  kCanceled,
  kUnknown,
  kInvalidArgument,
  kDeadlineExceeded,
  kNotFound,
  kAlreadyExists,
  kPermissionDenied,
  kResourceExhausted,
  kFailedPrecondition,
  kAborted,
  kOutOfRange,
  kUnimplemented,
  kInternal,
  kUnavailable,
  kDataLoss,
  kUnauthenticated,
};

/// Connect's lower-case name of a code, e.g. "not_found".
std::string_view CodeName(Code code);
/// The reverse of CodeName; nothing for a name that is not one.
std::optional<Code> CodeFromName(std::string_view name);

/// What failed. The message says what was tried, on what, what the system said, what to do.
class Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  /// The same error seen from further out: "context: message".
  Error WithContext(std::string_view context) const {
    return Error(code_, std::string(context) + ": " + message_);
  }

 private:
  Code code_;
  std::string message_;
};

/// A value or an Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : v_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const T& value() const& { return std::get<0>(v_); }
  T& value() & { return std::get<0>(v_); }
  T&& value() && { return std::get<0>(std::move(v_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  const Error& error() const { return std::get<1>(v_); }
  T value_or(T other) const { return ok() ? value() : std::move(other); }

 private:
  std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : e_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !e_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *e_; }

 private:
  std::optional<Error> e_;
};

using Status = Result<void>;

}  // namespace expanse

#define EXPANSE_CONCAT_INNER(a, b) a##b
#define EXPANSE_CONCAT(a, b) EXPANSE_CONCAT_INNER(a, b)

/// EXPANSE_TRY(auto x, Expression()): declares x from the value or returns the error.
#define EXPANSE_TRY(declaration, expression) \
  EXPANSE_TRY_IMPL(EXPANSE_CONCAT(expanse_try_, __COUNTER__), declaration, expression)
#define EXPANSE_TRY_IMPL(tmp, declaration, expression) \
  auto tmp = (expression);                             \
  if (!tmp.ok()) return tmp.error();                   \
  declaration = std::move(tmp).value()

/// EXPANSE_CHECK_OK(Expression()): returns the error of a Status or Result, if any.
#define EXPANSE_CHECK_OK(expression) \
  EXPANSE_CHECK_OK_IMPL(EXPANSE_CONCAT(expanse_status_, __COUNTER__), expression)
#define EXPANSE_CHECK_OK_IMPL(tmp, expression) \
  do {                                         \
    auto tmp = (expression);                   \
    if (!tmp.ok()) return tmp.error();         \
  } while (false)

/// Programmer errors only; never on input from outside.
#define EXPANSE_CHECK(condition)                                              \
  do {                                                                        \
    if (!(condition)) ::expanse::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)

namespace expanse {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}  // namespace expanse
