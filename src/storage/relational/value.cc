// SPDX-License-Identifier: Apache-2.0
#include "storage/relational/value.h"

#include "base/log.h"
#include "base/result.h"

namespace expanse::storage {

const Value& Row::Cell(size_t column) const { return rows_->Cell(index_, column); }

const Value& Row::Cell(std::string_view column) const {
  const auto& names = rows_->columns();
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == column) return rows_->Cell(index_, i);
  constexpr bool kResultHasTheColumn = false;
  EXPANSE_CHECK(kResultHasTheColumn);
  return rows_->Cell(index_, 0);
}

namespace {

// SQLite keeps the type beside each value: a flipped bit in a file changes it unseen. The row is
// then wrong, which is no reason to stop the program each time it is read.
template <typename T>
const T& WrongType(const char* wanted) {
  static const T nothing{};
  log::Error("storage.value_of_wrong_type", {{"wanted", wanted}});
  return nothing;
}

}  // namespace

int64_t Row::AsInt64(const Value& v) {
  const auto* p = std::get_if<int64_t>(&v.variant());
  return p != nullptr ? *p : WrongType<int64_t>("integer");
}

double Row::AsDouble(const Value& v) {
  if (const auto* i = std::get_if<int64_t>(&v.variant())) return static_cast<double>(*i);
  const auto* p = std::get_if<double>(&v.variant());
  return p != nullptr ? *p : WrongType<double>("number");
}

const std::string& Row::AsText(const Value& v) {
  const auto* p = std::get_if<std::string>(&v.variant());
  return p != nullptr ? *p : WrongType<std::string>("text");
}

const std::string& Row::AsBytes(const Value& v) {
  const auto* p = std::get_if<Blob>(&v.variant());
  return p != nullptr ? p->bytes : WrongType<std::string>("bytes");
}

const Value& Rows::Cell(size_t row, size_t column) const {
  EXPANSE_CHECK(column < columns_.size() && row < size());
  return cells_[row * columns_.size() + column];
}

}  // namespace expanse::storage
