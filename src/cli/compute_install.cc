// SPDX-License-Identifier: Apache-2.0
// compute install and compute uninstall: flags and the token's intake. The work is src/install's.
#include <fmt/format.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/text.h"
#include "install/installer.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kInstallTypes[] = {"slurm", "kubernetes", "nomad", "vm"};
constexpr std::string_view kUninstallTypes[] = {"slurm"};
constexpr std::string_view kRoles[] = {"controller", "sampler"};
constexpr std::string_view kBootstraps[] = {"prolog", "off"};
constexpr std::string_view kTokenPrefix = "exp_install_";

/// The environment wins over the prompt; never an argument, never kept for a later call.
Result<Secret> TakeToken(Context& context) {
  Secret token(std::string(Trim(context.Environment("EXPANSE_INSTALL_TOKEN"))));
  std::string_view origin = "EXPANSE_INSTALL_TOKEN";
  if (token.empty()) {
    if (!context.terminal.can_prompt())
      return Error(Code::kFailedPrecondition,
                   "no install token: set EXPANSE_INSTALL_TOKEN or run on a terminal; `expanse "
                   "compute register` prints one");
    context.terminal.Err("Expanse install token: ");
    EXPANSE_TRY(const std::string line, context.terminal.ReadLine(true));
    token = Secret(std::string(Trim(line)));
    origin = "the answer";
  }
  if (!token.Reveal().starts_with(kTokenPrefix))
    return Error(
        Code::kInvalidArgument,
        fmt::format("{} is not an install token: those begin with {}", origin, kTokenPrefix));
  return token;
}

install::Machine MachineOf(Context& context) {
  return install::Machine{
      .fs = context.fs,
      .runner = *context.processes,
      .clock = context.clock,
      .http = context.http_client ? &context.http_client() : nullptr,
      .environment = context.environment,
      .program_directory = context.program_directory,
      .home = context.Environment("HOME"),
      .effective_uid = context.effective_uid,
      .open_channel = context.open_channel,
      .install_token = [&context] { return TakeToken(context); },
      .print =
          [&context](const std::string& line) {
            context.terminal.Out(EscapeForTerminal(line, /*keep_newlines=*/true) + "\n");
          },
      .sleep = context.sleep,
  };
}

install::Role RoleOf(const Args& args) {
  return args.Text("--role").value_or("controller") == "sampler" ? install::Role::kSampler
                                                                 : install::Role::kController;
}

/// Paths that every node sees under the same name cannot be relative. The error is a usage error.
Status CheckAbsolute(const Args& args, std::string_view flag) {
  const auto path = args.Text(flag);
  if (!path || path->starts_with('/')) return {};
  return Error(Code::kInvalidArgument,
               fmt::format("{}: '{}' is not an absolute path", flag, EscapeForTerminal(*path)));
}

std::string AbsoluteOrEmpty(const Context& context, const Args& args, std::string_view flag) {
  const auto path = args.Text(flag);
  return path ? context.Absolute(*path) : "";
}

install::InstallOptions ReadOptions(const Context& context, const Args& args) {
  install::InstallOptions options;
  options.type = args.Text("--type").value_or("");
  options.role = RoleOf(args);
  options.shared_prefix = args.Text("--shared-prefix").value_or("");
  options.daemon_version = args.Text("--daemon-version").value_or("");
  options.daemon_binary = AbsoluteOrEmpty(context, args, "--daemon-binary");
  options.control_plane = args.Text("--control-plane").value_or("");
  options.data_plane = args.Text("--data-plane").value_or("");
  options.config = AbsoluteOrEmpty(context, args, "--config");
  options.user = args.Text("--user").value_or(options.user);
  options.slurm_conf = args.Text("--slurm-conf").value_or("");
  options.patch_slurm_conf = args.Bool("--patch-slurm-conf");
  options.reconfigure = args.Bool("--reconfigure");
  options.systemd = args.Bool("--systemd");
  options.heartbeat_timeout =
      args.Duration("--heartbeat-timeout").value_or(options.heartbeat_timeout);
  options.sampler_bootstrap = args.Text("--sampler-bootstrap").value_or("prolog") == "prolog";
  options.cupti_variant = args.Text("--cupti-variant").value_or("");
  options.profiling_agent = args.Bool("--profiling-agent");
  options.bundled_pyspy = args.Bool("--bundled-pyspy");
  options.releases_url = args.Text("--releases-url").value_or(options.releases_url);
  options.cosign_key = AbsoluteOrEmpty(context, args, "--cosign-key");
  options.reinstall = args.Bool("--reinstall");
  options.write_config_only = args.Bool("--write-config-only");
  options.verbose = args.Bool("--verbose");
  return options;
}

