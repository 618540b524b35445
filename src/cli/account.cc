// SPDX-License-Identifier: Apache-2.0
// login, status and refresh.
#include <fmt/format.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/text.h"
#include "expanse/control/v1/control.rpc.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kKeyPrefix = "exp_user_";
constexpr std::string_view kWhereKeys =
    "Keys are created in the console under Settings, after sign-in; `expanse up` writes its "
    "owner's key into the file owner.key of its data directory";

struct KeySource {
  Secret key;
  std::string_view origin;
};

Result<KeySource> FindKey(Context& context, const Args& args) {
  if (auto flag = args.Text("--api-key"))
    return KeySource{Secret(std::string(Trim(*flag))), "--api-key"};
  if (const std::string value = context.Environment("EXPANSE_API_KEY"); !value.empty())
    return KeySource{Secret(std::string(Trim(value))), "EXPANSE_API_KEY"};
  if (!context.terminal.can_prompt()) return KeySource{};
  context.terminal.Err("API key (exp_user_...): ");
  EXPANSE_TRY(const std::string line, context.terminal.ReadLine(true));
  return KeySource{Secret(std::string(Trim(line))), "the answer"};
}

Result<int> RunLogin(Context& context, const Args& args) {
  EXPANSE_TRY(const auto store, OpenCredentialStore(context));
  // A broken file is what login repairs, so it is no obstacle here.
  auto existing = store.Load().value_or(std::nullopt);
  std::string url(kDefaultControlPlane);
  if (existing) url = existing->control_plane_url;
  if (const auto value = context.Environment("EXPANSE_API_URL"); !value.empty()) url = value;
  url = args.Text("--control-plane").value_or(url);
  while (url.ends_with('/')) url.pop_back();

  EXPANSE_TRY(const auto found, FindKey(context, args));
  if (found.key.empty())
    return UsageFailure(
        context, kLogin,
        fmt::format("no API key: pass --api-key or set EXPANSE_API_KEY. {}", kWhereKeys));
  if (!found.key.Reveal().starts_with(kKeyPrefix))
    return UsageFailure(context, kLogin,
                        fmt::format("{} is not a personal API key: those begin with {}. {}",
                                    found.origin, kKeyPrefix, kWhereKeys));

  Credentials credentials;
  credentials.control_plane_url = url;
  credentials.api_key = found.key;
  credentials.organisation_id = args.Text("--organisation-id").value_or("");
  EXPANSE_TRY(credentials.session,
              MintSession(context, url, credentials.api_key, credentials.organisation_id));
  credentials.session_url = url;
  {
    const auto lock = store.Lock();
    EXPANSE_CHECK_OK(store.Save(credentials));
  }
  const auto& identity = credentials.session.identity();
  context.terminal.Out(fmt::format("Signed in as {}, organisation {}, at {}.\n",
                                   EscapeForTerminal(identity.email()),
                                   EscapeForTerminal(identity.organisation()), url));
  context.Progress("Credentials are in " + store.path() + ".");
  return kExitOk;
}

std::string OrUnknown(const std::string& value, std::string_view reason) {
  return value.empty() ? Unknown(reason) : EscapeForTerminal(value);
}

Result<int> RunStatus(Context& context, const Args& args) {
  EXPANSE_TRY(const auto session, Session::Open(context));
  const control::v1::AuthServiceClient client(session->control());
  EXPANSE_TRY(const auto who, client.WhoAmI("", {}));
  if (args.Bool("--json")) {
    EXPANSE_TRY(const auto json, PrettyJson(who));
    context.terminal.Out(json);
    return kExitOk;
  }
  const auto& identity = who.identity();
  const auto& endpoints = who.has_endpoints() ? who.endpoints() : session->endpoints();
  std::vector<std::string> teams;
  for (const auto& team : identity.teams()) teams.push_back(EscapeForTerminal(team));
  std::string out = Row("user", OrUnknown(identity.name(), "the control plane has no name"));
  out += Row("email", OrUnknown(identity.email(), "the control plane has no address"));
  out += Row("organisation", OrUnknown(identity.organisation(), "the organisation has no name"));
  out += Row("organisation_id", OrUnknown(identity.organisation_id(), ""));
  out += Row("role", OrUnknown(identity.role(), ""));
  out += Row("teams", teams.empty() ? "none" : Join(teams, ", "));
  out += Row("control_plane", EscapeForTerminal(session->control_plane_url()));
  out += Row("data_plane", OrUnknown(endpoints.data_plane_url(), "the control plane names none"));
  out += Row("session_expires", FormatSecond(session->minted().expires_at_ms()));
  context.terminal.Out(out);
  return kExitOk;
}

Result<int> RunRefresh(Context& context, const Args& args) {
  EXPANSE_TRY(const auto session, Session::Open(context, false));
  EXPANSE_CHECK_OK(session->Refresh(args.Text("--organisation-id").value_or("")));
  context.terminal.Out(fmt::format("New session for {}, organisation {}, until {}.\n",
                                   EscapeForTerminal(session->identity().email()),
                                   EscapeForTerminal(session->identity().organisation()),
                                   FormatSecond(session->minted().expires_at_ms())));
  return kExitOk;
}

constexpr Flag kLoginFlags[] = {
    {.name = "--api-key",
     .doc = "personal API key (exp_user_...)",
     .default_text = "EXPANSE_API_KEY, else asked for on a terminal",
     .value_name = "KEY"},
    {.name = "--control-plane",
     .kind = FlagKind::kUrl,
     .doc = "control plane of a self-hosted deployment",
     .default_text = "EXPANSE_API_URL, else that of the existing session"},
    {.name = "--organisation-id",
     .doc = "organisation to sign in to",
     .default_text = "the key's own",
     .value_name = "ID"},
};
constexpr Example kLoginExamples[] = {
    {"expanse login", "asks for the key without showing it"},
    {"expanse login --control-plane https://expanse.example.org"},
    {"EXPANSE_API_KEY=exp_user_... expanse login", "in a script"},
};

constexpr Flag kStatusFlags[] = {
    {.name = "--json", .kind = FlagKind::kBool, .doc = "the raw JSON response"}};
constexpr Example kStatusExamples[] = {{"expanse status"}};

constexpr Flag kRefreshFlags[] = {{.name = "--organisation-id",
                                   .doc = "organisation to switch to",
                                   .default_text = "the current one",
                                   .value_name = "ID"}};
constexpr Example kRefreshExamples[] = {{"expanse refresh"}};

}  // namespace

const Command kLogin{
    .name = "login",
    .group = kGroupAccount,
    .summary = "stores the personal API key and opens a session",
    .description =
        "The key goes to the control plane for sign-in and nowhere else. It is kept in "
        "~/.expanse/credentials.json, which only you can read. Keys are created in the console "
        "under Settings.",
    .flags = kLoginFlags,
    .examples = kLoginExamples,
    .run = RunLogin,
};

const Command kStatus{
    .name = "status",
    .group = kGroupAccount,
    .summary = "shows who you are signed in as, and where",
    .flags = kStatusFlags,
    .examples = kStatusExamples,
    .run = RunStatus,
};

const Command kRefresh{
    .name = "refresh",
    .group = kGroupAccount,
    .summary = "opens a fresh session now, or in another organisation",
    .description = "Every command refreshes an old session by itself; this forces it.",
    .flags = kRefreshFlags,
    .examples = kRefreshExamples,
    .run = RunRefresh,
};

}  // namespace expanse::cli
