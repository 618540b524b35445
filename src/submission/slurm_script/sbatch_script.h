// SPDX-License-Identifier: Apache-2.0
// A SLURM batch script as sbatch reads it: every directive with its byte positions, so that a
// patch can change a value and nothing else. Behaviour was taken from sbatch 22.05 itself
// (bench/check_sbatch_reader.py compares the two); where sbatch refuses a script, so does this,
// with the line. Reading never fails: a refusal is part of the result, since a person wants all of
// them at once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submission/slurm_script/sbatch_options.h"

namespace expanse::submission {

/// Bytes [offset, offset + length) of the script.
struct ByteSpan {
  size_t offset = 0;
  size_t length = 0;
  size_t end() const { return offset + length; }
};

/// One option as written.
struct SbatchDirective {
  const SbatchOption* option = nullptr;
  std::string value;  // unquoted; empty when the option has none
  bool has_value = false;
  int line = 0;           // 1-based line of the option
  ByteSpan whole;         // from the first dash to the end of the value
  ByteSpan name;          // "--mem", "-N"; of a cluster "-Hn3" only the letter
  ByteSpan value_bytes;   // with its quotes; may lie on a later line than the name
  int component = 0;      // of a heterogeneous job
  bool effective = true;  // false: a later directive of the same option wins
};

/// A `#SBATCH` line that sbatch never reads, since a command stands before it.
struct DeadDirective {
  int line = 0;
  int first_command_line = 0;
  std::string text;
};

/// Something a person should know, or why sbatch refuses the script.
struct ScriptNote {
  int line = 0;  // 0: the script as a whole
  std::string text;
};

/// One line with `#SBATCH` that is in effect.
struct DirectiveLine {
  int number = 0;
  ByteSpan bytes;  // without the line end
  int component = 0;
};

struct SbatchScript {
  std::string interpreter;  // text after "#!" of line 1, trimmed
  std::vector<SbatchDirective> directives;
  std::vector<DirectiveLine> lines;
  std::vector<DeadDirective> dead;
  std::vector<ScriptNote> refusals;  // sbatch would not accept the script
  std::vector<ScriptNote> warnings;
  int components = 1;
  bool crlf = false;           // the first line ends in CR LF; sbatch refuses that
  size_t first_command = 0;    // offset of the first command's line, or the script's size
  int first_command_line = 0;  // 0: no command at all

  /// The directive in effect for an option (by its long name), or null.
  const SbatchDirective* Find(std::string_view option_name, int component = 0) const;
};

/// The bytes may be anything; positions refer to them.
SbatchScript ReadSbatchScript(std::string_view bytes);

/// The script's bytes without its resource and placement directives: what stays the same when
/// only the request changes. A line that holds nothing else is dropped with its line end; on
/// other lines the options are cut out and the rest is kept. Line ends at the very end are dropped:
/// a directive added there, and tools that store scripts, change them. Input of script_hash.
std::string WithoutResourceDirectives(std::string_view bytes, const SbatchScript& script);

}  // namespace expanse::submission
