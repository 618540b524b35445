// SPDX-License-Identifier: Apache-2.0
// truth_work KIND MEBIBYTES CPU_SECONDS RESULT [DIRECTORY]: a job of known behaviour for truth.py.
// It appends to RESULT what the kernel says of it: CPU time (getrusage) and bytes read and written
// (/proc/self/io) of a child that does the work and of that one's children, its end included:
// giving back its memory takes CPU time too.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr size_t kMiB = 1 << 20;

double Seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

double ThreadCpu() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void Burn(double seconds) {
  const double end = ThreadCpu() + seconds;
  volatile uint64_t x = 1;
  while (ThreadCpu() < end)
    for (int i = 0; i < 20'000; ++i) x = x * 6364136223846793005U + 1;
}

void Pause(int ms) { ::usleep(static_cast<useconds_t>(ms) * 1000); }

char* Touch(size_t bytes, int flags) {
  auto* p = static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0));
  if (p == MAP_FAILED) ::_exit(3);
  for (size_t i = 0; i < bytes; i += 4096) p[i] = static_cast<char>(i >> 12);
  return p;
}

void WriteFile(const std::string& path, size_t bytes, bool sync) {
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) ::_exit(4);
  const std::string block(kMiB, 'x');
  for (size_t done = 0; done < bytes; done += kMiB)
    if (::write(fd, block.data(), block.size()) != static_cast<ssize_t>(kMiB)) ::_exit(5);
  if (sync) ::fsync(fd);
  ::close(fd);
}

void DropCache(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

void ReadFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::vector<char> block(kMiB);
  while (::read(fd, block.data(), block.size()) > 0) {
  }
  ::close(fd);
}

void ReadMapped(const std::string& path, size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto* p =
      static_cast<const volatile char*>(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0));
  ::close(fd);
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; i += 4096) sum += static_cast<unsigned char>(p[i]);
  if (sum == 1) ::_exit(6);
  Pause(1500);
}

/// Runs what in a child of its own each time; all at once or one after the other.
template <typename What>
void Fork(int count, bool at_once, What what) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      what();
      ::_exit(0);
    }
    if (!at_once) ::waitpid(child, nullptr, 0);
  }
  while (::wait(nullptr) > 0) {
  }
}

void Report(const char* path, const char* kind) {
  rusage own{};
  rusage children{};
  ::getrusage(RUSAGE_SELF, &own);
  ::getrusage(RUSAGE_CHILDREN, &children);
  const double cpu = Seconds(own.ru_utime) + Seconds(own.ru_stime) + Seconds(children.ru_utime) +
                     Seconds(children.ru_stime);
  long long read = -1;
  long long written = -1;
  if (FILE* io = std::fopen("/proc/self/io", "re"); io != nullptr) {
    char line[128];
    while (std::fgets(line, sizeof line, io) != nullptr) {
      (void)std::sscanf(line, "read_bytes: %lld", &read);
      if (std::strncmp(line, "write_bytes", 11) == 0)
        (void)std::sscanf(line, "write_bytes: %lld", &written);
    }
    std::fclose(io);
  }
  if (FILE* out = std::fopen(path, "ae"); out != nullptr) {
    std::fprintf(out, "{\"kind\":\"%s\",\"cpu\":%.6f,\"read\":%lld,\"write\":%lld}\n", kind, cpu,
                 read, written);
    std::fclose(out);
  }
}

void Spikes(size_t bytes) {
  for (int i = 0; i < 3; ++i) {
    char* p = Touch(bytes, MAP_PRIVATE | MAP_ANONYMOUS);
    Pause(50);
    ::munmap(p, bytes);
    Pause(700);
  }
}

void Do(const std::string& kind, size_t bytes, double cpu, const std::string& file) {
  if (kind == "anon") {
    Touch(bytes, MAP_PRIVATE | MAP_ANONYMOUS);
  } else if (kind == "shmem") {
    Touch(bytes, MAP_SHARED | MAP_ANONYMOUS);
  } else if (kind == "tmpfs") {
    const std::string path = "/dev/shm/truth." + std::to_string(::getpid());
    WriteFile(path, bytes, false);
    Pause(1000);
    ::unlink(path.c_str());
  } else if (kind == "cache") {
    Touch(bytes / 4, MAP_PRIVATE | MAP_ANONYMOUS);
    WriteFile(file, bytes, true);
    DropCache(file);
    ReadFile(file);
  } else if (kind == "mmap") {
    WriteFile(file, bytes, true);
    DropCache(file);
    ReadMapped(file, bytes);
  } else if (kind == "fork") {
    Fork(4, true, [&] {
      Touch(bytes / 4, MAP_PRIVATE | MAP_ANONYMOUS);
      Burn(cpu / 8);
      Pause(1200);
    });
    cpu /= 2;
  } else if (kind == "threads") {
    Touch(bytes, MAP_PRIVATE | MAP_ANONYMOUS);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { Burn(cpu / 4); });
    for (auto& thread : threads) thread.join();
    cpu = 0;
  } else if (kind == "spike") {
    Touch(bytes / 3, MAP_PRIVATE | MAP_ANONYMOUS);
    Spikes(bytes);
  } else if (kind == "short") {
    // Processes that nobody samples; each writes to a file of its own.
    Touch(bytes, MAP_PRIVATE | MAP_ANONYMOUS);
    Fork(40, false, [&] {
      Burn(cpu / 80);
      WriteFile(file + std::to_string(::getpid()), kMiB, true);
      ::unlink((file + std::to_string(::getpid())).c_str());
    });
    cpu /= 2;
  } else {
    std::fprintf(stderr, "truth_work: no kind %s\n", kind.c_str());
    ::_exit(2);
  }
  Burn(cpu);
  Pause(1000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  ::prctl(PR_SET_NAME, "truth_work");
  const std::string kind = argv[1];
  const std::string file =
      std::string(argc > 5 ? argv[5] : ".") + "/truth." + std::to_string(::getpid());
  const pid_t worker = ::fork();
  if (worker == 0) {
    Do(kind, static_cast<size_t>(std::atol(argv[2])) * kMiB, std::atof(argv[3]), file);
    ::unlink(file.c_str());
    ::_exit(0);
  }
  int status = 0;
  if (worker < 0 || ::waitpid(worker, &status, 0) != worker || status != 0) return 1;
  Report(argv[4], kind.c_str());
  return 0;
}
