// SPDX-License-Identifier: Apache-2.0
// Typed values that go into and come out of a relational database.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"

namespace expanse::storage {

/// Bytes for a BYTEA column; a std::string is text (UTF-8 without NUL) for a TEXT column.
struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};

/// One parameter or cell: NULL, 64-bit integer, double, text or bytes. A bool is stored as the
/// integers 0 and 1 (BIGINT column). An empty std::optional is NULL.
class Value {
 public:
  using Variant = std::variant<std::monostate, int64_t, double, std::string, Blob>;

  Value() = default;
  // Implicit on purpose: parameters are written as {org.str(), 42, std::nullopt, Blob{…}}.
  // NOLINTBEGIN(google-explicit-constructor)
  Value(std::nullopt_t) {}
  Value(bool v) : v_(int64_t{v}) {}
  Value(int32_t v) : v_(int64_t{v}) {}
  Value(uint32_t v) : v_(int64_t{v}) {}
  Value(int64_t v) : v_(v) {}
  Value(long long v) : v_(static_cast<int64_t>(v)) {}
  Value(double v) : v_(v) {}
  Value(const char* v) : v_(std::string(v)) {}
  Value(std::string_view v) : v_(std::string(v)) {}
  Value(std::string v) : v_(std::move(v)) {}
  Value(Blob v) : v_(std::move(v)) {}
  template <typename Tag>
  Value(const Id<Tag>& id) : v_(id.str()) {}
  template <typename T>
  Value(const std::optional<T>& v) {
    if (v.has_value()) *this = Value(*v);
  }
  // NOLINTEND(google-explicit-constructor)
  /// Sequence numbers and sizes beyond 2^63 do not exist here: the caller casts.
  Value(uint64_t) = delete;
  Value(std::nullptr_t) = delete;

  bool is_null() const { return v_.index() == 0; }
  const Variant& variant() const { return v_; }
  bool operator==(const Value&) const = default;

 private:
  Variant v_;
};

class Rows;

/// One row of a result; valid while its Rows is. A column is named or counted from 0. The accessors
/// without Opt are for columns that cannot be NULL; a wrong column or type is a programmer error.
class Row {
 public:
  Row(const Rows& rows, size_t index) : rows_(&rows), index_(index) {}

  template <typename Column>
  bool IsNull(Column column) const {
    return Cell(column).is_null();
  }
  template <typename Column>
  int64_t Int64(Column column) const {
    return AsInt64(Cell(column));
  }
  template <typename Column>
  bool Bool(Column column) const {
    return AsInt64(Cell(column)) != 0;
  }
  template <typename Column>
  double Double(Column column) const {
    return AsDouble(Cell(column));
  }
  template <typename Column>
  const std::string& Text(Column column) const {
    return AsText(Cell(column));
  }
  template <typename Column>
  const std::string& Bytes(Column column) const {
    return AsBytes(Cell(column));
  }

  template <typename Column>
  std::optional<int64_t> OptInt64(Column column) const {
    const Value& v = Cell(column);
    return v.is_null() ? std::nullopt : std::optional(AsInt64(v));
  }
  template <typename Column>
  std::optional<bool> OptBool(Column column) const {
    const Value& v = Cell(column);
    return v.is_null() ? std::nullopt : std::optional(AsInt64(v) != 0);
  }
  template <typename Column>
  std::optional<double> OptDouble(Column column) const {
    const Value& v = Cell(column);
    return v.is_null() ? std::nullopt : std::optional(AsDouble(v));
  }
  template <typename Column>
  std::optional<std::string> OptText(Column column) const {
    const Value& v = Cell(column);
    return v.is_null() ? std::nullopt : std::optional(AsText(v));
  }
  template <typename Column>
  std::optional<std::string> OptBytes(Column column) const {
    const Value& v = Cell(column);
    return v.is_null() ? std::nullopt : std::optional(AsBytes(v));
  }
  /// Text, or "" for NULL.
  template <typename Column>
  std::string TextOrEmpty(Column column) const {
    return OptText(column).value_or("");
  }

  const Value& Cell(size_t column) const;
  const Value& Cell(int column) const { return Cell(static_cast<size_t>(column)); }
  const Value& Cell(std::string_view column) const;
  const Value& Cell(const char* column) const { return Cell(std::string_view(column)); }

 private:
  static int64_t AsInt64(const Value& v);
  static double AsDouble(const Value& v);  // integers too
  static const std::string& AsText(const Value& v);
  static const std::string& AsBytes(const Value& v);

  const Rows* rows_;
  size_t index_;
};

/// A whole result in memory: queries carry their own LIMIT.
class Rows {
 public:
  explicit Rows(std::vector<std::string> columns) : columns_(std::move(columns)) {}

  size_t size() const { return columns_.empty() ? 0 : cells_.size() / columns_.size(); }
  bool empty() const { return cells_.empty(); }
  Row operator[](size_t index) const { return Row(*this, index); }
  const std::vector<std::string>& columns() const { return columns_; }
  const Value& Cell(size_t row, size_t column) const;
  /// columns().size() calls make a row.
  void Append(Value v) { cells_.push_back(std::move(v)); }

  class Iterator {
   public:
    Iterator(const Rows& rows, size_t index) : rows_(&rows), index_(index) {}
    Row operator*() const { return Row(*rows_, index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Rows* rows_;
    size_t index_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  std::vector<std::string> columns_;
  std::vector<Value> cells_;
};

}  // namespace expanse::storage
