// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/ids.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/metrics_format.h"
#include "cli/session.h"
#include "cli/text.h"
#include "domain/metric_catalogue.h"
#include "expanse/data/v1/data.rpc.h"

namespace expanse::cli {
namespace {

constexpr int64_t kDefaultMaxPoints = 5000;
constexpr std::string_view kAggregations[] = {"avg", "min", "max", "sum", "p95", "last"};

data::v1::MetricAggregation AggregationFromWord(std::string_view word) {
  constexpr data::v1::MetricAggregation kValues[] = {
      data::v1::METRIC_AGGREGATION_AVG, data::v1::METRIC_AGGREGATION_MIN,
      data::v1::METRIC_AGGREGATION_MAX, data::v1::METRIC_AGGREGATION_SUM,
      data::v1::METRIC_AGGREGATION_P95, data::v1::METRIC_AGGREGATION_LAST};
  for (size_t i = 0; i < std::size(kAggregations); ++i)
    if (kAggregations[i] == word) return kValues[i];
  return data::v1::METRIC_AGGREGATION_UNSPECIFIED;
}

/// What was asked, after the rules that a table cannot hold.
struct Question {
  std::string execution_id;  // empty: by --job
  data::v1::QueryMetricsRequest request;
};

/// A usage error is a kInvalidArgument here; the caller prints it as one.
Result<Question> ReadQuestion(const Context& context, const Args& args) {
  const auto usage = [](std::string message) {
    return Error(Code::kInvalidArgument, std::move(message));
  };
  Question q;
  std::vector<std::string> names = args.positionals();
  if (!args.Has("--job")) {
    if (names.empty())
      return usage("missing argument <execution-id>; see `expanse executions`, or give --job");
    q.execution_id = names.front();
    names.erase(names.begin());
    if (!IsUuid(q.execution_id))
      return usage(
          fmt::format("'{0}' is not an execution id; for a scheduler's job id write "
                      "--job {0} --source-type slurm",
                      q.execution_id));
  }
  if (names.empty() && !args.Bool("--all"))
    return usage("name at least one metric, e.g. cpu memory, or --all with --cupti or --dcgm");
  if (!names.empty() && args.Bool("--all"))
    return usage("--all and named metrics exclude each other");
  if (args.Bool("--all") && !args.Bool("--cupti") && !args.Bool("--dcgm"))
    return usage("--all needs --cupti or --dcgm");
  for (const auto& name : names) q.request.add_metrics(ToUtf8(name));

  if (const auto interval = args.Duration("--interval")) {
    if (interval->count() <= 0 || interval->count() % 1000 != 0)
      return usage("--interval is a number of whole seconds, e.g. 5s or 1m");
    q.request.set_interval_ms(interval->count());
  }
  q.request.set_aggregation(AggregationFromWord(args.Text("--agg").value_or("avg")));
  if (const auto since = args.Duration("--since"))
    q.request.set_from_ms(ToUnixMillis(context.clock.Now() - *since));
  if (const auto from = args.Time("--from")) q.request.set_from_ms(ToUnixMillis(*from));
  if (const auto to = args.Time("--to")) q.request.set_to_ms(ToUnixMillis(*to));
  if (q.request.has_from_ms() && q.request.has_to_ms() && q.request.from_ms() >= q.request.to_ms())
    return usage("--from is not before --to");
  if (const auto gpu = args.Int("--gpu")) q.request.set_gpu_index(static_cast<int32_t>(*gpu));
  if (args.Bool("--cupti")) q.request.set_source("cupti");
  if (args.Bool("--dcgm")) q.request.set_source("dcgm");
  q.request.set_allow_fallback(args.Bool("--allow-fallback"));
  q.request.set_max_points(
      static_cast<int32_t>(args.Int("--max-points").value_or(kDefaultMaxPoints)));
  return q;
}

std::string NearestMetric(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& metric : domain::MetricCatalogue()) names.emplace_back(metric.name);
  const auto nearest = NearestName(name, names);
  if (!nearest || *nearest == name) return "";
  return ", did you mean " + *nearest + "?";
}

void Warn(const Context& context, const data::v1::QueryMetricsResponse& response) {
  // A map has no order; warnings do.
  const std::map<std::string, std::string> unknown(response.unknown().begin(),
                                                   response.unknown().end());
  for (const auto& [name, reason] : unknown)
    context.Warn(fmt::format("{}: unknown ({}){}", name, reason, NearestMetric(name)));
  bool truncated = false;
  bool fallback = false;
  for (const auto& series : response.series()) {
    truncated = truncated || series.truncated();
    fallback = fallback || series.scope() == data::v1::METRIC_SCOPE_COMPUTE;
  }
  if (truncated)
    context.Warn("a series was cut at --max-points; a wider --interval shows all of it");
  if (fallback) context.Warn("nothing is scoped to this execution; other jobs' devices can appear");
}

Result<int> RunMetrics(Context& context, const Args& args) {
  auto question = ReadQuestion(context, args);
  if (!question.ok()) return UsageFailure(context, kMetrics, question.error().message());
  auto& request = question->request;
  EXPANSE_TRY(const auto session, Session::Open(context));
  request.set_execution_id(question->execution_id);
  if (const auto job = args.Text("--job")) {
    EXPANSE_TRY(const auto execution,
                ResolveNativeId(context, *session, SourceTypeFromWord(*args.Text("--source-type")),
                                *job, ""));
    request.set_execution_id(execution.execution_id());
  }
  const data::v1::MetricsServiceClient client(session->data());
  data::v1::QueryMetricsResponse response;
  if (args.Bool("--all")) {
    data::v1::ListMetricsRequest list;
    list.set_execution_id(request.execution_id());
    list.set_source(request.source());
    EXPANSE_TRY(const auto names, client.ListMetrics("", list));
    for (const auto& name : names.metrics()) request.add_metrics(name);
    context.Progress(fmt::format("{} metrics of {}", names.metrics_size(), request.source()));
  }
  if (!request.metrics().empty()) {
    EXPANSE_TRY(response, client.QueryMetrics("", request));
  }
  Warn(context, response);
  if (args.Bool("--json")) {
    EXPANSE_TRY(const auto json, PrettyJson(response));
    context.terminal.Out(json);
  } else if (args.Bool("--csv")) {
    context.terminal.Out(MetricsCsv(response));
  } else {
    context.terminal.Out(MetricsSummary(context, response));
  }
  if (!response.series().empty()) return kExitOk;
  return Error(Code::kNotFound,
               fmt::format("execution {} has no such series{}", request.execution_id(),
                           request.source().empty() ? "" : " from " + request.source()));
}

constexpr Positional kPositionals[] = {
    {.name = "execution-id", .doc = "whose series; not with --job", .required = false},
    {.name = "metric",
     .doc = "gpu-util, gpu-memory-used, gpu-memory-total, gpu-power, gpu-temp, gpu-clock, cpu, "
            "memory, another name of the catalogue, or the native name of a CUPTI or DCGM counter",
     .required = false,
     .repeat = true},
};
constexpr Flag kFlags[] = {
    {.name = "--csv", .kind = FlagKind::kBool, .doc = "long-format CSV, one row a point"},
    {.name = "--json", .kind = FlagKind::kBool, .doc = "the raw JSON response"},
    {.name = "--interval",
     .kind = FlagKind::kDuration,
     .doc = "bucket width in whole seconds, e.g. 5s or 1m",
     .default_text = "chosen from the window"},
    {.name = "--agg",
     .kind = FlagKind::kChoice,
     .doc = "value of a bucket",
     .default_text = "avg",
     .choices = kAggregations},
    {.name = "--since", .kind = FlagKind::kDuration, .doc = "from so long ago until now, e.g. 2h"},
    {.name = "--from",
     .kind = FlagKind::kTime,
     .doc = "start of the window (RFC 3339), cut to the execution's own life"},
    {.name = "--to", .kind = FlagKind::kTime, .doc = "end of the window, cut likewise"},
    {.name = "--gpu", .kind = FlagKind::kInt, .doc = "only this GPU index", .least = 0},
    {.name = "--allow-fallback",
     .kind = FlagKind::kBool,
     .doc = "series of the whole compute when none is scoped to the execution; other jobs' GPUs "
            "can appear"},
    {.name = "--cupti", .kind = FlagKind::kBool, .doc = "only CUPTI PM sampling series"},
    {.name = "--dcgm", .kind = FlagKind::kBool, .doc = "only DCGM series"},
    {.name = "--all",
     .kind = FlagKind::kBool,
     .doc = "every metric of the selected source; needs --cupti or --dcgm"},
    {.name = "--job", .doc = "find the execution by the scheduler's job id", .value_name = "ID"},
    {.name = "--source-type",
     .kind = FlagKind::kChoice,
     .doc = "which scheduler's id --job is",
     .choices = kSourceTypes},
    {.name = "--max-points",
     .kind = FlagKind::kInt,
     .doc = "points of a series at most",
     .default_text = "5000",
     .least = 1},
};
constexpr Rule kRules[] = {
    {Rule::kExcludes, "--csv", "--json"},        {Rule::kExcludes, "--cupti", "--dcgm"},
    {Rule::kExcludes, "--since", "--from"},      {Rule::kExcludes, "--since", "--to"},
    {Rule::kRequires, "--job", "--source-type"}, {Rule::kRequires, "--source-type", "--job"},
};
constexpr Example kExamples[] = {
    {"expanse metrics <execution-id> gpu-util gpu-memory-used --csv > gpu.csv"},
    {"expanse metrics <execution-id> cpu memory --interval 30s --agg max"},
    {"expanse metrics --job 41982 --source-type slurm gpu-util", "by SLURM job id"},
    {"expanse metrics <execution-id> --dcgm --all --csv", "every DCGM counter"},
};

}  // namespace

const Command kMetrics{
    .name = "metrics",
    .group = kGroupWorkloads,
    .summary = "exports metric series of one execution as a table, CSV or JSON",
    .description =
        "Without --csv or --json it prints one row a series: least, mean and greatest sample and "
        "the newest bucket. CSV and JSON carry the units of the catalogue: cores, bytes, ratios "
        "from 0 to 1. A metric that was never seen is named on standard error with its reason.",
    .positionals = kPositionals,
    .flags = kFlags,
    .rules = kRules,
    .examples = kExamples,
    .run = RunMetrics,
};

}  // namespace expanse::cli
