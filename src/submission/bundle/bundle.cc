// SPDX-License-Identifier: Apache-2.0
#include "submission/bundle/bundle.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "platform/crypto/crypto.h"
#include "submission/bundle/scoped_identity.h"
#include "submission/slurm_script/sbatch_script.h"
#include "submission/source/source_references.h"

namespace expanse::submission {
namespace {

using platform::DirName;
using platform::JoinPath;
using platform::NormalizePath;

constexpr size_t kBinaryProbe = 8192;  // a NUL byte this early: not a text file
constexpr size_t kMostUnknown = 200;

/// Hash input that cannot be read two ways: each part with its length before it.
class Canonical {
 public:
  explicit Canonical(std::string_view domain) { Add(domain); }
  void Add(std::string_view part) {
    text_ += fmt::format("{}:", part.size());
    text_ += part;
  }
  std::string Hash() const { return platform::Sha256Hex(text_); }

 private:
  std::string text_;
};

bool LooksBinary(std::string_view content) {
  return content.substr(0, kBinaryProbe).find('\0') != std::string_view::npos;
}

Error Refused(const std::string& path, std::string_view why) {
  return Error(Code::kInvalidArgument, fmt::format("reading the batch script {}: {}",
                                                   EscapeForTerminal(ToUtf8(path)), why));
}

Status CheckScript(std::string_view script, const std::string& path, const BundleLimits& limits) {
  if (script.empty()) return Refused(path, "the file is empty");
  if (script.size() > limits.max_script_bytes) {
    return Refused(path, fmt::format("larger than {} bytes; sbatch takes no larger script",
                                     limits.max_script_bytes));
  }
  if (script.find('\0') != std::string_view::npos) {
    return Refused(path, "holds a NUL byte; it is not a text file");
  }
  return {};
}

/// Names of "--export=ALL,A,B=1"; ALL, NONE and NIL are no names.
std::vector<std::string> ExportedNames(std::string_view value) {
  std::vector<std::string> names;
  for (const auto part : Split(value, ',')) {
    const std::string name(Trim(part.substr(0, part.find('='))));
    if (!name.empty() && name != "ALL" && name != "NONE" && name != "NIL") names.push_back(name);
  }
  return names;
}

class Builder {
 public:
  Builder(const BundleInput& input, const platform::Fs& fs, const BundleLimits& limits)
      : input_(input), fs_(fs), limits_(limits), script_(ReadSbatchScript(input.script)) {}

  Result<Bundle> Build() {
    EXPANSE_CHECK_OK(CheckScript(input_.script, input_.script_path, limits_));
    FindWorkDir();
    AddScript();
    if (input_.read_as) {
      // A collector that cannot take the owner's rights reads nothing rather than too much.
      auto identity = ScopedIdentity::Assume(*input_.read_as);
      if (identity.ok()) {
        AddTree();
      } else {
        Unknown("sources", identity.error().message());
      }
    } else {
      AddTree();
    }
    Finish();
    return std::move(out_);
  }

 private:
  void Unknown(const std::string& what, const std::string& reason) {
    if (out_.unknown.size() < kMostUnknown) out_.unknown.insert({what, reason});
  }

  void FindWorkDir() {
    if (!input_.work_dir.empty()) {
      out_.work_dir = NormalizePath(input_.work_dir);
      return;
    }
    if (input_.submit_dir.empty()) return;
    std::string directory = input_.submit_dir;
    if (const auto* chdir = script_.Find("chdir")) {
      directory = !chdir->value.empty() && chdir->value.front() == '/'
                      ? chdir->value
                      : JoinPath(directory, chdir->value);
    }
    out_.work_dir = NormalizePath(directory);
  }

  std::string Shown(const std::string& path) const {
    const std::string prefix = out_.work_dir == "/" ? "/" : out_.work_dir + "/";
    if (!out_.work_dir.empty() && path.substr(0, prefix.size()) == prefix) {
      return path.substr(prefix.size());
    }
    return path;
  }

  void AddScript() {
    std::string name = "script";  // the scheduler's copy has no name
    if (!input_.script_path.empty()) {
      script_file_ = NormalizePath(input_.script_path);
      name = Shown(script_file_);
    }
    out_.script_path = name;
    out_.arguments = input_.arguments;
    out_.files.push_back({name, platform::Sha256Hex(input_.script),
                          static_cast<int64_t>(input_.script.size()), input_.script});
    total_ = input_.script.size();
  }

  std::map<std::string, std::string> Variables() const {
    std::map<std::string, std::string> variables;
    variables["PWD"] = out_.work_dir;
    // With --chdir the directory of submission is another one, which the scheduler does not tell.
    if (script_.Find("chdir") == nullptr) variables["SLURM_SUBMIT_DIR"] = out_.work_dir;
    if (!input_.home.empty()) variables["HOME"] = input_.home;
    for (size_t i = 0; i < input_.arguments.size() && i < 9; ++i)
      variables[std::to_string(i + 1)] = input_.arguments[i];
    return variables;
  }

