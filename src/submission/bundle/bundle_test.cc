// SPDX-License-Identifier: Apache-2.0
#include "submission/bundle/bundle.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace expanse::submission {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BundleTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& bytes, mode_t mode = 0644) {
    const std::string full = dir_.path() + "/" + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full, std::ios::binary) << bytes;
    ::chmod(full.c_str(), mode);
  }
  Bundle Collect(const std::string& script, const std::string& sub = "") {
    BundleInput input;
    input.script = script;
    input.script_path = dir_.path() + sub + "/job.sh";
    input.submit_dir = dir_.path() + sub;
    auto bundle = CollectBundle(input, fs_);
    EXPECT_TRUE(bundle.ok());
    return std::move(bundle).value();
  }
  static std::vector<std::string> Paths(const Bundle& bundle) {
    std::vector<std::string> paths;
    for (const auto& file : bundle.files) paths.push_back(file.path);
    return paths;
  }

  platform::TempDir dir_;
  platform::Fs fs_;
};

TEST_F(BundleTest, FollowsPythonImportsInsideTheTree) {
  Write("train.py",
        "import os, json\nimport model\nfrom data.load import read, (x)\n"
        "if 1: import util as u\n\"\"\"import not_this\"\"\"\n");
  Write("model.py", "from .gone import x\nimport layers\n");
  Write("layers.py", "");
  Write("not_this.py", "");
  Write("data/__init__.py", "");
  Write("data/load.py", "from . import parse\n");
  Write("data/parse.py", "");
  Write("util.py", "");
  Write("unused.py", "");
  const auto bundle = Collect("#!/bin/bash\nsrun python3 -u train.py --epochs 3\n");
  EXPECT_THAT(Paths(bundle),
              ElementsAre("job.sh", "data/__init__.py", "data/load.py", "data/parse.py",
                          "layers.py", "model.py", "train.py", "util.py"));
}

TEST_F(BundleTest, FollowsSourcedScriptsProgramsAndVariables) {
  Write("env.sh", "export LR=1\npython lib/tool.py\n");
  Write("lib/tool.py", "");
  Write("run", "#!/bin/sh\n./inner.sh\n", 0755);
  Write("inner.sh", "", 0755);
  Write("data.csv", "1,2\n");
  Write("conf.yaml", "a: 1\n");
  const auto bundle = Collect(
      "#!/bin/bash\n. ./env.sh\nDIR=.\n$DIR/run data.csv --config=conf.yaml > out.sh\n"
      "python $NOWHERE/x.py\n");
  EXPECT_THAT(Paths(bundle),
              ElementsAre("job.sh", "conf.yaml", "env.sh", "inner.sh", "lib/tool.py", "run"));
  EXPECT_EQ(bundle.unknown.count("$NOWHERE/x.py"), 1u);
}

TEST_F(BundleTest, LoopsOverKnownWordsNameEachFile) {
  for (const auto* name : {"simulate.py", "filter.py", "x.py"}) Write(name, "");
  const auto bundle = Collect(
      "#!/bin/bash\nfor step in simulate filter; do\n  python3 $step.py\ndone\n"
      "for f in *.txt; do python $f.py; done\n");
  EXPECT_THAT(Paths(bundle), ElementsAre("job.sh", "filter.py", "simulate.py"));
}

TEST_F(BundleTest, WhatTheScriptBuildsIsNoSource) {
  Write("heat.c", "#include <stdio.h>\n#include \"grid.h\"\n");
  Write("grid.h", "");
  const std::string script = "#!/bin/bash\ngcc -O2 heat.c -o heat -lm\n./heat 100 > log.txt\n";
  const auto before = Collect(script);
  Write("heat",
        std::string("\x7f"
                    "ELF\0\0",
                    6),
        0755);
  Write("log.txt", "x");
  const auto after = Collect(script);
  EXPECT_THAT(Paths(before), ElementsAre("job.sh", "grid.h", "heat.c"));
  EXPECT_EQ(before.bundle_id, after.bundle_id);
}

TEST_F(BundleTest, MakefilesNameTheirSources) {
  Write("Makefile", "prog: main.c util.c\n\tcc -o $@ main.c util.c\n");
  Write("main.c", "");
  Write("util.c", "");
  Write("prog",
        std::string("\x7f"
                    "ELF\0",
                    5),
        0755);
  const auto bundle = Collect("#!/bin/bash\nmake -s\n./prog\n");
  EXPECT_THAT(Paths(bundle), ElementsAre("job.sh", "Makefile", "main.c", "util.c"));
  EXPECT_EQ(bundle.unknown.count("prog"), 1u);
}

TEST_F(BundleTest, TheSameTreeElsewhereHasTheSameIdentity) {
  const std::string script = "#!/bin/bash\n#SBATCH --mem=1G\npython train.py\n";
  for (const auto* sub : {"a", "deep/er"}) {
    Write(std::string(sub) + "/train.py", "import m\n");
    Write(std::string(sub) + "/m.py", "x = 1\n");
  }
  const auto a = Collect(script, "/a");
  const auto b = Collect(script, "/deep/er");
  EXPECT_EQ(a.bundle_id, b.bundle_id);
  EXPECT_EQ(a.bundle_id.substr(0, 3), "b1:");
  EXPECT_EQ(a.bundle_id.size(), 67u);
}

