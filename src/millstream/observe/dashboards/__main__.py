"""`python -m millstream.observe.dashboards FOLDER`: copies the files to a folder."""

import shutil
import sys

from millstream.observe.dashboards import DASHBOARD, RULES

for file in (DASHBOARD, RULES):
    shutil.copy(file, sys.argv[1] if len(sys.argv) > 1 else ".")
