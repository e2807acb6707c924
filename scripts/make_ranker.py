"""Make `src/threefold/search/ranker.json`: train the ranker on data whose licences allow it, and say how good it is.

    python scripts/make_ranker.py --longmemeval FOLDER --lifebench FOLDER --scifact FOLDER --stores FOLDER

Trained on: LongMemEval-S, development cut (MIT); LifeBench (Apache-2.0); SciFact (CC BY 4.0); the chats in
`benchmarks/data/chats`, written for this project. Candidates and features are the product's own. Needs the extra
`ranker` (LightGBM). The same data, features and LightGBM give the same file.

With `--validate`, prints the metrics of models that did not see the questions they are asked: for each set, folds by
user (by question where there are few users), trained on the other folds and the other sets; and for `--judge SET=FOLDER`
those of the model that ships. Nothing of a judging set is trained on.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))



TARGET = ROOT / "src" / "threefold" / "search" / "ranker.json"
# The unit that is learned in each set, and how much one question counts.
UNITS = {"chats": "message", "longmemeval": "turn", "lifebench": "record", "scifact": "document"}
WEIGHTS = {"chats": 1.0, "longmemeval": 4.0, "lifebench": 0.4, "scifact": 0.4}
JUDGED = {**UNITS, "locomo": "message", "xquad": "paragraph"}
# A store without an embedder, or whose embedder does not know the language, is searched too: some questions are learned
# a second time as they look there.
WITHOUT_SEMANTIC = 3
FOLDS = 4
