// SPDX-License-Identifier: Apache-2.0
#include "collect/host/taskstats.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/strings.h"

namespace expanse::collect::host {
namespace {

constexpr int kReceiveBuffer = 8 << 20;  // some 8,000 ends between two readings
constexpr size_t kMaxDatagram = 64 << 10;
constexpr int kWaitMs = 500;
constexpr int64_t kBatchNs = 20'000'000;  // one wake-up for all that end in this time
constexpr size_t kAttributeHeader = sizeof(nlattr);

/// One netlink attribute after the other; ends at the first that does not fit.
template <typename Visit>
void ForEachAttribute(std::string_view bytes, Visit visit) {
  while (bytes.size() >= kAttributeHeader) {
    nlattr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nla_len < kAttributeHeader || header.nla_len > bytes.size()) return;
    visit(header.nla_type & NLA_TYPE_MASK,
          bytes.substr(kAttributeHeader, header.nla_len - kAttributeHeader));
    bytes.remove_prefix(std::min<size_t>(NLA_ALIGN(header.nla_len), bytes.size()));
  }
}

int64_t Signed(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX / 2));
}

/// Newer kernels append fields, older ones send fewer: what is missing reads as zero.
std::optional<ExitRecord> RecordOf(std::string_view bytes) {
  taskstats stats{};
  constexpr size_t kLeast = offsetof(taskstats, write_bytes) + sizeof stats.write_bytes;
  if (bytes.size() < kLeast) return std::nullopt;
  std::memcpy(&stats, bytes.data(), std::min(bytes.size(), sizeof stats));
  ExitRecord record;
  record.pid = static_cast<int32_t>(stats.ac_pid);
  // Version 12 says which process a thread belonged to; before, each thread stands for itself.
  record.process =
      stats.version >= 12 && stats.ac_tgid != 0 ? static_cast<int32_t>(stats.ac_tgid) : record.pid;
  record.parent = static_cast<int32_t>(stats.ac_ppid);
  record.uid = stats.ac_uid;
  record.name = std::string(stats.ac_comm, ::strnlen(stats.ac_comm, sizeof stats.ac_comm));
  record.cpu_user_us = Signed(stats.ac_utime);
  record.cpu_system_us = Signed(stats.ac_stime);
  record.read_bytes = Signed(stats.read_bytes);
  record.write_bytes = Signed(stats.write_bytes);
  record.peak_resident_bytes =
      Signed(std::min<uint64_t>(stats.hiwater_rss, INT64_MAX / 4096)) * 1024;  // in KiB
  return record;
}

template <typename T>
void AppendBytes(const T& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A request with one attribute, a text that ends in NUL.
std::string Request(uint16_t type, uint8_t command, uint16_t attribute, std::string_view text) {
  std::string payload;
  AppendBytes(genlmsghdr{command, TASKSTATS_GENL_VERSION, 0}, &payload);
  AppendBytes(nlattr{static_cast<uint16_t>(kAttributeHeader + text.size() + 1), attribute},
              &payload);
  payload.append(text).append(1, '\0');
  payload.resize(NLMSG_ALIGN(payload.size()), '\0');
  nlmsghdr header{};
  header.nlmsg_len = static_cast<uint32_t>(NLMSG_HDRLEN + payload.size());
  header.nlmsg_type = type;
  header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  std::string out;
  AppendBytes(header, &out);
  return out + payload;
}

/// Splits a datagram into its messages.
template <typename Visit>
void ForEachMessage(std::string_view bytes, Visit visit) {
  while (bytes.size() >= NLMSG_HDRLEN) {
    nlmsghdr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > bytes.size()) return;
    visit(header.nlmsg_type, bytes.substr(NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN));
    bytes.remove_prefix(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), bytes.size()));
  }
}

class Socket {
 public:
  Socket() : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

  /// Sends a request and waits for its answer; the family's number when the answer names one.
  Result<uint16_t> Ask(const std::string& request, const std::string& what) {
    if (::send(fd_, request.data(), request.size(), 0) < 0) return Failed(what, errno);
    uint16_t family = 0;
    for (int round = 0; round < 100; ++round) {
      pollfd wait{fd_, POLLIN, 0};
      if (::poll(&wait, 1, 2000) <= 0)
        return Error(Code::kUnavailable, what + ": the kernel did not answer within 2 s");
      std::array<char, kMaxDatagram> buffer;  // NOLINT: filled by recv
      const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
      if (n < 0) return Failed(what, errno);
      std::optional<int> acknowledged;
      ForEachMessage({buffer.data(), static_cast<size_t>(n)}, [&](uint16_t type,
                                                                  std::string_view body) {
        if (type == NLMSG_ERROR && body.size() >= sizeof(int)) {
          int error = 0;
          std::memcpy(&error, body.data(), sizeof error);
          acknowledged = -error;
        } else if (type == GENL_ID_CTRL && body.size() >= GENL_HDRLEN) {
          ForEachAttribute(body.substr(GENL_HDRLEN), [&](int attribute, std::string_view value) {
            if (attribute == CTRL_ATTR_FAMILY_ID && value.size() >= 2)
              std::memcpy(&family, value.data(), 2);
          });
        }
      });
      if (!acknowledged) continue;
      if (*acknowledged != 0) return Failed(what, *acknowledged);
      return family;
    }
    return Error(Code::kUnavailable, what + ": no acknowledgement");
  }