  void AddTree() {
    if (out_.work_dir.empty()) {
      Unknown("sources", "the working directory is not known, so no file can be looked for");
      return;
    }
    for (const auto& path : input_.extra_files) {
      if (path.empty()) continue;
      const std::string full = path.front() == '/' ? path : JoinPath(out_.work_dir, path);
      Queue({NormalizePath(full), ReferenceKind::kScript, SourceLanguage::kOther});
    }
    const SourceLanguage language = LanguageOf("", input_.script);
    if (language == SourceLanguage::kShell || language == SourceLanguage::kOther) {
      AddShell(input_.script);
    } else {
      AddReferences(language, input_.script, JoinPath(out_.work_dir, "script"), {});
    }
    size_t lookups = 0;
    while (!queue_.empty()) {
      const SourceReference reference = std::move(queue_.front());
      queue_.pop_front();
      if (out_.files.size() > limits_.max_files || ++lookups > limits_.max_lookups) {
        out_.unknown["sources"] =
            fmt::format("more than {} files or {} places to look in; the rest was not read",
                        limits_.max_files, limits_.max_lookups);
        return;
      }
      AddFile(reference);
    }
  }

  void Queue(SourceReference reference) {
    if (reference.path == script_file_ || seen_.size() > 2 * limits_.max_lookups) return;
    if (seen_.insert(reference.path).second) queue_.push_back(std::move(reference));
  }

  void AddShell(std::string_view text) {
    auto found = ReferencesOfShell(text, out_.work_dir, Variables());
    made_.insert(found.made.begin(), found.made.end());
    builds_ = builds_ || found.builds;
    for (const auto& path : found.python_path) python_roots_.insert(path);
    for (auto& [word, reason] : found.unresolved) Unknown(word, reason);
    for (auto& reference : found.files) Queue(std::move(reference));
  }

  void AddReferences(SourceLanguage language, std::string_view text, const std::string& path,
                     const std::vector<std::string>& own_roots) {
    std::vector<std::string> roots = own_roots;
    roots.insert(roots.end(), python_roots_.begin(), python_roots_.end());
    for (auto& reference : ReferencesOfSource(language, text, path, roots, out_.work_dir))
      Queue(std::move(reference));
  }

  /// False when the reference turns out to name no source; notes why where that is worth it.
  bool IsSource(const SourceReference& reference, const Result<platform::FileInfo>& info) {
    const bool named = reference.kind == ReferenceKind::kScript;
    const std::string shown = Shown(reference.path);
    if (made_.count(reference.path) != 0) {
      if (named) Unknown(shown, "written by the script itself, so no part of its source");
      return false;
    }
    if (!info.ok()) {
      if (named || info.error().code() != Code::kNotFound) Unknown(shown, info.error().message());
      return false;
    }
    if (info->is_directory) {
      if (named) Unknown(shown, "a directory");
      return false;
    }
    if (!info->is_regular) {
      Unknown(shown, "not a regular file (a FIFO, device or socket); not opened");
      return false;
    }
    constexpr mode_t kAnyExecute = S_IXUSR | S_IXGRP | S_IXOTH;
    return reference.kind != ReferenceKind::kProgram || (info->mode & kAnyExecute) != 0;
  }

  void AddFile(const SourceReference& reference) {
    const auto info = fs_.Stat(reference.path);
    if (!IsSource(reference, info)) return;
    BundledFile file;
    file.path = Shown(reference.path);
    file.size = info->size;
    if (info->size > limits_.max_hashed_bytes) {
      Unknown(file.path, fmt::format("{} bytes: too large to read, known by its size", info->size));
      out_.files.push_back(std::move(file));
      return;
    }
    auto content = fs_.Read(reference.path, static_cast<size_t>(limits_.max_hashed_bytes));
    if (!content.ok()) {
      Unknown(file.path, content.error().message());
      return;
    }
    const bool binary = LooksBinary(*content);
    if (binary && builds_ && file.path.front() != '/') {
      Unknown(file.path, "a binary that the script's own build makes; its sources count instead");
      return;
    }
    file.size = static_cast<int64_t>(content->size());
    file.sha256 = platform::Sha256Hex(*content);
    if (binary) {
      Unknown(file.path, "a binary file: known by its hash, content not kept");
    } else if (content->size() > limits_.max_file_bytes) {
      Unknown(file.path, fmt::format("larger than {} bytes: known by its hash, content not kept",
                                     limits_.max_file_bytes));
    } else if (total_ + content->size() > limits_.max_total_bytes) {
      Unknown(file.path, fmt::format("the bundle passed {} bytes: known by its hash, content not "
                                     "kept",
                                     limits_.max_total_bytes));
    } else {
      total_ += content->size();
      Follow(reference, *content);
      file.content = std::move(*content);
    }
    out_.files.push_back(std::move(file));
  }

