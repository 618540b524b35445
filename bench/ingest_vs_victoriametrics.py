#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ingest_vs_victoriametrics.py [--rounds 7] [--batches 200] [--clients 1] [--corpus CSV.gz] [--work DIR]

Expanse's data plane beside VictoriaMetrics (Debian package victoria-metrics, tools/packages.txt group
bench), both on loopback, both on the same disk, one client program (bench_ingest) for both:

  1. the fastest of VictoriaMetrics' ways in, by measurement
  2. intake of batches of 1,000 series x 10 samples, rounds interleaved
  3. what each side does before it answers: strace of some batches
  4. bytes a sample after sealing, of hpc-gauges-v1 and of the recorded series of a corpus
  5. one execution over a day in buckets of 30 s with 10 million samples stored

Needs a release build of expanse, expanse-control-plane, expanse-data-plane and bench_ingest
(EXPANSE_BIN, default build/release/bin), victoria-metrics and strace."""
import argparse, gzip, json, os, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, time, urllib.request, uuid

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("EXPANSE_BIN", os.path.join(HERE, "..", "build", "release", "bin"))
DAY = 86_400_000


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def post(url, body, bearer=None):
    headers = {"content-type": "application/json"}
    if bearer:
        headers["authorization"] = "Bearer " + bearer
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def wait_for(url):
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit("no answer from " + url)


def disk(path, leave_out=()):
    """Bytes of the files below a path, and bytes of the blocks they take."""
    size = blocks = 0
    for folder, folders, files in os.walk(path):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in leave_out]
        for name in files:
            info = os.lstat(os.path.join(folder, name))
            size += info.st_size
            blocks += info.st_blocks * 512
    return size, blocks


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) / 1024


class Process:
    def start(self, log, *argv, env=None):
        self.process = subprocess.Popen(argv, stdout=open(log, "ab"), stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, env=env)
        self.pid = self.process.pid

    def stop(self):
        if getattr(self, "process", None):
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
            self.process = None


class Expanse(Process):
    """The control plane, for identity, and the data plane that is measured."""

    def __init__(self, work):
        self.work, self.plane = work, Process()
        os.makedirs(work)
        self.log = work + "/log"
        self.control, self.data = free_port(), free_port()
        self.control_url, self.url = f"http://127.0.0.1:{self.control}", f"http://127.0.0.1:{self.data}"
        self.run("expanse-control-plane", "bootstrap", "--data-dir", work + "/control", "--organisation", "bench",
                 "--owner-email", "a@example.org", "--key-file", work + "/owner.key", "--plane-key-file", work + "/plane.key")
        self.plane.start(self.log, BIN + "/expanse-control-plane", "--data-dir", work + "/control", "--listen",
                         f"127.0.0.1:{self.control}", "--data-plane-url", self.url)
        wait_for(self.control_url + "/healthz")
        self.open()
        key = open(work + "/owner.key").read().strip()
        self.mint(key)
        made = post(self.control_url + "/expanse.control.v1.ComputeService/RegisterCompute",
                    {"type": "COMPUTE_TYPE_SLURM", "name": "bench"}, self.token)
        got = post(self.url + "/expanse.data.v1.EnrolmentService/ExchangeInstallToken",
                   {"install_token": made["install_token"],
                    "scheduler_identity": "slurm:bench"})
        self.credential = self.write("compute.key", got["credential"])

    def run(self, program, *words):
        subprocess.run([BIN + "/" + program, *words], check=True, stdout=subprocess.DEVNULL)

    def write(self, name, text):
        path = f"{self.work}/{name}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(text)
        return path

    def mint(self, key=None):
        key = key or open(self.work + "/owner.key").read().strip()
        self.token = post(self.control_url + "/expanse.control.v1.AuthService/MintSession", {"api_key": key})["access_token"]
        self.session = self.write("session", self.token)

    def open(self):
        self.start(self.log, BIN + "/expanse-data-plane", "--data-dir", self.work + "/data", "--listen",
                   f"127.0.0.1:{self.data}", "--control-plane-url", self.control_url, "--plane-key-file",
                   self.work + "/plane.key", "--series-retention", "0s")
        wait_for(self.url + "/healthz")

    def sealed(self):
        """A restart seals what the log holds; waits until the logs are gone."""
        self.stop()
        self.open()
        self.await_seal()

    def await_seal(self):
        wal = self.work + "/data/series/wal"
        before = None
        for _ in range(1200):
            names = sorted(os.listdir(wal))
            sizes = disk(self.work + "/data/series")
            if len(names) <= 1 and sizes == before:
                return
            before = sizes
            time.sleep(0.25)
        raise SystemExit("series were not sealed")

    def bytes(self):
        return disk(self.work + "/data/series")

    def close(self):
        self.stop()
        self.plane.stop()


class Victoria(Process):
    def __init__(self, work):
        self.work = work
        os.makedirs(work)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.credential = ""
        self.open()

    def open(self):
        self.start(self.work + "/log", "victoria-metrics", "-storageDataPath", self.work + "/data", "-httpListenAddr",
                   f"127.0.0.1:{self.port}", "-retentionPeriod", "100y", "-search.latencyOffset", "0s")
        wait_for(self.url + "/health")

    def sealed(self):
        """Parts flushed, merged to one a month, and the process restarted."""
        for path in ("/internal/force_flush", "/internal/force_merge"):
            urllib.request.urlopen(self.url + path, timeout=600).read()
        before = None
        for _ in range(600):
            now = disk(self.work + "/data")
            if now == before:
                break
            before = now
            time.sleep(2)
        self.stop()
        self.open()

    def bytes(self):
        return disk(self.work + "/data", leave_out=(self.work + "/data/cache",))

    def close(self):
        self.stop()


def client(*words):
    done = subprocess.run([BIN + "/bench_ingest", *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench_ingest {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def push(side, form, source, **more):
    words = [f"to={form}", f"url={side.url}", f"credential={side.credential}", f"source={source}"]
    before = cpu_seconds(side.pid)
    result = client("push", *words, *(f"{k}={v}" for k, v in more.items()))
    result["server_cpu_s"] = cpu_seconds(side.pid) - before
    return result


def asked(side, *words):
    before = cpu_seconds(side.pid)
    result = client("ask", *words)
    result["cpu_ms"] = 1000 * (cpu_seconds(side.pid) - before) / result["times"]
    return result


def spread(values):
    return f"{min(values):,.2f} / {statistics.median(values):,.2f} / {max(values):,.2f}"


def load():
    return open("/proc/loadavg").read().split()[0]


def new_source():
    return uuid.uuid4().hex[:8]


def traced(side, form, start_ms, skip, path):
    """System calls of the server while five batches come in: what lies between request and answer."""
    tracer = subprocess.Popen(["strace", "-f", "-y", "-e",
                               "trace=fsync,fdatasync,recvmsg,recvfrom,read,readv,sendmsg,sendto,write,writev",
                               "-s", "24", "-o", path, "-p", str(side.pid)], stderr=subprocess.DEVNULL)
    time.sleep(1.5)
    push(side, form, new_source(), batches=5, skip=skip, start_ms=start_ms, facts=1)
    time.sleep(0.2)
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    syncs, answers, began = 0, [], False
    for line in open(path, errors="replace"):
        if re.search(r"(POST /|\"POST)", line):
            syncs, began = 0, True
        # a sync counts when it returned
        elif re.search(r"f(data)?sync\(.*= 0$", line) or re.search(r"<\.\.\. f(data)?sync resumed>.*= 0$", line):
            syncs += 1
        elif began and re.search(r"\"HTTP/1.1 20[04]", line):
            answers.append(syncs)
            began = False
    return answers


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--batches", type=int, default=200)
    p.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    p.add_argument("--corpus", default=os.path.join(HERE, "..", "..", "shared", "corpus", "series.csv.gz"))
    p.add_argument("--work", default=None, help="on the disk to measure (default: a folder in /var/tmp)")
    p.add_argument("--only", nargs="*", default=["rate", "sync", "bytes", "query"])
    a = p.parse_args()
    work = a.work or tempfile.mkdtemp(prefix="expanse-ingest-", dir="/var/tmp")
    os.makedirs(work, exist_ok=True)
    print(f"machine: {os.cpu_count()} cores, load {load()}, disk of {work}")
    version = subprocess.run(["dpkg-query", "-W", "victoria-metrics"], capture_output=True, text=True)
    print("package:", version.stdout.strip())
    start_ms = int(time.time() * 1000) // DAY * DAY - 3 * DAY
    sides = []
    try:
        if "rate" in a.only or "sync" in a.only:
            expanse, victoria = Expanse(work + "/rate-expanse"), Victoria(work + "/rate-victoria")
            sides += [expanse, victoria]
            form = pick_form(victoria, start_ms)
            if "rate" in a.only:
                for clients in a.clients:
                    rates(expanse, victoria, form, a, clients, start_ms)
            if "sync" in a.only:
                for name, side, to in (("Expanse", expanse, "expanse"), ("VictoriaMetrics", victoria, form)):
                    answers = traced(side, to, start_ms - 9 * DAY, 0, work + f"/strace-{name}")
                    print(f"sync: {name}: completed fsync/fdatasync between a request's arrival and its answer: {answers}")
            for side in (expanse, victoria):
                side.close()
        if "bytes" in a.only:
            sizes(work, sides, a, start_ms)
        if "query" in a.only:
            queries(work, sides, start_ms)
    finally:
        for side in sides:
            try:
                side.close()
            except Exception as e:  # the others are stopped all the same
                print(e, file=sys.stderr)
        if not a.work:
            shutil.rmtree(work, ignore_errors=True)


def pick_form(victoria, start_ms):
    best = {}
    for form in ("native", "json", "influx", "remote-write"):
        runs = [push(victoria, form, new_source(), batches=60, skip=60 * i, start_ms=start_ms - 20 * DAY)["rate"] for i in range(3)]
        best[form] = statistics.median(runs)
    print("VictoriaMetrics, samples/s by protocol, one client:", ", ".join(f"{k} {v:,.0f}" for k, v in best.items()))
    return max(best, key=best.get)


def rates(expanse, victoria, form, a, clients, start_ms):
    print(f"\nintake, {clients} client(s), batches of 1,000 series x 10, VictoriaMetrics by {form}")
    print("round    Expanse/s  Victoria/s   ratio | batch ms p50 (E, V) | server CPU s per M samples (E, V) | load")
    ratios, e_rates, v_rates = [], [], []
    source = new_source()
    for r in range(a.rounds + 1):
        more = dict(batches=a.batches, skip=r * a.batches, clients=clients, start_ms=start_ms - clients * 30 * DAY)
        runs = {}
        for name in ("e", "v") if r % 2 else ("v", "e"):
            side, to = (expanse, "expanse") if name == "e" else (victoria, form)
            runs[name] = push(side, to, source, **more)
            time.sleep(1)
        e, v = runs["e"], runs["v"]
        note = "" if r else "  first round: every series is new; left out below"
        per_m = [1e6 * x["server_cpu_s"] / x["samples"] for x in (e, v)]
        print(f"{r:5} {e['rate']:12,.0f}{v['rate']:12,.0f}{e['rate'] / v['rate']:8.2f} | {e['batch_ms_median']:8.1f}{v['batch_ms_median']:8.1f} |"
              f" {per_m[0]:8.2f}{per_m[1]:8.2f} | {load()}{note}", flush=True)
        if r:
            ratios.append(e["rate"] / v["rate"])
            e_rates.append(e["rate"])
            v_rates.append(v["rate"])
    print(f"min / median / max: Expanse {spread(e_rates)}; VictoriaMetrics {spread(v_rates)}; ratio {spread(ratios)}")
    print(f"resident MiB: Expanse {resident_mib(expanse.pid):.0f}, VictoriaMetrics {resident_mib(victoria.pid):.0f}")


def sizes(work, sides, a, start_ms):
    sets = [("hpc-gauges-v1, 1,000 series, 60 min", dict(batches=36)), ("hpc-gauges-v1, 1,000 series, 24 h", dict(batches=864))]
    if os.path.exists(a.corpus):
        with gzip.open(a.corpus) as packed, open(work + "/corpus.csv", "wb") as out:
            shutil.copyfileobj(packed, out)
        sets.append(("corpus series", dict(data=work + "/corpus.csv")))
    print("\nbytes a sample after sealing, index included (file lengths; in disk blocks)")
    for n, (name, more) in enumerate(sets):
        row = []
        for side, form in ((Expanse(f"{work}/bytes-e{n}"), "expanse"), (Victoria(f"{work}/bytes-v{n}"), "native")):
            sides.append(side)
            samples = push(side, form, new_source(), start_ms=start_ms, **more)["samples"]
            side.sealed()
            row.append([b / samples for b in side.bytes()])
            side.close()
        print(f"{name}: {samples:,} samples: Expanse {row[0][0]:.3f} ({row[0][1]:.3f}), VictoriaMetrics {row[1][0]:.3f} ({row[1][1]:.3f}),"
              f" ratio {row[0][0] / row[1][0]:.2f}", flush=True)


def queries(work, sides, start_ms):
    executions, batches = 116, 864  # x 10 metrics x 10 samples: 10.02 million, a day
    expanse, victoria = Expanse(work + "/query-expanse"), Victoria(work + "/query-victoria")
    sides += [expanse, victoria]
    for side, form in ((expanse, "expanse"), (victoria, "native")):
        push(side, form, new_source(), executions=executions, batches=batches, start_ms=start_ms)
        side.sealed()
    expanse.mint()
    jobs = [str(1000 + i) for i in range(0, executions, 3)]
    ids = [post(expanse.url + "/expanse.data.v1.ExecutionService/ResolveExecution", {"native_id": j}, expanse.token)["executions"][0]["execution_id"] for j in jobs]
    print("\none execution, a day in buckets of 30 s, 10,022,400 samples stored, over HTTP; median / p99 / max ms (points answered, server CPU ms a question)")
    for metrics in ("memory", "cpu", "all"):
        times = 200 if metrics != "all" else 60
        row = []
        common = [f"from_ms={start_ms}", f"to_ms={start_ms + DAY}", f"times={times}"]
        names = "cpu,memory,memory-anon,memory-file,processes,io-read,io-write,gpu-util,gpu-memory-used,gpu-power"
        e = asked(expanse, "to=expanse", f"url={expanse.url}", f"credential={expanse.session}", "ids=" + ",".join(ids),
                   f"metrics={names if metrics == 'all' else metrics}", *common)
        v = asked(victoria, "to=victoria", f"url={victoria.url}", "ids=" + ",".join(jobs), f"metrics={metrics}", *common)
        for x in (e, v):
            row.append(f"{x['median_ms']:.1f} / {x['p99_ms']:.1f} / {x['max_ms']:.1f} ({x['points']}, server CPU {x['cpu_ms']:.1f})")
        print(f"{metrics if metrics != 'all' else 'all ten metrics'}: Expanse {row[0]}, VictoriaMetrics {row[1]}, load {load()}", flush=True)
    for side in (expanse, victoria):
        side.close()


if __name__ == "__main__":
    main()
