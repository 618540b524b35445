// SPDX-License-Identifier: Apache-2.0
// Texts that are placed: systemd units, hook settings, the service environment.
#pragma once

#include <map>
#include <string>

#include "install/site.h"

namespace expanse::install {

std::string ControllerUnit(const Site& site);
std::string SamplerUnit(const Site& site);
/// hook.conf beside the hook files: spool, and the foreign programs that run first.
std::string HookConf(const Site& site);
/// The service environment with proxies and CA of the caller added; existing entries are kept.
/// Empty: nothing to add.
std::string AddServiceEnvironment(const std::string& existing,
                                  const std::map<std::string, std::string>& environment);

}  // namespace expanse::install
