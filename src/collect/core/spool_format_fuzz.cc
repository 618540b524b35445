// SPDX-License-Identifier: Apache-2.0
// The first input byte chooses: frames of a segment, a segment header, the reader's cursor or the
// writer's state.
#include <cstdint>
#include <cstdlib>

#include "collect/core/spool_files.h"
#include "collect/core/spool_format.h"
#include "expanse/data/v1/ingest.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace collect = expanse::collect;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 0) {
    (void)collect::ParseSegmentHeader(bytes);
    return 0;
  }
  if (data[0] % 4 == 2) {
    // What was read is what is written again.
    if (const auto cursor = collect::ParseCursor(bytes))
      if (collect::ParseCursor(collect::EncodeCursor(*cursor))->acknowledged !=
          cursor->acknowledged)
        std::abort();
    if (const auto state = collect::ParseWriterState(bytes))
      if (collect::ParseWriterState(collect::EncodeWriterState(*state))->next_sequence !=
          state->next_sequence)
        std::abort();
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
  if (const auto next = collect::FindNextFrame(bytes, 0, 1, 1000); next && *next >= bytes.size())
    std::abort();
  if (collect::FindSegmentEnd(bytes, 1).end > bytes.size()) std::abort();
  return 0;
}
