// SPDX-License-Identifier: Apache-2.0
// Takes secrets out of log tails and source files before they leave the cluster. Errs towards
// removing too much in logs; in sources an assignment of anything but a literal is left alone, so
// that code keeps its meaning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::collect::slurm {

struct FilteredText {
  std::string text;
  int64_t replaced = 0;
};

/// What stands in place of a secret.
inline constexpr std::string_view kSecretMark = "[secret removed]";

/// Bytes in, bytes out; text without secrets comes back unchanged.
///  - private keys in PEM form, whole blocks
///  - tokens known by their form: ours (exp_*), AWS, GitHub, GitLab, Slack, OpenAI, Hugging Face,
///    Google, Stripe, npm, JSON web tokens
///  - "Bearer ...", "Basic ..." of an Authorization header
///  - literals assigned to names that end in password, secret, token, api_key and the like, also
///    inside an escaped string (\"password\": \"x\"), and those after an option of such a name
///    (--password x)
///  - the password of a URL
FilteredText FilterSecrets(std::string_view text);

/// A command line as the scheduler keeps it, words joined by blanks. Beside what FilterSecrets
/// takes: every value of --export (what users hand over there are keys more often than not; the
/// names stay), short values of options and variables that are named after a secret, the password
/// of -u user:password and of sshpass -p. Errs towards removing too much.
FilteredText FilterCommandLine(std::string_view line);

/// The same for the words of such a line, none of which holds a blank. Returns the number of
/// secrets.
int64_t FilterArguments(std::vector<std::string>* arguments);

}  // namespace expanse::collect::slurm
