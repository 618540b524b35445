// SPDX-License-Identifier: Apache-2.0
// Every cgroup of every recording, field for field, against the recorded text itself.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "collect/host/cgroup_reader.h"

namespace expanse::collect::host {
namespace {

namespace stdfs = std::filesystem;
using Files = std::map<std::string, std::string>;  // by name
using Tree = std::map<std::string, Files>;         // by directory

Tree LoadTree(const std::string& name) {
  Tree tree;
  std::ifstream in(std::string(EXPANSE_TESTDATA "/host/recorded/") + name + ".tree");
  EXPECT_TRUE(in.good()) << name;
  for (std::string line; std::getline(in, line);) {
    const auto fields = Split(line, '\t');
    if (fields.size() != 3) continue;
    const std::string text = std::regex_replace(std::string(fields[2]), std::regex(R"(\\n)"), "\n");
    tree[std::string(fields[0])][std::string(fields[1])] = text + "\n";
  }
  return tree;
}

void WriteTree(const Tree& tree, const std::string& root) {
  for (const auto& [directory, files] : tree) {
    stdfs::create_directories(root + directory);
    for (const auto& [name, text] : files) std::ofstream(root + directory + "/" + name) << text;
  }
}

/// The number behind a key, or the whole text as a number, by other means than the reader's.
std::optional<int64_t> Recorded(const Tree& tree, const std::string& directory,
                                const std::string& file, const std::string& key = "") {
  const auto files = tree.find(directory);
  if (files == tree.end()) return std::nullopt;
  const auto text = files->second.find(file);
  if (text == files->second.end()) return std::nullopt;
  const std::regex pattern(key.empty() ? R"(^(-?\d+)\s*$)" : "(?:^|\\n)" + key + " (\\d+)");
  std::smatch match;
  if (!std::regex_search(text->second, match, pattern)) return std::nullopt;
  return std::stoll(match[1]);
}

std::optional<int64_t> Scaled(std::optional<int64_t> value, int64_t factor) {
  if (value) *value *= factor;
  return value;
}

struct Recording {
  std::string name;
  std::vector<std::string> nodes;
  int version;
  size_t units;   // jobs and steps, counted in the recording
  size_t sluids;  // of them jobs named by SLUID
};

class RecordedTree : public ::testing::TestWithParam<Recording> {
 protected:
  void SetUp() override {
    tree_ = LoadTree(GetParam().name);
    WriteTree(tree_, dir_.path());
    if (GetParam().version == 2)
      std::ofstream(dir_.path() + "/sys/fs/cgroup/cgroup.controllers") << "cpu memory\n";
  }
  /// Counts a compared field; absent on both sides is equal too.
  void Same(const std::optional<int64_t>& read, const std::optional<int64_t>& recorded,
            const std::string& what) {
    EXPECT_EQ(read, recorded) << what;
    if (recorded) ++compared_;
  }
  void CompareV1(const CgroupUnit& unit, const CgroupUsage& usage);
  void CompareV2(const CgroupUnit& unit, const CgroupUsage& usage);

