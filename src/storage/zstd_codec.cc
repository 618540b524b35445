// SPDX-License-Identifier: Apache-2.0
#include "storage/zstd_codec.h"

#include <memory>

#include <zstd.h>

namespace expanse::storage {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
  void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
};

}  // namespace

std::string ZstdCompress(std::string_view bytes, int level) {
  // A context holds some 100 KiB to MiB of tables: one a thread, made once.
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t n =
      ZSTD_compressCCtx(context.get(), out.data(), out.size(), bytes.data(), bytes.size(), level);
  EXPANSE_CHECK(ZSTD_isError(n) == 0);  // the bound is large enough; only memory can run out
  out.resize(n);
  return out;
}

Result<std::string> ZstdDecompress(std::string_view frame, size_t max_bytes) {
  const auto size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return Error(Code::kDataLoss, "not a zstd frame with a stated size");
  if (size > max_bytes)
    return Error(Code::kResourceExhausted, "holds " + std::to_string(size) +
                                               " bytes, more than the " +
                                               std::to_string(max_bytes) + " allowed");
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size())
    return Error(Code::kDataLoss, "not exactly one whole zstd frame");
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  std::string out(static_cast<size_t>(size), '\0');
  const size_t n =
      ZSTD_decompressDCtx(context.get(), out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(n) != 0)
    return Error(Code::kDataLoss, std::string("zstd: ") + ZSTD_getErrorName(n));
  if (n != out.size()) return Error(Code::kDataLoss, "zstd frame is shorter than it states");
  return out;
}

Result<int64_t> ZstdContentSize(std::string_view start) {
  const auto size = ZSTD_getFrameContentSize(start.data(), start.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return Error(Code::kDataLoss, "not a zstd frame with a stated size");
  return static_cast<int64_t>(size);
}

}  // namespace expanse::storage
