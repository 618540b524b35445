// SPDX-License-Identifier: Apache-2.0
#include "collect/host/process_reader.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "collect/host/command_line.h"
#include "collect/host/node_reader.h"

namespace expanse::collect::host {
namespace {

namespace stdfs = std::filesystem;
using namespace std::string_literals;  // NOLINT(google-build-using-namespace): literals with NUL

struct MaskCase {
  const char* name;
  std::string in;
  std::string want;
};
class CommandLine : public ::testing::TestWithParam<MaskCase> {};

TEST_P(CommandLine, LeavesTheNodeWithoutItsSecrets) {
  EXPECT_EQ(MaskedCommandLine(GetParam().in), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    All, CommandLine,
    ::testing::Values(
        MaskCase{"Plain", "python3\0train.py\0--epochs\0003\0"s, "python3 train.py --epochs 3"},
        MaskCase{"FlagThenValue", "tool\0--password\0hunter2\0-v\0"s,
                 "tool --password [secret removed] -v"},
        MaskCase{"FlagIsValue", "tool\0--api-key=abc123\0x\0"s,
                 "tool --api-key=[secret removed] x"},
        MaskCase{"Variable", "env\0DB_PASSWORD=abc\0run\0"s,
                 "env DB_PASSWORD=[secret removed] run"},
        MaskCase{"FlagThenFlag", "tool\0--token\0--verbose\0"s, "tool --token --verbose"},
        MaskCase{"Nothing", ""s, ""}, MaskCase{"NotUtf8", "a\0\xff\0"s, "a \xef\xbf\xbd"}),
    [](const auto& test) { return test.param.name; });

TEST(CommandLines, ATokenIsKnownByItsFormAndAUrlsPasswordGoes) {
  const std::string masked = MaskedCommandLine(
      "curl\0https://u:s3cr3tpw@host/\0-H\0Authorization: Bearer abcdefghijklmnop1234\0"s);
  EXPECT_EQ(masked.find("s3cr3tpw"), std::string::npos) << masked;
  EXPECT_EQ(masked.find("abcdefghijklmnop1234"), std::string::npos) << masked;
}

TEST(CommandLines, ALongOneIsCutInsideTheBound) {
  EXPECT_LE(MaskedCommandLine(std::string(100'000, 'x')).size(), 1024u);
}

TEST(ProcessStat, ANameMayHoldBracketsAndSpaces) {
  const auto process = ParseProcessStat(
      "42 (a) b (c) R 7 42 42 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 5 0 9000 1 250 "
      "18446744073709551615 1\n",
      4096);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, 42);
  EXPECT_EQ(process->name, "a) b (c");
  EXPECT_EQ(process->parent, 7);
  EXPECT_EQ(process->cpu_ticks, 50);
  EXPECT_EQ(process->threads, 5);
  EXPECT_EQ(process->start_ticks, 9000);
  EXPECT_EQ(process->resident_bytes, 250 * 4096);
  EXPECT_FALSE(ParseProcessStat("42 (a) R 7", 4096));
  EXPECT_FALSE(ParseProcessStat("", 4096));
}

class Processes : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& bytes) {
    const stdfs::path host = dir_.path() + path;
    stdfs::create_directories(host.parent_path());
    std::ofstream(host) << bytes;
  }
  void AddProcess(int pid, const std::string& network, const std::string& read_bytes) {
    const std::string directory = "/proc/" + std::to_string(pid);
    Write(directory + "/stat",
          std::to_string(pid) + " (w) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 2 0 5 1 10 0 0\n");
    Write(directory + "/io", "rchar: 1\nread_bytes: " + read_bytes + "\nwrite_bytes: 8192\n");
    Write(directory + "/cmdline", "worker\0--token\0abc\0"s);
    Write(directory + "/net/dev",
          "Inter-| Receive\n face |bytes\n    lo: 9 0 0 0 0 0 0 0 9 0\n"
          "  eth0: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n");
    stdfs::create_directories(dir_.path() + directory + "/ns");
    stdfs::create_symlink("net:[" + network + "]", dir_.path() + directory + "/ns/net");
  }
  void SetUp() override {
    stdfs::create_directories(dir_.path() + "/proc/self/ns");
    stdfs::create_symlink("net:[1]", dir_.path() + "/proc/self/ns/net");
  }
  platform::TempDir dir_;
  platform::Fs fs_{dir_.path()};
};

TEST_F(Processes, AStepIsTheSumOfItsProcesses) {
  AddProcess(10, "1", "4096");
  AddProcess(11, "1", "4096");
  ProcessReader reader(fs_);
  const StepProcesses step = reader.Read({10, 11, 12});
  ASSERT_EQ(step.processes.size(), 2u) << "12 ended meanwhile";
  EXPECT_EQ(step.threads, 4);
  EXPECT_EQ(step.io.read, 8192);
  EXPECT_EQ(step.io.written, 16384);
  EXPECT_EQ(step.processes[0].command, "worker --token [secret removed]");
  EXPECT_FALSE(step.network.read);
  EXPECT_NE(step.network_problem.find("shares the node's network"), std::string::npos);
}

TEST_F(Processes, AStepWithANetworkOfItsOwnHasItsTrafficCounted) {
  AddProcess(10, "2", "0");
  ProcessReader reader(fs_);
  const StepProcesses step = reader.Read({10});
  EXPECT_EQ(step.network.read, 100);
  EXPECT_EQ(step.network.written, 200);
  EXPECT_TRUE(step.network_problem.empty());
}

TEST_F(Processes, AStepWithoutProcessesSaysSo) {
  ProcessReader reader(fs_);
  const StepProcesses step = reader.Read({});
  EXPECT_FALSE(step.io.read || step.threads);
  EXPECT_EQ(step.io_problem, "no process was seen");
}

TEST_F(Processes, TheNodesTrafficLeavesOutVirtualDevicesAndPartitions) {
  Write("/sys/class/net/eth0/device/vendor", "1");
  Write("/sys/class/net/eth0/statistics/rx_bytes", "1000\n");
  Write("/sys/class/net/eth0/statistics/tx_bytes", "500\n");
  Write("/sys/class/net/br0/statistics/rx_bytes", "1000\n");
  Write("/sys/block/sda/device/vendor", "1");
  Write("/sys/block/sda/stat", "      10 0       8 0  5 0 16 0 0 0 0\n");
  Write("/sys/block/dm-0/stat", "      10 0       8 0  5 0 16 0 0 0 0\n");
  Write("/proc/pressure/memory", "some avg10=0.00 total=12\nfull avg10=0.00 total=7\n");
  const NodeTraffic traffic = ReadNodeTraffic(fs_);
  EXPECT_EQ(traffic.network.read, 1000);
  EXPECT_EQ(traffic.network.written, 500);
  EXPECT_EQ(traffic.disk.read, 8 * 512);
  EXPECT_EQ(traffic.disk.written, 16 * 512);
  EXPECT_EQ(traffic.memory_pressure.some_us, 12);
  EXPECT_EQ(traffic.memory_pressure.full_us, 7);
  EXPECT_FALSE(traffic.cpu_pressure.some_us);
}

}  // namespace
}  // namespace expanse::collect::host
