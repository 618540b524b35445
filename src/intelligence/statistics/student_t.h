// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace expanse::intelligence {

/// Quantile of Student's t distribution; degrees >= 1, 0 < probability < 1.
double StudentTQuantile(int degrees, double probability);

}  // namespace expanse::intelligence
