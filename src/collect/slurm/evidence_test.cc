// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/evidence.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/slurm/log_path.h"
#include "collect/slurm/secrets_filter.h"
#include "collect/slurm/submit_line.h"
#include "collect/slurm/test_support.h"

namespace expanse::collect::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct SecretCase {
  const char* name;
  const char* text;
  const char* want;
};
class Secrets : public ::testing::TestWithParam<SecretCase> {};

TEST_P(Secrets, AreTakenOut) {
  const FilteredText out = FilterSecrets(GetParam().text);
  EXPECT_EQ(out.text, GetParam().want);
  EXPECT_EQ(out.replaced, 1);
  EXPECT_EQ(FilterSecrets(out.text).replaced, 0);
}
#define MARK "[secret removed]"
INSTANTIATE_TEST_SUITE_P(
    Forms, Secrets,
    ::testing::ValuesIn(std::vector<SecretCase>{
        {"OurUserKey", "key exp_user_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG end",
         "key " MARK " end"},
        {"OurInstallToken", "exp_install_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG", MARK},
        {"AwsKeyId", "id AKIAIOSFODNN7EXAMPLE", "id " MARK},
        {"AwsSecret", "aws_secret_access_key = \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\"",
         "aws_secret_access_key = \"" MARK "\""},
        {"GitHub", "x ghp_abcdefghijklmnopqrstuvwxyz0123456789", "x " MARK},
        {"HuggingFace", "login hf_abcdefghijklmnopqrstuvwxyz01234567", "login " MARK},
        {"Jwt", "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl-_x", MARK},
        {"BearerHeader", "Authorization: Bearer abcdef0123456789abcdef",
         "Authorization: Bearer " MARK},
        {"BasicHeader", "curl -H 'Authorization: Basic dXNlcjpwYXNzd29yZA=='",
         "curl -H 'Authorization: Basic " MARK "'"},
        {"ShellPassword", "export DB_PASSWORD=hunter22\n", "export DB_PASSWORD=" MARK "\n"},
        {"JsonPassword", "{\"password\": \"hunter2\"}", "{\"password\": \"" MARK "\"}"},
        {"PythonToken", "wandb_token = 'abcdef0123456789'", "wandb_token = '" MARK "'"},
        {"YamlSecret", "client_secret: abc123def456", "client_secret: " MARK},
        {"UrlPassword", "postgres://alice:s3cret@db.example.org/x",
         "postgres://alice:" MARK "@db.example.org/x"},
        {"PrivateKey",
         "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\nBBBB\n-----END OPENSSH PRIVATE KEY-----\nb",
         "a\n" MARK "\nb"},
        {"EscapedJson", R"(body: "{\"user\": \"a\", \"password\": \"hunter2\", \"n\": \"x\"}")",
         R"(body: "{\"user\": \"a\", \"password\": \")" MARK R"(\", \"n\": \"x\"}")"},
        {"JsonWithAnEscapedQuote", R"({"password": "ab\"cd", "n": 1})",
         R"({"password": ")" MARK R"(", "n": 1})"},
        {"OptionAndLiteral", "python train.py --hf-token hf_abc123 --epochs 3",
         "python train.py --hf-token " MARK " --epochs 3"},
        {"OptionAndQuotedLiteral", "curl --password 'correct horse' x",
         "curl --password '" MARK "' x"},
        {"OptionOnTheNextLine", "login \\\n  --api-key \\\n  s3cr3t\n",
         "login \\\n  --api-key \\\n  " MARK "\n"},
        {"CutPrivateKey", "-----BEGIN RSA PRIVATE KEY-----\nAAAA", MARK},
    }),
    [](const auto& i) { return std::string(i.param.name); });

TEST(SecretsFilter, LeavesCodeAndOrdinaryTextAlone) {
  for (const char* text : {
           "tokenizer.pad_token = tokenizer.eos_token",
           "max_tokens=512 num_tokens: 1000",
           "pad_token=\"<pad>\"",
           "password = getpass.getpass()",
           "token = os.environ['TOKEN']",
           "API_KEY=$API_KEY",
           "password=${DB_PASSWORD}",
           "the bearer of this",
           "https://example.org:8080/a@b",
           "if token == other:",
           "git clone ssh://git@example.org/x",
           "a sk-learn model, asset AKIA",
           "--max-token 512 --pad_token eos --password $PASSWORD --token ${TOKEN}",
           "parser.add_argument('--token', help='x1')",
           "cmd = '--token ' + token1",
           "the option --password is required, --token-file x1",
           "\xff\xfe\x00 binary",
       })
    EXPECT_EQ(FilterSecrets(text).text, text) << text;
}

