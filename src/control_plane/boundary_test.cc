// SPDX-License-Identifier: Apache-2.0
// The control plane must not be able to hold workload data. These tests read its contract and its
// schema, so that a field that could is a failing build.
#include <set>

#include "base/strings.h"
#include "control_plane/plane_fixture.h"

namespace expanse::control_plane {
namespace {

namespace v1 = control::v1;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

/// Words, as parts of a snake_case name, that stand for what a job runs, uses, prints or is.
const std::set<std::string> kWorkloadWords{
    "script",    "scripts",   "command",     "commands", "cmd",        "argv",
    "args",      "argument",  "arguments",   "env",      "environ",    "environment",
    "path",      "paths",     "file",        "files",    "filename",   "dir",
    "directory", "workdir",   "cwd",         "metric",   "metrics",    "series",
    "sample",    "samples",   "point",       "points",   "job",        "jobs",
    "jobid",     "step",      "steps",       "task",     "tasks",      "stdout",
    "stderr",    "log",       "logs",        "tail",     "output",     "line",
    "lines",     "bundle",    "source",      "sources",  "content",    "body",
    "payload",   "execution", "executions",  "run",      "runs",       "partition",
    "queue",     "account",   "uid",         "gid",      "username",   "memory",
    "cpu",       "cpus",      "walltime",    "runtime",  "exit",       "signal",
    "stack",     "trace",     "frame",       "image",    "container",  "pod",
    "namespace", "manifest",  "model",       "dataset",  "prediction", "recommendation",
    "diagnosis", "hostname",  "node",        "pid",      "bytes",      "blob",
    "extra",     "metadata",  "annotations", "labels",   "tags",       "attributes",
    "data",
};
/// Names that hold a word above and are no door for workload data: an address of a plane.
const std::set<std::string> kExempt{"data_plane_url"};

bool IsWorkloadName(const std::string& name) {
  if (kExempt.contains(name)) return false;
  for (const auto word : Split(name, '_'))
    if (kWorkloadWords.contains(std::string(word))) return true;
  return name.find("scheduler_user") != std::string::npos ||
         name.find("submit") != std::string::npos;
}

void WalkMessage(const Descriptor* message, std::set<std::string>* seen) {
  if (!seen->insert(message->full_name()).second) return;
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    EXPECT_FALSE(IsWorkloadName(field->name())) << field->full_name();
    EXPECT_NE(field->type(), FieldDescriptor::TYPE_BYTES)
        << field->full_name() << ": bytes can hold anything";
    if (field->is_map()) {
      EXPECT_EQ(field->full_name(), "expanse.control.v1.AuditEvent.details")
          << "a free map can hold anything; that one has a closed list of keys (store/audit.h)";
    }
    if (field->message_type() != nullptr) {
      EXPECT_EQ(field->message_type()->file()->package(), "expanse.control.v1")
          << field->full_name() << " reaches into another plane's messages";
      WalkMessage(field->message_type(), seen);
    }
  }
  for (int i = 0; i < message->nested_type_count(); ++i) WalkMessage(message->nested_type(i), seen);
}

TEST(Boundary, NoMessageOfTheContractHasAFieldForWorkloadData) {
  const auto* file = v1::Compute::descriptor()->file();
  std::set<std::string> seen;
  for (int i = 0; i < file->message_type_count(); ++i) WalkMessage(file->message_type(i), &seen);
  for (int s = 0; s < file->service_count(); ++s)
    for (int m = 0; m < file->service(s)->method_count(); ++m) {
      WalkMessage(file->service(s)->method(m)->input_type(), &seen);
      WalkMessage(file->service(s)->method(m)->output_type(), &seen);
    }
  EXPECT_GT(seen.size(), 40U) << "the walk saw the whole contract";
}

TEST(Boundary, TheWalkWouldSeeAWorkloadField) {
  for (const char* name :
       {"script", "job_id", "command_line", "stdout_tail", "work_dir", "source_path", "metric",
        "scheduler_user", "submit_time_ms", "exit_code"})
    EXPECT_TRUE(IsWorkloadName(name)) << name;
  for (const char* name : {"scheduler_identity", "daemon_version", "nodes", "gpus", "email",
                           "install_token", "compute_id", "control_plane_url"})
    EXPECT_FALSE(IsWorkloadName(name)) << name;
}

class BoundarySchema : public PlaneFixture {};

TEST_F(BoundarySchema, NoTableHasAColumnForWorkloadData) {
  const auto tables = plane_->database().Query(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
      "AND name <> 'schema_migration'");
  ASSERT_TRUE(tables.ok()) << tables.error().message();
  ASSERT_GE(tables->size(), 10U);
  for (const auto table : *tables) {
    const std::string name = table.Text(0);
    EXPECT_FALSE(IsWorkloadName(name)) << name;
    const auto columns =
        plane_->database().Query("SELECT name, type FROM pragma_table_info($1)", {name});
    ASSERT_TRUE(columns.ok()) << columns.error().message();
    bool has_org = false;
    for (const auto column : *columns) {
      EXPECT_FALSE(IsWorkloadName(column.Text(0))) << name << "." << column.Text(0);
      EXPECT_NE(column.Text(1), "BYTEA") << name << "." << column.Text(0);
      has_org = has_org || column.Text(0) == "org_id";
    }
    EXPECT_TRUE(has_org) << name << " has no organisation";
    EXPECT_EQ((*columns)[0].Text(0), "org_id") << name << " does not begin with it";
  }
}

TEST_F(BoundarySchema, AuditDetailsHaveAClosedListOfKeys) {
  ASSERT_TRUE(RegisterCompute(owner_).ok());
  const std::set<std::string> allowed{"name",     "email",        "role",
                                      "team_id",  "user_id",      "compute_id",
                                      "key_hint", "compute_type", "scheduler_identity",
                                      "reason"};
  const auto events = Org().ListAuditEvents(owner_, {});
  ASSERT_TRUE(events.ok());
  for (const auto& event : events->events())
    for (const auto& [key, value] : event.details()) {
      EXPECT_TRUE(allowed.contains(key)) << key;
      EXPECT_LE(value.size(), 256U);
    }
}

}  // namespace
}  // namespace expanse::control_plane