  void Follow(const SourceReference& reference, const std::string& content) {
    SourceLanguage language = LanguageOf(reference.path, content);
    if (language == SourceLanguage::kOther) language = reference.language;
    if (language == SourceLanguage::kShell) {
      AddShell(content);
      return;
    }
    // Python looks for absolute imports beside the program that was started, so modules found
    // through it use the same directory.
    if (reference.kind != ReferenceKind::kModule && language == SourceLanguage::kPython) {
      python_roots_.insert(DirName(reference.path));
    }
    if (reference.kind == ReferenceKind::kModule && language == SourceLanguage::kPython &&
        python_roots_.empty()) {
      python_roots_.insert(out_.work_dir);  // started by "python -m"
    }
    AddReferences(language, content, reference.path, {});
  }

  void Finish() {
    std::sort(out_.files.begin() + 1, out_.files.end(),
              [](const BundledFile& a, const BundledFile& b) { return a.path < b.path; });
    Canonical script("expanse.bundle.script.v1");
    script.Add(WithoutResourceDirectives(input_.script, script_));
    out_.script_hash = script.Hash();

    Canonical tree("expanse.bundle.tree.v1");
    for (size_t i = 1; i < out_.files.size(); ++i) {
      const auto& file = out_.files[i];
      tree.Add(file.path);
      tree.Add(file.sha256.empty() ? fmt::format("size {}", file.size) : file.sha256);
    }
    out_.tree_hash = tree.Hash();

    std::set<std::string> names(input_.environment_names.begin(), input_.environment_names.end());
    if (const auto* exported = script_.Find("export"))
      for (auto& name : ExportedNames(exported->value)) names.insert(std::move(name));
    Canonical arguments("expanse.bundle.args.v1");
    arguments.Add(std::to_string(input_.arguments.size()));
    for (const auto& argument : input_.arguments) arguments.Add(argument);
    for (const auto& name : names) arguments.Add(name);
    out_.args_hash = arguments.Hash();

    Canonical whole("expanse.bundle.v1");
    whole.Add(out_.script_hash);
    whole.Add(out_.tree_hash);
    whole.Add(out_.args_hash);
    out_.bundle_id = "b1:" + whole.Hash();
  }

  const BundleInput& input_;
  const platform::Fs& fs_;
  const BundleLimits& limits_;
  const SbatchScript script_;
  Bundle out_;
  std::string script_file_;
  size_t total_ = 0;
  bool builds_ = false;
  std::set<std::string> made_;
  std::set<std::string> python_roots_;
  std::set<std::string> seen_;
  std::deque<SourceReference> queue_;
};

}  // namespace

Result<std::string> ReadScript(const platform::Fs& fs, const std::string& path,
                               const BundleLimits& limits) {
  const auto info = fs.Stat(path);
  if (!info.ok()) return info.error().WithContext("reading the batch script");
  if (info->is_directory) return Refused(path, "it is a directory");
  if (!info->is_regular) {
    return Refused(path, "it is not a regular file (a FIFO, device or socket)");
  }
  auto content = fs.Read(path, limits.max_script_bytes);
  if (!content.ok()) {
    if (content.error().code() == Code::kResourceExhausted) {
      return Refused(path, fmt::format("larger than {} bytes; sbatch takes no larger script",
                                       limits.max_script_bytes));
    }
    return content.error().WithContext("reading the batch script");
  }
  EXPANSE_CHECK_OK(CheckScript(*content, path, limits));
  return content;
}

Result<Bundle> CollectBundle(const BundleInput& input, const platform::Fs& fs,
                             const BundleLimits& limits) {
  return Builder(input, fs, limits).Build();
}

expanse::data::v1::SourceBundle ToProto(const Bundle& bundle) {
  expanse::data::v1::SourceBundle out;
  out.set_bundle_id(bundle.bundle_id);
  out.set_script_hash(bundle.script_hash);
  out.set_tree_hash(bundle.tree_hash);
  out.set_args_hash(bundle.args_hash);
  for (const auto& file : bundle.files) {
    auto* f = out.add_files();
    f->set_path(ToUtf8(file.path));
    f->set_sha256(file.sha256);
    f->set_size(file.size);
    if (file.content) f->set_content(*file.content);
  }
  for (const auto& [what, reason] : bundle.unknown)
    (*out.mutable_unknown())[ToUtf8(what)] = ToUtf8(reason);
  out.set_script_path(ToUtf8(bundle.script_path));
  for (const auto& argument : bundle.arguments) out.add_arguments(ToUtf8(argument));
  return out;
}

}  // namespace expanse::submission
