// SPDX-License-Identifier: Apache-2.0
// Whatever a cgroup file, /proc or the netlink socket holds: parsed without harm. The first byte
// picks the parser. A command line is a user's own bytes, and so is a process name.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/strings.h"
#include "collect/host/cgroup_parse.h"
#include "collect/host/command_line.h"
#include "collect/host/process_reader.h"
#include "collect/host/taskstats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace host = expanse::collect::host;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      for (const auto& record : host::ParseExitRecords(text, 33))
        if (record.cpu_user_us < 0 || record.name.size() > 32) std::abort();
      break;
    case 1: {
      const std::string masked = host::MaskedCommandLine(text);
      if (masked.size() > 1024 || !expanse::IsUtf8(masked)) std::abort();
      break;
    }
    case 2:
      (void)host::ParseProcessStat(text, 4096);
      break;
    case 3:
      (void)host::ParseProcessIo(text);
      (void)host::ParseNetDev(text);
      break;
    case 4:
      (void)host::ParseIoStat(text);
      (void)host::ParseBlkio(text);
      break;
    case 5:
      (void)host::ParsePressure(text);
      break;
    case 6:
      for (const int32_t pid : host::ParsePids(text))
        if (pid <= 0) std::abort();
      break;
    default:
      (void)host::KeyedCount(text, "anon");
      (void)host::CountOf(text);
      (void)host::IsSluid(text);
  }
  return 0;
}
