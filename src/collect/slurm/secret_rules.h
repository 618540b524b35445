// SPDX-License-Identifier: Apache-2.0
// What the filters of texts and of command lines have in common.
#pragma once

#include <string_view>

#include "collect/slurm/secrets_filter.h"

namespace expanse::collect::slurm {

/// Of identifiers, options and settings: letters, digits, '_', '-', '.'.
bool IsNameChar(char c);

/// Does the name end as those of secrets do (DB_PASSWORD, hf.token)?
bool IsSecretName(std::string_view name);

/// Is what follows an option or stands in a variable of this name a secret? Not: $X, <x>, another
/// option, the number or the word of --max-token 512 and --pad-token eos. A word of small letters
/// counts from least_word bytes on.
bool IsSecretValue(std::string_view name, std::string_view value, size_t least_word);

/// FilterSecrets with another mark.
FilteredText FilterWithMark(std::string_view text, std::string_view mark);

}  // namespace expanse::collect::slurm
