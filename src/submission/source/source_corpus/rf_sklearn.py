import argparse
import pickle
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

ap = argparse.ArgumentParser()
ap.add_argument("--rows", type=int, default=10000)
ap.add_argument("--features", type=int, default=20)
ap.add_argument("--trees", type=int, default=100)
ap.add_argument("--max-depth", type=int, default=None)
ap.add_argument("--jobs", type=int, default=1)
args = ap.parse_args()

X, y = make_classification(args.rows, args.features, n_informative=10, n_classes=3, random_state=0, flip_y=0.1)
Xtr, Xte, ytr, yte = train_test_split(X, y, random_state=0)
clf = RandomForestClassifier(args.trees, max_depth=args.max_depth, n_jobs=args.jobs, random_state=0)
clf.fit(Xtr, ytr)
print("accuracy", clf.score(Xte, yte))
print("nodes", sum(t.tree_.node_count for t in clf.estimators_))
with open("model.pkl", "wb") as f:
    pickle.dump(clf, f)
