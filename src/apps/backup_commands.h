// SPDX-License-Identifier: Apache-2.0
// `backup --to DIR` and `restore --from DIR` of every plane's program.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "platform/config/config.h"
#include "storage/backup/backup.h"

namespace expanse::apps {

storage::BackupLayout ControlPlaneLayout();
storage::BackupLayout DataPlaneLayout();
storage::BackupLayout IntelligenceLayout();
/// All three below one directory, as `expanse up` keeps them, with its keys.
storage::BackupLayout UpLayout();

/// The exit status when the words begin with "backup" or "restore"; nothing otherwise. data_dir is
/// the program's own setting of its directory.
std::optional<int> RunBackupCommand(std::string_view program, std::span<const std::string> words,
                                    const storage::BackupLayout& layout,
                                    const platform::Setting& data_dir);

}  // namespace expanse::apps