struct LineCase {
  const char* line;
  const char* want;
};

TEST(CommandLineFilter, TakesWhatWordsTellInTheirOrder) {
  for (const LineCase& c : std::vector<LineCase>{
           {"sbatch --export=ALL,WANDB=x1,B=,C job.sh",
            "sbatch --export=ALL,WANDB=" MARK ",B=,C job.sh"},
           {"sbatch --export A=1,B=2 job.sh", "sbatch --export A=" MARK ",B=" MARK " job.sh"},
           {"sbatch job.sh --password x y", "sbatch job.sh --password " MARK " y"},
           {"sbatch job.sh --token hf_abc", "sbatch job.sh --token " MARK},
           {"sbatch job.sh --db-password=x y", "sbatch job.sh --db-password=" MARK " y"},
           {"sbatch --wrap=PGPASSWORD=x psql", "sbatch --wrap=PGPASSWORD=" MARK " psql"},
           {"sbatch --wrap export API_KEY=\"a b\" ; run",
            "sbatch --wrap export API_KEY=\"" MARK " " MARK " ; run"},
           {"x.sh -u alice:pw -n 1", "x.sh -u alice:" MARK " -n 1"},
           {"x.sh sshpass -p pw ssh h", "x.sh sshpass -p " MARK " ssh h"},
           {"x.sh -H Authorization: Bearer abcdef0123456789abcdef",
            "x.sh -H Authorization: Bearer " MARK},
           {"x.sh postgres://a:b@h/d", "x.sh postgres://a:" MARK "@h/d"},
       }) {
    EXPECT_EQ(FilterCommandLine(c.line).text, c.want) << c.line;
    EXPECT_GT(FilterCommandLine(c.line).replaced, 0) << c.line;
  }
}

TEST(CommandLineFilter, LeavesParametersAlone) {
  for (const char* line : {
           "sbatch --export=ALL,PATH --mem=4G  job.sh --max-token 512 --pad-token eos",
           "sbatch job.sh --tokenizer gpt2 --seed 1 --lr=1e-4",
           "x.sh -u 1000:100 --password $PW --token=$T --user tcp://h:1",
           "python -u train.py",
           "",
       })
    EXPECT_EQ(FilterCommandLine(line).text, line);
}

TEST(CommandLineFilter, WordsStayWords) {
  std::vector<std::string> words = {"a", "--password", "x", "--url", "ftp://u:p@h", "b"};
  EXPECT_EQ(FilterArguments(&words), 2);
  EXPECT_THAT(words, ElementsAre("a", "--password", MARK, "--url", "ftp://u:" MARK "@h", "b"));
}

TEST(CommandLineFilter, FactsHoldNoSecretOfASubmitLine) {
  JobRecord job;
  job.job_id = 5;
  job.submit_line = "sbatch --export=ALL,KEY=abc job.sh --token hf_xyz1";
  job.command = "/home/a/job.sh --token hf_xyz1";
  const auto facts = BuildFacts(job, {5, 1, 0}, {}).execution();
  EXPECT_EQ(facts.submit_line(), "sbatch --export=ALL,KEY=" MARK " job.sh --token " MARK);
  EXPECT_EQ(facts.command(), "/home/a/job.sh --token " MARK);
}

TEST(LogPath, ExpandsWhatSbatchExpands) {
  LogPathContext c;
  c.job_id = 27;
  c.array_job_id = 12;
  c.array_task_id = 3;
  c.job_name = "na me";
  c.user = "bob";
  c.first_node = "n7";
  c.work_dir = "/home/bob";
  EXPECT_EQ(ExpandLogPath("%x-%A_%a.out", c), "/home/bob/na me-12_3.out");
  EXPECT_EQ(ExpandLogPath("/logs/%u/%5j-%N-%t-%n.err", c), "/logs/bob/00027-n7-0-0.err");
  EXPECT_EQ(ExpandLogPath("", c), "/home/bob/slurm-12_3.out");
  EXPECT_EQ(ExpandLogPath("100%%", c), "/home/bob/100%");
  EXPECT_EQ(ExpandLogPath("\\%j", c), "/home/bob/%j");
  EXPECT_EQ(ExpandLogPath("%", c), std::nullopt);
  EXPECT_EQ(ExpandLogPath("%Q", c), std::nullopt);
  c.first_node = "";
  EXPECT_EQ(ExpandLogPath("%N", c), std::nullopt);
  c.work_dir = "";
  EXPECT_EQ(ExpandLogPath("x", c), std::nullopt);
  LogPathContext plain;
  plain.job_id = 5;
  plain.work_dir = "/w";
  EXPECT_EQ(ExpandLogPath("", plain), "/w/slurm-5.out");
  EXPECT_EQ(ExpandLogPath("%A_%a", plain), "/w/5_4294967294");
}

