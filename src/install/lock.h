// SPDX-License-Identifier: Apache-2.0
// One installer at a time on a host.
#pragma once

#include <memory>

#include "base/result.h"
#include "install/installer.h"
#include "platform/fs/file_lock.h"

namespace expanse::install {

/// /var/lock/expanse-install.lock; the file stays behind and means nothing by itself.
Result<std::unique_ptr<platform::FileLock>> TakeInstallLock(const Machine& machine);

}  // namespace expanse::install
