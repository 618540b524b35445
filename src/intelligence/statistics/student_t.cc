// SPDX-License-Identifier: Apache-2.0
#include "intelligence/statistics/student_t.h"

#include <boost/math/distributions/students_t.hpp>

#include "base/result.h"

namespace expanse::intelligence {

double StudentTQuantile(int degrees, double probability) {
  EXPANSE_CHECK(degrees >= 1 && probability > 0 && probability < 1);
  return boost::math::quantile(boost::math::students_t_distribution<double>(degrees), probability);
}

}  // namespace expanse::intelligence