TEST_F(BundleTest, TheCollectorSeesTheSameIdentityAsTheCli) {
  Write("w/train.py", "");
  const std::string script = "#!/bin/bash\n#SBATCH --chdir=w -t 5\npython train.py \"$1\"\n";
  BundleInput cli;
  cli.script = script;
  cli.script_path = dir_.path() + "/sub/job.slurm";
  cli.submit_dir = dir_.path();
  cli.arguments = {"x"};
  BundleInput collector;
  collector.script = script;
  collector.work_dir = dir_.path() + "/w";
  collector.arguments = {"x"};
  const auto a = CollectBundle(cli, fs_);
  const auto b = CollectBundle(collector, fs_);
  EXPECT_EQ(a->bundle_id, b->bundle_id);
  EXPECT_EQ(a->files.size(), 2u);
}

TEST_F(BundleTest, ARequestChangesNoHashAndEachOtherChangeOnlyItsOwn) {
  Write("x.py", "1");
  const std::string script = "#!/bin/bash\n#SBATCH --mem=1G\npython x.py\n";
  const auto base = Collect(script);
  const auto other_request = Collect("#!/bin/bash\n#SBATCH --mem=9G -t 7 -p gpu\npython x.py\n");
  EXPECT_EQ(base.bundle_id, other_request.bundle_id);
  const auto other_script = Collect(script + "echo\n");
  EXPECT_NE(base.script_hash, other_script.script_hash);
  EXPECT_EQ(base.tree_hash, other_script.tree_hash);
  Write("x.py", "2");
  const auto other_tree = Collect(script);
  EXPECT_EQ(base.script_hash, other_tree.script_hash);
  EXPECT_NE(base.tree_hash, other_tree.tree_hash);
  EXPECT_NE(base.bundle_id, other_tree.bundle_id);
}

TEST_F(BundleTest, ArgumentsAndNamesOfExportedVariablesCount) {
  BundleInput input;
  input.script = "#!/bin/bash\n#SBATCH --export=ALL,LR=1,SEED\n";
  input.work_dir = dir_.path();
  const auto base = CollectBundle(input, fs_);
  input.arguments = {"a", "b"};
  const auto args = CollectBundle(input, fs_);
  input.arguments = {"a b"};
  const auto joined = CollectBundle(input, fs_);
  EXPECT_NE(base->args_hash, args->args_hash);
  EXPECT_NE(args->args_hash, joined->args_hash);
  input.arguments = {};
  input.environment_names = {"SEED", "LR", "LR"};
  EXPECT_EQ(CollectBundle(input, fs_)->args_hash, base->args_hash);
  input.environment_names = {"OTHER"};
  EXPECT_NE(CollectBundle(input, fs_)->args_hash, base->args_hash);
}

TEST_F(BundleTest, OddFilesAreNamedAndNeverOpenedOrFollowedForEver) {
  ASSERT_EQ(::mkfifo((dir_.path() + "/pipe.py").c_str(), 0644), 0);
  ASSERT_EQ(::symlink("b.py", (dir_.path() + "/a.py").c_str()), 0);
  ASSERT_EQ(::symlink("a.py", (dir_.path() + "/b.py").c_str()), 0);
  Write("dir.py/x", "");
  Write("big.py", std::string(2 << 20, 'x'));
  Write("prog",
        std::string("\x7f"
                    "ELF\0",
                    5),
        0755);
  const auto bundle = Collect(
      "#!/bin/bash\npython pipe.py\npython a.py\npython dir.py\npython gone.py\npython big.py\n"
      "./prog\n");
  EXPECT_THAT(Paths(bundle), ElementsAre("job.sh", "big.py", "prog"));
  EXPECT_THAT(bundle.unknown.at("pipe.py"), HasSubstr("not a regular file"));
  EXPECT_THAT(bundle.unknown.at("a.py"), HasSubstr("symbolic links"));
  EXPECT_THAT(bundle.unknown.at("dir.py"), HasSubstr("directory"));
  EXPECT_THAT(bundle.unknown.at("gone.py"), HasSubstr("No such file"));
  EXPECT_THAT(bundle.unknown.at("big.py"), HasSubstr("content not kept"));
  EXPECT_FALSE(bundle.files[1].content.has_value());
  EXPECT_EQ(bundle.files[1].sha256.size(), 64u);
  EXPECT_FALSE(bundle.files[2].content.has_value());
}

