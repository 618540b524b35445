// SPDX-License-Identifier: Apache-2.0
// Takes secrets out of log tails and source files before they leave the cluster. Errs towards
// removing too much in logs; in sources an assignment of anything but a literal is left alone, so
// that code keeps its meaning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
///  - literals assigned to names that end in password, secret, token, api_key and the like
///  - the password of a URL
FilteredText FilterSecrets(std::string_view text);

}  // namespace expanse::collect::slurm
