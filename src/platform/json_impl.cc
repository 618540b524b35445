// SPDX-License-Identifier: Apache-2.0
// The one translation unit that compiles Boost.JSON; everybody else includes <boost/json.hpp>.
#include <boost/json/src.hpp>
