// SPDX-License-Identifier: Apache-2.0
// A value that must not reach a log, an error message or a command line.
#pragma once

#include <string>
#include <utility>

namespace expanse {

/// Holds a secret string. It has no stream or format operator on purpose; Reveal() marks, for a
/// reader and for grep, each place where the plain text is used. Wiped on destruction.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  Secret(Secret&&) = default;
  Secret& operator=(Secret&&) = default;
  ~Secret() {
    volatile char* p = value_.data();
    for (size_t i = 0; i < value_.size(); ++i) p[i] = 0;
  }

  const std::string& Reveal() const { return value_; }
  bool empty() const { return value_.empty(); }

 private:
  std::string value_;
};

}  // namespace expanse