TEST(SubmitLine, OptionsInEverySpellingLastOneCounts) {
  EXPECT_EQ(SubmitLineOption("sbatch --output=a -o b x.sh", "output", 'o'), "b");
  EXPECT_EQ(SubmitLineOption("sbatch -oc x.sh", "output", 'o'), "c");
  EXPECT_EQ(SubmitLineOption("sbatch --output d x.sh", "output", 'o'), "d");
  EXPECT_EQ(SubmitLineOption("sbatch x.sh", "output", 'o'), std::nullopt);
}

class EvidenceFiles : public ::testing::Test {
 protected:
  EvidenceFiles() {
    passwd* me = getpwuid(geteuid());
    user_ = me == nullptr ? "" : me->pw_name;
    run_.id = {5, 1796079724, 0};
    run_.user = user_;
    run_.batch = true;
    chmod(dir_.path().c_str(), 0755);
  }
  void Write(const std::string& name, const std::string& bytes, mode_t mode = 0644) {
    ASSERT_TRUE(fs_.WriteAtomic(dir_.path() + "/" + name, bytes, mode).ok());
  }
  platform::TempDir dir_;
  platform::Fs fs_;
  platform::FakeClock clock_{FromUnixMillis(0)};
  platform::FakeRandom random_{1};
  platform::RecordedProcessRunner runner_;
  SlurmTools tools_{SlurmToolsOptions{}, runner_, clock_, random_};
  EvidenceReader reader_{tools_, fs_};
  RunState run_;
  std::string user_;
};

