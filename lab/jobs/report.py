"""Needs a package that is not installed."""
import json

import tensor_toolbox_that_is_not_there as toolbox

print(json.dumps(toolbox.report()))
