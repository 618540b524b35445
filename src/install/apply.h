// SPDX-License-Identifier: Apache-2.0
// The parts of an installation, each within a Transaction.
#pragma once

#include <string>

#include "base/result.h"
#include "expanse/data/v1/daemon.pb.h"
#include "install/site.h"
#include "install/transaction.h"

namespace expanse::install {

/// Hook files, their settings and the node-local spool. A rollback leaves them where SLURM uses
/// them, or cannot be asked whether it does: it would drain the node without them.
Status PlaceHooks(const Site& site, Machine& machine, Transaction* transaction);
/// Programs, sampler settings and sentinel below the shared prefix.
Status PlaceShared(const Site& site, const platform::Fs& fs, Transaction* transaction);
Status WriteConfig(const Site& site, const data::v1::DaemonConfig& config,
                   Transaction* transaction);
/// Patches slurm.conf and has SLURM read it; prints what the operator has to do otherwise.
Status WireHooks(const InstallOptions& options, const Site& site, Machine& machine,
                 Transaction* transaction);
/// Installs, enables and starts a unit, or prints it.
Status StartService(const InstallOptions& options, const Site& site, const std::string& name,
                    const std::string& unit, Machine& machine, Transaction* transaction);

/// Machine::print takes one line at a time.
void PrintLines(const Machine& machine, std::string_view text);
/// systemctl with these words; a non-zero exit is an error.
Status Systemctl(Machine& machine, std::vector<std::string> words);
inline constexpr std::string_view kUnitDirectory = "/etc/systemd/system";

}  // namespace expanse::install