TEST_F(EvidenceFiles, ALogTailIsBoundedAndFiltered) {
  if (user_.empty()) GTEST_SKIP() << "this user has no name here";
  Write("out", std::string(200'000, 'x') + "\nDB_PASSWORD=hunter22\nlast line\n");
  Write("err", "");
  run_.stdout_path = dir_.path() + "/out";
  run_.stderr_path = dir_.path() + "/err";
  const auto tails = reader_.LogTails(run_);
  ASSERT_EQ(tails.size(), 2u);
  EXPECT_EQ(tails[0].stream(), "stdout");
  EXPECT_EQ(tails[0].content().size(), kLogTailBytes);
  EXPECT_THAT(tails[0].content(), HasSubstr("DB_PASSWORD=[secret removed]\nlast line\n"));
  EXPECT_EQ(tails[0].filtered_secrets(), 1);
  EXPECT_GT(tails[0].total_bytes(), 200'000);
  EXPECT_EQ(tails[1].unknown_reason(), "");
  EXPECT_EQ(tails[1].total_bytes(), 0);
}

TEST_F(EvidenceFiles, OneFileForBothStreamsIsReadOnce) {
  if (user_.empty()) GTEST_SKIP() << "this user has no name here";
  Write("out", "hello\n");
  run_.stdout_path = run_.stderr_path = dir_.path() + "/out";
  const auto tails = reader_.LogTails(run_);
  EXPECT_EQ(tails[0].content(), "hello\n");
  EXPECT_THAT(tails[1].unknown_reason(), HasSubstr("file of stdout"));
}

TEST_F(EvidenceFiles, WhatTheJobsUserMayNotReadIsNamedAndNotRead) {
  if (geteuid() != 0 || getpwnam("nobody") == nullptr) GTEST_SKIP() << "needs root";
  Write("secret", "of root\n", 0600);
  Write("public", "of all\n");
  ASSERT_EQ(symlink((dir_.path() + "/secret").c_str(), (dir_.path() + "/link").c_str()), 0);
  run_.user = "nobody";
  for (const char* name : {"secret", "link"}) {
    run_.stdout_path = dir_.path() + "/" + name;
    run_.stderr_path = dir_.path() + "/public";
    const auto tails = reader_.LogTails(run_);
    EXPECT_EQ(tails[0].content(), "") << name;
    EXPECT_THAT(tails[0].unknown_reason(), HasSubstr("may not read")) << name;
    EXPECT_EQ(tails[1].content(), "of all\n");
  }
  // Also when only a directory above keeps the user out.
  ASSERT_EQ(mkdir((dir_.path() + "/closed").c_str(), 0700), 0);
  Write("closed/open", "x");
  run_.stdout_path = dir_.path() + "/closed/open";
  EXPECT_THAT(reader_.LogTails(run_)[0].unknown_reason(), HasSubstr("may not read"));
}

/// Root without its rights over files, as on a home directory that a server squashes root on.
void DropRightsOverFiles() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
  for (const int right : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
    data[0].effective &= ~(1u << right);
    data[0].permitted &= ~(1u << right);
  }
  ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
}

TEST_F(EvidenceFiles, ALogOnAHomeWhereRootIsNobodyIsReadWithTheUsersRights) {
  const passwd* nobody = getpwnam("nobody");
  if (geteuid() != 0 || nobody == nullptr) GTEST_SKIP() << "needs root";
  ASSERT_EQ(mkdir((dir_.path() + "/home").c_str(), 0700), 0);
  Write("home/out", "of nobody\n", 0600);
  Write("home/job a.sh", "true\n", 0600);
  for (const char* name : {"/home/out", "/home/job a.sh", "/home"})
    ASSERT_EQ(chown((dir_.path() + name).c_str(), nobody->pw_uid, nobody->pw_gid), 0);
  run_.user = "nobody";
  run_.stdout_path = dir_.path() + "/home/out";
  run_.command = dir_.path() + "/home/job a.sh first";
  platform::ProcessResult script;
  script.out = "#!/bin/bash\ntrue\n";
  runner_.Add({"scontrol", "write", "batch_script", "5", "-"}, script);
  std::vector<data::v1::LogTail> tails;
  data::v1::SourceBundle bundle;
  std::thread([&] {  // such rights are a thread's own
    DropRightsOverFiles();
    tails = reader_.LogTails(run_);
    bundle = reader_.Bundle(run_);
  })
      .join();
  ASSERT_EQ(tails.size(), 2u);
  EXPECT_EQ(tails[0].content(), "of nobody\n") << tails[0].unknown_reason();
  EXPECT_THAT(bundle.arguments(), ElementsAre("first"));
}

TEST_F(EvidenceFiles, AFifoOrADirectoryIsNamedAndNeverWaitedFor) {
  if (user_.empty()) GTEST_SKIP() << "this user has no name here";
  ASSERT_EQ(mkfifo((dir_.path() + "/fifo").c_str(), 0644), 0);
  run_.stdout_path = dir_.path() + "/fifo";
  run_.stderr_path = dir_.path();
  for (const auto& tail : reader_.LogTails(run_))
    EXPECT_THAT(tail.unknown_reason(), HasSubstr("no regular file"));
}

TEST_F(EvidenceFiles, ABundleHoldsTheScriptAndItsSourcesWithoutTheirSecrets) {
  if (user_.empty()) GTEST_SKIP() << "this user has no name here";
  Write("train.py", "token = 'abcdef0123456789'\nprint(1)\n");
  Write("job.sh", "#!/bin/bash\npython3 train.py\n");
  platform::ProcessResult script;
  script.out = "#!/bin/bash\npython3 train.py\n";
  runner_.Add({"scontrol", "write", "batch_script", "5", "-"}, script);
  run_.command = dir_.path() + "/job.sh first second";
  run_.work_dir = dir_.path();
  const auto bundle = reader_.Bundle(run_);
  EXPECT_THAT(bundle.bundle_id(), HasSubstr("b1:"));
  EXPECT_THAT(bundle.arguments(), ElementsAre("first", "second"));
  EXPECT_EQ(bundle.key().native_id(), "5");
  bool found = false;
  for (const auto& file : bundle.files()) {
    EXPECT_THAT(file.content(), Not(HasSubstr("abcdef0123456789")));
    found = found || file.path() == "train.py";
  }
  EXPECT_TRUE(found);
  EXPECT_THAT(bundle.unknown().at("secrets"), HasSubstr("1 secrets"));
}

TEST_F(EvidenceFiles, SecretsOfArgumentsAreHashedButNotKept) {
  platform::ProcessResult script;
  script.out = "#!/bin/bash\ntrue\n";
  runner_.Add({"scontrol", "write", "batch_script", "5", "-"}, script);
  run_.command = dir_.path() + "/job.sh --password x1";
  const auto bundle = reader_.Bundle(run_);
  run_.command = dir_.path() + "/job.sh --password x2";
  const auto other = reader_.Bundle(run_);
  EXPECT_THAT(bundle.arguments(), ElementsAre("--password", MARK));
  EXPECT_NE(bundle.bundle_id(), other.bundle_id());
  EXPECT_THAT(bundle.unknown().at("secrets"), HasSubstr("1 secrets"));
}

TEST_F(EvidenceFiles, AScriptThatNobodyKeptIsANamedUnknown) {
  platform::ProcessResult nothing;  // exit status 0, as scontrol does for an id it does not know
  nothing.err = "job script retrieval failed: Invalid job id specified\n";
  runner_.Add({"scontrol", "write", "batch_script", "5", "-"}, nothing);
  platform::ProcessResult none;
  runner_.Add({"sacct", "--batch-script", "--jobs=5"}, none);
  const auto bundle = reader_.Bundle(run_);
  EXPECT_EQ(bundle.bundle_id(), "");
  EXPECT_THAT(bundle.unknown().at("script"), HasSubstr("Invalid job id"));
}

TEST_F(EvidenceFiles, AScriptThatIsTooLargeOrBinaryIsANamedUnknown) {
  platform::ProcessResult script;
  script.out = "#!/bin/bash\n" + std::string(100 << 20, '#');  // a site may raise max_script_size
  runner_.Add({"scontrol", "write", "batch_script", "5", "-"}, script);
  auto bundle = reader_.Bundle(run_);
  EXPECT_EQ(bundle.bundle_id(), "");
  EXPECT_EQ(bundle.files_size(), 0);
  EXPECT_THAT(bundle.unknown().at("script"), HasSubstr("larger than 4194304 bytes"));
  script.out = std::string(
      "\x7f"
      "ELF\0\xff",
      6);
  run_.id.job_id = 6;
  runner_.Add({"scontrol", "write", "batch_script", "6", "-"}, script);
  bundle = reader_.Bundle(run_);
  EXPECT_EQ(bundle.files_size(), 0);
  EXPECT_THAT(bundle.unknown().at("script"), HasSubstr("NUL byte"));
}

TEST_F(EvidenceFiles, ABinaryLogIsTakenByteForByte) {
  if (user_.empty()) GTEST_SKIP() << "this user has no name here";
  const std::string bytes("a\0\xff\xfe\x1b[2J\r\n", 11);
  Write("out", bytes);
  run_.stdout_path = dir_.path() + "/out";
  EXPECT_EQ(reader_.LogTails(run_)[0].content(), bytes);
}

TEST_F(EvidenceFiles, TheScriptThatAccountingKeptIsRead) {
  platform::ProcessResult nothing, stored;
  stored.out = Recorded("jobs/sacct-batch-script.txt");
  run_.id.job_id = 3;
  runner_.Add({"scontrol", "write", "batch_script", "3", "-"}, nothing);
  runner_.Add({"sacct", "--batch-script", "--jobs=3"}, stored);
  const auto bundle = reader_.Bundle(run_);
  ASSERT_EQ(bundle.files_size(), 1);
  EXPECT_THAT(bundle.files(0).content(), ::testing::StartsWith("#!/bin/bash\n#SBATCH"));
}

TEST_F(EvidenceFiles, PathsOfAForgottenJobComeFromItsSubmitLineAndScript) {
  if (user_.empty()) GTEST_SKIP() << "this user has no name here";
  Write("train-5.err", "boom\n");
  platform::ProcessResult script;
  script.out = "#!/bin/bash\n#SBATCH --output=%x-%j.out --error=%x-%j.err\ntrue\n";
  runner_.Add({"scontrol", "write", "batch_script", "5", "-"}, script);
  run_.name = "train";
  run_.work_dir = dir_.path();
  run_.submit_line = "sbatch -o other job.sh";
  const auto tails = reader_.LogTails(run_);
  EXPECT_EQ(tails[0].path(), dir_.path() + "/other");
  EXPECT_THAT(tails[0].unknown_reason(), HasSubstr("No such file"));
  EXPECT_EQ(tails[1].content(), "boom\n");
}

}  // namespace
}  // namespace expanse::collect::slurm
