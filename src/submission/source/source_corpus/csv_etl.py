#!/usr/bin/env python3
import json
import sys
import pandas as pd

conf = json.load(open("etl.json"))
path = sys.argv[1] if len(sys.argv) > 1 else conf["input"]


def summarise(df):
    df["hour"] = df["pickup_time"].str[11:13].astype(int)
    df["pair"] = df["from_zone"] + "->" + df["to_zone"]
    return df.groupby(["pair", "hour"]).agg(n=("fare", "size"), fare=("fare", "sum"), dist=("distance", "sum")).reset_index()


if conf["chunksize"]:
    parts = [summarise(c) for c in pd.read_csv(path, chunksize=conf["chunksize"])]
    out = pd.concat(parts).groupby(["pair", "hour"]).sum().reset_index()
else:
    out = summarise(pd.read_csv(path))
out["mean_fare"] = out.fare / out.n
out.sort_values("n", ascending=False).head(5000).to_csv(conf["output"], index=False)
print(len(out), "groups")
print(out.n.describe())
