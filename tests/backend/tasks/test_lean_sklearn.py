"""What scikit-learn's scores of labels leave out of a process, and that it is there for whoever uses it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
from backend.metrics import _lean_sklearn

_lean_sklearn.install()

from sklearn import metrics

f1 = metrics.f1_score(["a", "b", "b"], ["a", "b", "a"], average="macro")
loaded = sorted({"pandas", "scipy.stats._stats_py"} & sys.modules.keys())
ranking = metrics.label_ranking_average_precision_score([[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1], [1, 0.2, 0.1]])

from scipy import stats

print(json.dumps([f1, loaded, ranking, stats.spearmanr([1, 2, 3], [1, 3, 2]).statistic]))
"""


def test_labels_are_scored_without_pandas_and_statistics_which_others_can_still_use():
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [pytest.approx(2 / 3), [], pytest.approx(5 / 12), 0.5]
