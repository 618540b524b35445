// SPDX-License-Identifier: Apache-2.0
// What scontrol says of the cluster.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "install/installer.h"

namespace expanse::install {

/// "Key = value" lines of `scontrol show config`.
std::map<std::string, std::string> ParseShowConfig(std::string_view text);
/// Hook settings among them that lie in our directory, as "Key=value".
std::vector<std::string> HooksInForce(const std::map<std::string, std::string>& shown,
                                      const std::string& hook_directory);
struct SlurmNode {
  std::string name;
  std::string host;  // NodeHostName
};
/// NodeName and NodeHostName of `scontrol show node`.
std::vector<SlurmNode> ParseShowNode(std::string_view text);

class SlurmTools {
 public:
  /// slurm_conf: for SLURM_CONF of the tools; empty: their default.
  SlurmTools(Machine& machine, std::string slurm_conf)
      : machine_(machine), slurm_conf_(std::move(slurm_conf)) {}
  Result<std::map<std::string, std::string>> ShowConfig() const;
  Result<std::vector<SlurmNode>> ShowNodes() const;
  Status Reconfigure() const;

 private:
  Result<std::string> Run(std::vector<std::string> argv) const;
  Machine& machine_;
  std::string slurm_conf_;
};

}  // namespace expanse::install
