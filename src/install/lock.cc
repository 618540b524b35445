// SPDX-License-Identifier: Apache-2.0
#include "install/lock.h"

namespace expanse::install {

Result<std::unique_ptr<platform::FileLock>> TakeInstallLock(const Machine& machine) {
  const std::string path = "/var/lock/expanse-install.lock";
  auto lock = platform::FileLock::Try(machine.fs.Host(path));
  if (lock.ok()) return lock;
  if (lock.error().code() == Code::kPermissionDenied)
    return Error(Code::kPermissionDenied,
                 "open install lock " + path + ": permission denied; rerun with sudo");
  return Error(Code::kFailedPrecondition, "open install lock " + path + ": " +
                                              lock.error().message() +
                                              "; another install or uninstall is running here");
}

}  // namespace expanse::install