  platform::TempDir dir_;
  Tree tree_;
  size_t compared_ = 0;
};

void RecordedTree::CompareV1(const CgroupUnit& unit, const CgroupUsage& usage) {
  const std::string memory = "/sys/fs/cgroup/memory" + unit.path;
  const std::string cpu = "/sys/fs/cgroup/cpuacct" + unit.path;
  Same(usage.usage, Recorded(tree_, memory, "memory.usage_in_bytes"), memory);
  Same(usage.peak, Recorded(tree_, memory, "memory.max_usage_in_bytes"), memory);
  auto limit = Recorded(tree_, memory, "memory.limit_in_bytes");
  if (limit == 9223372036854771712) limit.reset();
  Same(usage.limit, limit, memory);
  Same(usage.limit_hits, Recorded(tree_, memory, "memory.failcnt"), memory);
  Same(usage.anon, Recorded(tree_, memory, "memory.stat", "total_rss"), memory);
  Same(usage.file, Recorded(tree_, memory, "memory.stat", "total_cache"), memory);
  Same(usage.cpu_ns, Recorded(tree_, cpu, "cpuacct.usage"), cpu);
  Same(usage.cpu_user_ns, Scaled(Recorded(tree_, cpu, "cpuacct.stat", "user"), 10'000'000), cpu);
  Same(usage.cpu_system_ns, Scaled(Recorded(tree_, cpu, "cpuacct.stat", "system"), 10'000'000),
       cpu);
  std::optional<int64_t> kills;
  if (!unit.step_id.empty())
    for (const auto& [directory, files] : tree_)
      if (directory == memory || directory.starts_with(memory + "/task_"))
        kills = kills.value_or(0) +
                Recorded(tree_, directory, "memory.oom_control", "oom_kill").value_or(0);
  if (tree_.contains(memory)) Same(usage.oom_kills, kills, memory);
}

void RecordedTree::CompareV2(const CgroupUnit& unit, const CgroupUsage& usage) {
  const std::string whole = "/sys/fs/cgroup" + unit.path;
  const std::string limited = unit.step_id.empty() ? whole : whole + "/user";
  Same(usage.usage, Recorded(tree_, limited, "memory.current"), limited);
  Same(usage.peak, Recorded(tree_, limited, "memory.peak"), limited);
  Same(usage.limit, Recorded(tree_, limited, "memory.max"), limited);
  Same(usage.swap, Recorded(tree_, limited, "memory.swap.current"), limited);
  Same(usage.threads, Recorded(tree_, limited, "pids.current"), limited);
  Same(usage.limit_hits, Recorded(tree_, limited, "memory.events", "max"), limited);
  Same(usage.oom_kills, Recorded(tree_, whole, "memory.events", "oom_kill"), whole);
  for (const auto& [read, key] :
       {std::pair(usage.anon, "anon"), std::pair(usage.file, "file"),
        std::pair(usage.shmem, "shmem"), std::pair(usage.kernel, "kernel")})
    Same(read, Recorded(tree_, limited, "memory.stat", key), limited + " " + key);
  const auto micros = [&](const char* key) {
    return Scaled(Recorded(tree_, limited, "cpu.stat", key), 1000);
  };
  Same(usage.cpu_ns, micros("usage_usec"), limited);
  Same(usage.cpu_user_ns, micros("user_usec"), limited);
  Same(usage.cpu_system_ns, micros("system_usec"), limited);
  Same(usage.throttled_ns, micros("throttled_usec"), limited);
  const auto files = tree_.find(limited);
  const bool has_io = files != tree_.end() && files->second.contains("io.stat");
  EXPECT_EQ(usage.io.read.has_value(), has_io) << limited;
  if (!has_io) return;
  const std::string& text = files->second.at("io.stat");
  std::smatch match;
  const bool any = std::regex_search(text, match, std::regex(R"(rbytes=(\d+) wbytes=(\d+))"));
  Same(usage.io.read, any ? std::stoll(match[1]) : 0, limited);
  Same(usage.io.written, any ? std::stoll(match[2]) : 0, limited);
}

TEST_P(RecordedTree, ReadsEveryJobAndStepFieldForField) {
  const platform::Fs fs(dir_.path());
  size_t units = 0;
  size_t sluids = 0;
  for (const std::string& node : GetParam().nodes) {
    const auto reader = *CgroupReader::Detect(fs, node);
    ASSERT_EQ(reader->version(), GetParam().version);
    ASSERT_TRUE(reader->Refresh().ok());
    for (const CgroupUnit& unit : reader->units()) {
      ++units;
      if (unit.step_id.empty() && !unit.sluid.empty()) ++sluids;
      EXPECT_NE(unit.path.find(node), std::string::npos) << "another daemon's: " << unit.path;
      const CgroupUsage usage = reader->Read(unit, Depth::kAll);
      GetParam().version == 1 ? CompareV1(unit, usage) : CompareV2(unit, usage);
      // The second reading comes from the files that are open now.
      const CgroupUsage again = reader->Read(unit, Depth::kEachSecond);
      EXPECT_EQ(again.usage, usage.usage) << unit.path;
      EXPECT_EQ(again.cpu_ns, usage.cpu_ns) << unit.path;
      if (!unit.step_id.empty()) {
        EXPECT_EQ(again.Need(), usage.Need()) << unit.path;
      }
    }
  }
  EXPECT_EQ(units, GetParam().units);
  EXPECT_EQ(sluids, GetParam().sluids);
  EXPECT_GT(compared_, units * 6);
}

TEST_P(RecordedTree, ThePathsOfProcessesNameTheirSteps) {
  const platform::Fs fs(dir_.path());
  const auto reader = *CgroupReader::Detect(fs, GetParam().nodes.front());
  ASSERT_TRUE(reader->Refresh().ok());
  for (const CgroupUnit& unit : reader->units()) {
    const std::string in_task = GetParam().version == 1 ? "9:name=systemd:/\n4:memory:/outer" +
                                                              unit.path + "/task_0\n0::/\n"
                                                        : "0::" + unit.path + "/user/task_0\n";
    EXPECT_EQ(reader->UnitOf(in_task), unit.step_id.empty() ? "" : unit.path);
  }
  EXPECT_EQ(reader->UnitOf("4:memory:/\n0::/system.slice/ssh.service\n"), "");
  EXPECT_EQ(reader->UnitOf("0::/system.slice/other_slurmstepd.scope/job_1/step_0/user\n"), "");
}

INSTANTIATE_TEST_SUITE_P(All, RecordedTree,
                         ::testing::Values(Recording{"22.05-v1", {"n1", "n2"}, 1, 88, 0},
                                           Recording{"24.11-v1", {"t1", "t2"}, 1, 88, 0},
                                           Recording{"26.05-v1", {"s1", "s2"}, 1, 85, 0},
                                           Recording{"24.11-v2", {"cg24"}, 2, 22, 0},
                                           Recording{"26.05-v2", {"cg26"}, 2, 22, 6},
                                           Recording{
                                               "26.05-v2-extra-controllers", {"cg26"}, 2, 13, 3},
                                           Recording{"26.05-v2-job-id-paths", {"cg26"}, 2, 8, 0},
                                           Recording{"26.05-v2-stepmgr", {"cg26"}, 2, 8, 2}),
                         [](const auto& recording) {
                           std::string name = recording.param.name;
                           for (char& c : name)
                             if (c == '.' || c == '-') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace expanse::collect::host
