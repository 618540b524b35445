// SPDX-License-Identifier: Apache-2.0
// The first input byte chooses: frames of a segment, or a segment header.
#include <cstdint>
#include <cstdlib>

#include "collect/core/spool_format.h"
#include "expanse/data/v1/ingest.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace collect = expanse::collect;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    (void)collect::ParseSegmentHeader(bytes);
    return 0;
  }
  size_t at = 0;
  while (at < bytes.size()) {
    collect::Frame frame;
    if (collect::ParseFrame(bytes.substr(at), &frame) != collect::FrameStatus::kWhole) break;
    if (frame.size > bytes.size() - at) std::abort();
    expanse::data::v1::Record record;
    (void)record.ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size()));
    at += frame.size;
  }
  if (collect::FindSegmentEnd(bytes, 1).end > bytes.size()) std::abort();
  return 0;
}