 private:
  static Error Failed(const std::string& what, int error) {
    if (error == EPERM || error == EACCES)
      return Error(Code::kPermissionDenied, what + " needs CAP_NET_ADMIN");
    if (error == ENOENT)
      return Error(Code::kUnimplemented, what + ": this kernel has no taskstats");
    return Error(Code::kUnavailable, what + ": " + std::strerror(error));
  }
  int fd_;
};

double ThreadSeconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace

std::vector<ExitRecord> ParseExitRecords(std::string_view datagram, uint16_t family) {
  std::vector<ExitRecord> records;
  ForEachMessage(datagram, [&](uint16_t type, std::string_view body) {
    if (type != family || body.size() < GENL_HDRLEN) return;
    ForEachAttribute(body.substr(GENL_HDRLEN), [&](int group, std::string_view members) {
      // The group of the whole process has no I/O and repeats what its threads said.
      if (group != TASKSTATS_TYPE_AGGR_PID) return;
      ForEachAttribute(members, [&](int attribute, std::string_view value) {
        if (attribute != TASKSTATS_TYPE_STATS) return;
        if (auto record = RecordOf(value)) records.push_back(std::move(*record));
      });
    });
  });
  return records;
}

struct TaskstatsListener::Impl {
  explicit Impl(ExitLedger::Locate locate) : ledger(std::move(locate)) {}

  Socket socket;
  uint16_t family = 0;
  std::mutex mutex;  // of the two below
  std::string buffer = std::string(kMaxDatagram, '\0');
  ExitLedger ledger;
  std::atomic<double> cpu_seconds{0};
  std::atomic<uint64_t> losses{0};
  std::atomic<bool> stop{false};
  std::thread thread;

  // With the lock held.
  void Drain() {
    for (;;) {
      const ssize_t n = ::recv(socket.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n < 0 && errno == ENOBUFS) {
        ++losses;
        continue;
      }
      if (n <= 0) return;
      for (const ExitRecord& record :
           ParseExitRecords({buffer.data(), static_cast<size_t>(n)}, family))
        ledger.Add(record);
    }
  }

  void Loop() {
    while (!stop) {
      pollfd wait{socket.fd(), POLLIN, 0};
      const int ready = ::poll(&wait, 1, kWaitMs);
      if (ready > 0) {
        {
          const std::lock_guard lock(mutex);
          Drain();
        }
        const timespec pause{0, kBatchNs};
        ::nanosleep(&pause, nullptr);
      }
      cpu_seconds = ThreadSeconds();
    }
  }
};

Result<std::unique_ptr<TaskstatsListener>> TaskstatsListener::Start(ExitLedger::Locate locate) {
  auto impl = std::make_unique<Impl>(std::move(locate));
  const int fd = impl->socket.fd();
  if (fd < 0)
    return Error(Code::kUnavailable, std::string("netlink socket: ") + std::strerror(errno));
  // Past the system's limit where that is allowed.
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer) != 0)
    (void)::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  EXPANSE_TRY(impl->family, impl->socket.Ask(Request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
                                                     CTRL_ATTR_FAMILY_NAME, TASKSTATS_GENL_NAME),
                                             "looking up taskstats"));
  const long cpus = std::max(1L, ::sysconf(_SC_NPROCESSORS_CONF));
  EXPANSE_TRY(
      [[maybe_unused]] const auto ignored,
      impl->socket.Ask(Request(impl->family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK,
                               "0-" + std::to_string(cpus - 1)),
                       "registering for exit records (taskstats)"));
  impl->thread = std::thread([raw = impl.get()] { raw->Loop(); });
  return std::unique_ptr<TaskstatsListener>(new TaskstatsListener(std::move(impl)));
}

TaskstatsListener::TaskstatsListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

TaskstatsListener::~TaskstatsListener() {
  impl_->stop = true;
  impl_->thread.join();
}

void TaskstatsListener::With(const std::function<void(ExitLedger&)>& use) {
  const std::lock_guard lock(impl_->mutex);
  impl_->Drain();
  use(impl_->ledger);
}

TaskstatsState TaskstatsListener::state() const {
  TaskstatsState state;
  state.cpu_seconds = impl_->cpu_seconds;
  state.losses = impl_->losses;
  const std::lock_guard lock(impl_->mutex);
  state.records = impl_->ledger.records();
  return state;
}

}  // namespace expanse::collect::host