TEST_F(BundleTest, ADirectoryThatLinksIntoItselfEnds) {
  Write("pkg/__init__.py", "");
  Write("pkg/a.py", "from .loop import a\n");
  ASSERT_EQ(::symlink(".", (dir_.path() + "/pkg/loop").c_str()), 0);
  ASSERT_EQ(::symlink("..", (dir_.path() + "/pkg/up").c_str()), 0);
  Write("train.py", "from pkg import a\nfrom pkg.up.pkg.up.pkg import a\n");
  Write("env.sh", "source pkg/up/env.sh\nsource pkg/up/pkg/up/env.sh\n");
  const auto bundle = Collect("#!/bin/bash\nsource env.sh\npython train.py\n");
  EXPECT_THAT(Paths(bundle), ::testing::IsSupersetOf({"job.sh", "env.sh", "train.py", "pkg/a.py"}));
  EXPECT_LE(bundle.files.size(), BundleLimits().max_files);
  const auto again = Collect("#!/bin/bash\nsource env.sh\npython train.py\n");
  EXPECT_EQ(again.bundle_id, bundle.bundle_id);
}

TEST_F(BundleTest, ContentIsBoundedInTotal) {
  std::string script = "#!/bin/bash\n";
  for (int i = 0; i < 14; ++i) {
    Write("f" + std::to_string(i) + ".py", std::string(1 << 20, '#'));
    script += "python f" + std::to_string(i) + ".py\n";
  }
  const auto bundle = Collect(script);
  size_t kept = 0;
  for (const auto& file : bundle.files) kept += file.content ? file.content->size() : 0;
  EXPECT_LE(kept, size_t{10} << 20);
  EXPECT_EQ(bundle.files.size(), 15u);
}

TEST_F(BundleTest, HostileScriptsAreBounded) {
  std::string script = "#!/bin/bash\nfor a in";
  for (int i = 0; i < 64; ++i) script += " v" + std::to_string(i);
  script += "; do\n";
  for (int i = 0; i < 1000; ++i) script += "python ${a}" + std::to_string(i) + ".py\n";
  script += "done\nA=" + std::string(4000, 'a') + "\n./";
  for (int i = 0; i < 5000; ++i) script += "$A";
  script += std::string(100'000, '{') + "$(" + std::string(100'000, '(') + "\n";
  const auto bundle = Collect(script);
  EXPECT_EQ(bundle.files.size(), 1u);
  EXPECT_EQ(bundle.unknown.count("sources"), 1u);
}

TEST_F(BundleTest, ImportCyclesEnd) {
  Write("a.py", "import b\n");
  Write("b.py", "import a\n");
  Write("s.sh", "source s.sh\n");
  const auto bundle = Collect("#!/bin/bash\npython a.py\nsource s.sh\n");
  EXPECT_THAT(Paths(bundle), ElementsAre("job.sh", "a.py", "b.py", "s.sh"));
}

TEST_F(BundleTest, ReadsWithTheRightsOfTheJobsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ::chmod(dir_.path().c_str(), 0755);
  Write("mine.py", "");
  Write("secret.py", "password = 1\n", 0600);
  BundleInput input;
  input.script = "#!/bin/bash\npython mine.py\npython secret.py\n";
  input.work_dir = dir_.path();
  input.read_as = FileIdentity{65534, 65534, {}};
  const auto bundle = CollectBundle(input, fs_);
  EXPECT_THAT(Paths(*bundle), ElementsAre("script", "mine.py"));
  EXPECT_THAT(bundle->unknown.at("secret.py"), HasSubstr("Permission denied"));
  EXPECT_TRUE(fs_.Read(dir_.path() + "/secret.py").ok()) << "rights come back afterwards";
}

TEST_F(BundleTest, ScriptsThatNoSchedulerTakesAreErrors) {
  Write("big.sh", "#!/bin/sh\n" + std::string(5 << 20, 'x'));
  Write("nul.sh", std::string("#!/bin/sh\n\0", 11));
  Write("empty.sh", "");
  ASSERT_EQ(::mkfifo((dir_.path() + "/pipe").c_str(), 0644), 0);
  const auto why = [this](const std::string& name) {
    auto script = ReadScript(fs_, dir_.path() + "/" + name);
    return script.ok() ? "" : script.error().message();
  };
  EXPECT_THAT(why("big.sh"), HasSubstr("no larger script"));
  EXPECT_THAT(why("nul.sh"), HasSubstr("NUL byte"));
  EXPECT_THAT(why("empty.sh"), HasSubstr("empty"));
  EXPECT_THAT(why("pipe"), HasSubstr("not a regular file"));
  EXPECT_THAT(why(""), HasSubstr("directory"));
  EXPECT_THAT(why("gone"), HasSubstr("No such file"));
}

TEST_F(BundleTest, NamesThatAreNotUtf8BecomeSo) {
  Write("caf\xe9.py", "");
  const auto bundle = Collect("#!/bin/bash\npython caf\xe9.py\n");
  const auto proto = ToProto(bundle);
  ASSERT_EQ(proto.files_size(), 2);
  EXPECT_EQ(proto.files(1).path(), "caf\xEF\xBF\xBD.py");
  EXPECT_EQ(proto.bundle_id(), bundle.bundle_id);
}

}  // namespace
}  // namespace expanse::submission