std::string Report(const install::InstallOptions& options, const install::InstallReport& report) {
  std::string out;
  const auto row = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out += Row(name, EscapeForTerminal(value));
  };
  row("compute", report.compute_name);
  row("compute_id", report.compute_id);
  row("organisation", report.organisation);
  row("config", report.config_path);
  if (options.type == "slurm" && options.role == install::Role::kController) {
    row("hooks", report.hooks_wired ? "wired into slurm.conf" : "not wired into slurm.conf");
    if (options.systemd) row("heartbeat", report.heartbeat_seen ? "seen" : "not seen");
  }
  return out.empty() ? "Installed.\n" : "\nInstalled.\n" + out;
}

Result<int> RunInstall(Context& context, const Args& args) {
  for (const auto flag : {"--shared-prefix", "--slurm-conf"})
    if (auto status = CheckAbsolute(args, flag); !status.ok())
      return UsageFailure(context, kComputeInstall, status.error().message());
  const auto options = ReadOptions(context, args);
  if (options.role == install::Role::kSampler && options.type != "slurm")
    return UsageFailure(context, kComputeInstall, "--role sampler needs --type slurm");
  auto machine = MachineOf(context);
  EXPANSE_TRY(const auto report, context.install(options, machine));
  context.terminal.Out(Report(options, report));
  return kExitOk;
}

Result<int> RunUninstall(Context& context, const Args& args) {
  for (const auto flag : {"--shared-prefix", "--slurm-conf"})
    if (auto status = CheckAbsolute(args, flag); !status.ok())
      return UsageFailure(context, kComputeUninstall, status.error().message());
  install::UninstallOptions options;
  options.role = RoleOf(args);
  options.shared_prefix = args.Text("--shared-prefix").value_or("");
  options.slurm_conf = args.Text("--slurm-conf").value_or("");
  options.user = args.Text("--user").value_or(options.user);
  options.config = AbsoluteOrEmpty(context, args, "--config");
  options.keep_identity = args.Bool("--keep-identity");
  auto machine = MachineOf(context);
  EXPANSE_CHECK_OK(context.uninstall(options, machine));
  context.terminal.Out(options.keep_identity ? "Uninstalled; the compute credential was kept.\n"
                                             : "Uninstalled.\n");
  return kExitOk;
}

constexpr Flag kInstallFlags[] = {
    {.name = "--type",
     .kind = FlagKind::kChoice,
     .doc = "slurm installs the cluster runtime; another kind, or none, writes the config only",
     .choices = kInstallTypes},
    {.name = "--role",
     .kind = FlagKind::kChoice,
     .doc = "sampler installs a worker's service and needs no token",
     .default_text = "controller",
     .choices = kRoles},
    {.name = "--shared-prefix",
     .kind = FlagKind::kPath,
     .doc = "absolute path of a directory that every node shares"},
    {.name = "--daemon-version",
     .doc = "daemon release to download and verify, e.g. v1.2.1",
     .value_name = "VERSION"},
    {.name = "--daemon-binary",
     .kind = FlagKind::kPath,
     .doc = "staged daemon archive with its .sig beside it, or a bare binary, whose signature is "
            "not checked"},
    {.name = "--control-plane",
     .kind = FlagKind::kUrl,
     .doc = "control plane of a fresh install; a reinstall uses the saved one",
     .default_text = "discovered"},
    {.name = "--data-plane",
     .kind = FlagKind::kUrl,
     .doc = "data plane, needed for a fresh controller; a reinstall uses the saved one"},
    {.name = "--config",
     .kind = FlagKind::kPath,
     .doc = "path of the credential file; repeat it on upgrade and uninstall",
     .default_text = ".expanse/config.json in the home of --user"},
    {.name = "--user",
     .doc = "account of daemon and sampler, which must exist",
     .default_text = "slurm",
     .value_name = "NAME"},
    {.name = "--slurm-conf",
     .kind = FlagKind::kPath,
     .doc = "absolute path of the controller's slurm.conf",
     .default_text = "discovered"},
    {.name = "--patch-slurm-conf",
     .kind = FlagKind::kBool,
     .doc = "apply the planned changes of Prolog, Epilog, TaskProlog and TaskEpilog; without it "
            "files of SLURM are only read"},
    {.name = "--reconfigure",
     .kind = FlagKind::kBool,
     .doc = "have SLURM read its changed configuration; false prints the command",
     .default_text = "true"},
    {.name = "--systemd",
     .kind = FlagKind::kBool,
     .doc = "install and start the service; false prints the unit and waits for nothing",
     .default_text = "true"},
    {.name = "--heartbeat-timeout",
     .kind = FlagKind::kDuration,
     .doc = "how long to wait for the controller's first heartbeat",
     .default_text = "1m"},
    {.name = "--sampler-bootstrap",
     .kind = FlagKind::kChoice,
     .doc = "how workers get their sampler: from Prolog, or by explicit installs",
     .default_text = "prolog",
     .choices = kBootstraps},
    {.name = "--cupti-variant",
     .doc = "CUPTI variant, e.g. cuda1300",
     .default_text = "automatic",
     .value_name = "NAME"},
    {.name = "--profiling-agent",
     .kind = FlagKind::kBool,
     .doc = "install TaskProlog and the capture agent where available; false skips deep capture, "
            "not counter sampling",
     .default_text = "true"},
    {.name = "--bundled-pyspy",
     .kind = FlagKind::kBool,
     .doc = "install the stack sampler that comes with the daemon",
     .default_text = "true"},
    {.name = "--releases-url",
     .kind = FlagKind::kUrl,
     .doc = "mirror of the release manifest; signatures are checked all the same",
     .default_text = "https://releases.expanse.sh"},
    {.name = "--cosign-key",
     .kind = FlagKind::kPath,
     .doc = "PEM file of the key to verify releases with, for an agreed rotation",
     .default_text = "the embedded key"},
    {.name = "--reinstall",
     .kind = FlagKind::kBool,
     .doc = "clean and reinstall with the saved credential; takes no token, not even an exported "
            "one",
     .alias = "--force"},
    {.name = "--write-config-only",
     .kind = FlagKind::kBool,
     .doc = "exchange the token and write the config, nothing else"},
    {.name = "--verbose", .kind = FlagKind::kBool, .doc = "print install and rollback diagnostics"},
};
constexpr Rule kInstallRules[] = {{Rule::kExcludes, "--daemon-version", "--daemon-binary"}};
constexpr Example kInstallExamples[] = {
    {"sudo --preserve-env=EXPANSE_INSTALL_TOKEN expanse compute install --type slurm "
     "--shared-prefix /srv/expanse --control-plane <url> --data-plane <url> "
     "--patch-slurm-conf=true"},
    {"sudo expanse compute install --type slurm --role sampler --shared-prefix /srv/expanse",
     "on a worker"},
    {"sudo expanse compute install --type slurm --reinstall --shared-prefix /srv/expanse "
     "--patch-slurm-conf=true",
     "upgrade"},
    {"expanse compute install --control-plane <url> --data-plane <url>", "writes the config only"},
};

