// SPDX-License-Identifier: Apache-2.0
// compute register and compute list.
#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/labels.h"
#include "cli/session.h"
#include "cli/text.h"
#include "expanse/control/v1/control.rpc.h"
#include "rpc/json.h"

namespace expanse::cli {
namespace {

/// The kind from --type or, on a terminal, from the answer.
Result<std::string> AskType(Context& context, const Args& args) {
  if (const auto type = args.Text("--type")) return *type;
  if (!context.terminal.can_prompt()) return std::string();
  for (int tries = 0; tries < 3; ++tries) {
    context.terminal.Err("Kind of compute (slurm, kubernetes, nomad, vm): ");
    EXPANSE_TRY(const std::string line, context.terminal.ReadLine(false));
    const std::string answer = ToLower(Trim(line));
    for (const auto word : kSourceTypes)
      if (word == answer) return answer;
  }
  return std::string();
}

/// "slurm-20261130-211607".
std::string DefaultName(const Context& context, std::string_view type) {
  std::string digits;
  for (const char c : FormatSecond(ToUnixMillis(context.clock.Now()))) {
    if (c >= '0' && c <= '9') digits.push_back(c);
    if (c == 'T') digits.push_back('-');
  }
  return std::string(type) + "-" + digits;
}

std::string InstallCommand(std::string_view type, const control::v1::PlaneEndpoints& endpoints) {
  const std::string planes =
      fmt::format("--control-plane {} --data-plane {}", ShellQuote(endpoints.control_plane_url()),
                  ShellQuote(endpoints.data_plane_url()));
  if (type == "slurm")
    return "sudo --preserve-env=EXPANSE_INSTALL_TOKEN expanse compute install --type slurm "
           "--shared-prefix /srv/expanse " +
           planes + " --patch-slurm-conf=true";
  if (type == "vm") return "expanse compute install " + planes;
  return fmt::format("expanse compute install --type {} {}", type, planes);
}

std::string_view WhereToRun(std::string_view type) {
  if (type == "slurm")
    return "Run on the SLURM controller; /srv/expanse stands for a directory that every node "
           "shares:";
  if (type == "kubernetes") return "Run on a workstation with kubectl and Helm:";
  if (type == "nomad") return "Run on a Nomad client node:";
  return "Run on the machine to watch:";
}

std::string Next(std::string_view type) {
  if (type != "kubernetes") return "";
  return "\nThen hand the written configuration to the chart:\n"
         "  kubectl create namespace expanse-system\n"
         "  kubectl -n expanse-system create secret generic expanse-daemon-config "
         "--from-file=config.json=$HOME/.expanse/config.json\n";
}

/// The answer's JSON with the command as its last member.
Result<std::string> RegisterJson(const control::v1::RegisterComputeResponse& response,
                                 const std::string& command) {
  EXPANSE_TRY(std::string json, rpc::ToJson(response));
  // A command line holds nothing that JSON escapes but quotes and backslashes.
  std::string escaped;
  for (const char c : command) {
    if (c == '"' || c == '\\') escaped.push_back('\\');
    escaped.push_back(c);
  }
  json.pop_back();
  return IndentJson(json + ",\"install_command\":\"" + escaped + "\"}");
}

Result<int> RunRegister(Context& context, const Args& args) {
  EXPANSE_TRY(const auto session, Session::Open(context));
  EXPANSE_TRY(const std::string type, AskType(context, args));
  if (type.empty())
    return UsageFailure(context, kComputeRegister, "missing flag --type slurm|kubernetes|nomad|vm");
  control::v1::RegisterComputeRequest request;
  request.set_type(ComputeTypeFromWord(type));
  request.set_name(ToUtf8(args.Text("--name").value_or(DefaultName(context, type))));
  request.set_team_id(args.Text("--team-id").value_or(""));
  request.set_compute_id(args.Text("--compute-id").value_or(""));
  const control::v1::ComputeServiceClient client(session->control());
  EXPANSE_TRY(auto response, client.RegisterCompute("", request));
  // The command must name planes that the target reaches; an empty one would not install.
  auto* endpoints = response.mutable_endpoints();
  if (endpoints->control_plane_url().empty())
    endpoints->set_control_plane_url(session->control_plane_url());
  if (endpoints->data_plane_url().empty())
    endpoints->set_data_plane_url(session->endpoints().data_plane_url());
  const std::string command = InstallCommand(type, *endpoints);
  if (args.Bool("--json")) {
    EXPANSE_TRY(const auto json, RegisterJson(response, command));
    context.terminal.Out(json);
    return kExitOk;
  }
  const auto& compute = response.compute();
  std::string out = Row("compute", EscapeForTerminal(compute.name()));
  out += Row("compute_id", EscapeForTerminal(compute.compute_id()));
  out += Row("type", type);
  out += Row("state", ComputeStateLabel(compute.state()));
  if (!compute.team_id().empty()) out += Row("team_id", EscapeForTerminal(compute.team_id()));
  out += Row("install_token", EscapeForTerminal(response.install_token()));
  out += Row("token_expires", FormatSecond(response.expires_at_ms()));
  out += fmt::format(
      "\nThe token works once and is not shown again. {}\n"
      "  read -rsp 'Expanse install token: ' EXPANSE_INSTALL_TOKEN; echo; export "
      "EXPANSE_INSTALL_TOKEN\n"
      "  {}\n  unset EXPANSE_INSTALL_TOKEN\n{}",
      WhereToRun(type), command, Next(type));
  context.terminal.Out(out);
  return kExitOk;
}

Hue HueOf(control::v1::ComputeState state) {
  switch (state) {
    case control::v1::COMPUTE_STATE_ACTIVE:
      return Hue::kGreen;
    case control::v1::COMPUTE_STATE_PENDING:
    case control::v1::COMPUTE_STATE_DEGRADED:
      return Hue::kYellow;
    case control::v1::COMPUTE_STATE_OFFLINE:
    case control::v1::COMPUTE_STATE_REVOKED:
      return Hue::kRed;
    default:
      return Hue::kNone;
  }
}

Result<int> RunList(Context& context, const Args& args) {
  EXPANSE_TRY(const auto session, Session::Open(context));
  const control::v1::ComputeServiceClient client(session->control());
  EXPANSE_TRY(const auto response, client.ListComputes("", {}));
  if (args.Bool("--json")) {
    EXPANSE_TRY(const auto json, PrettyJson(response));
    context.terminal.Out(json);
    return kExitOk;
  }
  Table table({"COMPUTE ID", "NAME", "TYPE", "STATE", "LAST HEARTBEAT", "NODES", "GPUS", "DAEMON"});
  for (const auto& c : response.computes())
    table.Add({c.compute_id(), c.name(), ComputeTypeLabel(c.type()), ComputeStateLabel(c.state()),
               c.has_last_heartbeat_ms() ? FormatSecond(c.last_heartbeat_ms()) : "",
               c.has_nodes() ? std::to_string(c.nodes()) : "",
               c.has_gpus() ? std::to_string(c.gpus()) : "", c.daemon_version()},
              {Hue::kNone, Hue::kNone, Hue::kNone, HueOf(c.state())});
  context.terminal.Out(table.Print(context));
  if (response.computes().empty())
    context.terminal.Err("No compute is registered; see `expanse compute register`.\n");
  return kExitOk;
}

constexpr Flag kRegisterFlags[] = {
    {.name = "--type",
     .kind = FlagKind::kChoice,
     .doc = "kind of compute",
     .default_text = "asked for on a terminal",
     .choices = kSourceTypes},
    {.name = "--name",
     .doc = "name of the compute",
     .default_text = "type and time, e.g. slurm-20261130-211607",
     .value_name = "NAME"},
    {.name = "--team-id", .doc = "team whose members see the compute", .value_name = "ID"},
    {.name = "--compute-id",
     .doc = "register this compute again: a new token, its history stays",
     .value_name = "ID"},
    {.name = "--json",
     .kind = FlagKind::kBool,
     .doc = "the raw JSON response, with install_command"},
};
constexpr Example kRegisterExamples[] = {
    {"expanse compute register --type slurm --name hpc-01"},
    {"expanse compute register --type slurm --json | jq -r .install_token"},
};
constexpr Flag kListFlags[] = {
    {.name = "--json", .kind = FlagKind::kBool, .doc = "the raw JSON response"}};
constexpr Example kListExamples[] = {{"expanse compute list"}};

}  // namespace

const Command kComputeRegister{
    .name = "compute register",
    .group = kGroupCompute,
    .summary = "registers a compute and prints its install token and install command",
    .description =
        "The token works once, for one hour, and is given to the installer through "
        "EXPANSE_INSTALL_TOKEN or its hidden prompt, never as an argument. Registering again with "
        "--compute-id and running the printed command is how a compute's credential is replaced; "
        "on SLURM uninstall first, since a new token does not override a saved identity.",
    .flags = kRegisterFlags,
    .examples = kRegisterExamples,
    .run = RunRegister,
};

const Command kComputeList{
    .name = "compute list",
    .group = kGroupCompute,
    .summary = "lists the computes you may see, with their state",
    .description =
        "Columns: id, name, type, state, last heartbeat (UTC), nodes, GPUs and the "
        "daemon's version. What was not reported is `-`.",
    .flags = kListFlags,
    .examples = kListExamples,
    .run = RunList,
};

}  // namespace expanse::cli