constexpr Flag kUninstallFlags[] = {
    {.name = "--type",
     .kind = FlagKind::kChoice,
     .doc = "kind of cluster",
     .choices = kUninstallTypes},
    {.name = "--role",
     .kind = FlagKind::kChoice,
     .doc = "what to remove; samplers before the controller",
     .default_text = "controller",
     .choices = kRoles},
    {.name = "--shared-prefix", .kind = FlagKind::kPath, .doc = "as installed"},
    {.name = "--slurm-conf",
     .kind = FlagKind::kPath,
     .doc = "absolute path of the controller's slurm.conf",
     .default_text = "discovered"},
    {.name = "--user", .doc = "as installed", .default_text = "slurm", .value_name = "NAME"},
    {.name = "--config",
     .kind = FlagKind::kPath,
     .doc = "as installed",
     .default_text = ".expanse/config.json in the home of --user"},
    {.name = "--keep-identity",
     .kind = FlagKind::kBool,
     .doc = "keep the compute credential; not for a new registration"},
};
constexpr Example kUninstallExamples[] = {
    {"sudo expanse compute uninstall --type slurm --role sampler --shared-prefix /srv/expanse",
     "each worker first"},
    {"sudo expanse compute uninstall --type slurm --role controller --shared-prefix /srv/expanse "
     "--slurm-conf /etc/slurm/slurm.conf",
     "then the controller"},
};

}  // namespace

const Command kComputeInstall{
    .name = "compute install",
    .group = kGroupCompute,
    .summary = "installs the collectors on this machine and enrols the compute",
    .description =
        "Runs on the target: the SLURM controller, a worker, another machine. It checks everything "
        "and prints its plan before the token is used; a fresh install that fails is rolled "
        "back.\nThe install token comes from EXPANSE_INSTALL_TOKEN, else from a hidden prompt, "
        "never from an argument. Until the compute's first heartbeat the same token may be used "
        "again after a failure.",
    .flags = kInstallFlags,
    .rules = kInstallRules,
    .examples = kInstallExamples,
    .run = RunInstall,
};

const Command kComputeUninstall{
    .name = "compute uninstall",
    .group = kGroupCompute,
    .summary = "removes the collectors from this machine and resets its identity",
    .description =
        "Stops collection, unwires the hooks, removes managed files and ends the compute "
        "credential; history stays. Workers first, the controller last; a sampler on the "
        "controller's host before the controller. It stops at the first error. Drop-ins of an "
        "operator and /etc/expanse/daemon.env are left alone.",
    .flags = kUninstallFlags,
    .examples = kUninstallExamples,
    .run = RunUninstall,
};

}  // namespace expanse::cli
