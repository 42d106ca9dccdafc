#!/usr/bin/env python3
"""Checks built agents against the agent contract (docs/reference/bench-agents.md).

    check.py DIRECTORY [SYSTEM ...]

DIRECTORY has the programs (make -s -C lab/peers paths). SYSTEM is a name of systems.toml; without
one, every system whose program is built is checked. Where the user may, traffic runs in a network
namespace of its own. Exit code 1 if an agent breaks the contract.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ISOLATED = "TAKT_CHECK_ISOLATED"
KEYS = {
    "info": {"peer": str, "version": str, "transports": str, "notifies": str, "types": str,
             "fixed_size": bool},
    "ping": {"size": int, "got": int, "lost": int, "cpu_s": float, "wall_s": float, "nvcsw": int,
             "nivcsw": int, "listening": int},
    "sub": {"id": int, "n": int, "bytes": int, "wall_s": float, "cpu_s": float, "span": int,
            "total": int},
    "pub": {"n": int, "wall_s": float, "cpu_s": float, "fails": int, "total": int},
    "idle": {"cpu_s": float, "wall_s": float, "nvcsw": int, "bare_kib": int, "resident_kib": int,
             "peak_kib": int, "private_kib": int},
    "crowd": {"bare_kib": int, "participants_kib": int, "endpoints_kib": int, "resident_kib": int,
              "private_kib": int},
    "matched": {"main_ms": float, "init_ms": float, "match_ms": float},
}
TABLE = {
    "name": str, "title": str, "program": str, "arguments": list, "class": str, "profile": str,
    "document": str, "batches": bool, "transport": str, "fixed_size": bool, "history": str,
    "notify": list, "except": list, "broker": str,
}
OPTIONAL = {"document", "history", "except", "broker"}
CLASSES = {"dds", "middleware", "platform", "limit"}
EXCEPTIONS = {"reliable", "besteffort", "complex", "stream", "open-loop", "ack", "fan-out",
              "multicast", "broadcast", "idle", "disc"}
WRONG = ["rel=maybe", "hist=-1", "hist=some", "notify=loudly", "type=blob", "sizes=64,",
         "sizes=abc", "delivery=pigeon", "transport=nonsense", "touch=2", "batch=0", "count=ten",
         "domain=900", "security=/nowhere"]
CONTRACT_END_S = 3
PATIENCE_S = 60
BROKER_PORT = 21700


class Broken(Exception):
    """The agent does something that the contract does not allow."""


def require(condition, text):
    if not condition:
        raise Broken(text)


def octets_of(path):
    return Path(path).stat().st_size if Path(path).is_file() else 0


class Agent:
    """A running agent whose lines are read from a file, so that a full pipe never blocks it."""

    def __init__(self, program, role, arguments):
        self.call = f"{role} {' '.join(arguments)}"
        self.lines = tempfile.NamedTemporaryFile(mode="r", prefix="takt-check-")
        self.errors = tempfile.TemporaryFile(mode="w+", prefix="takt-check-")
        with open(self.lines.name, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen([program, role, *arguments], stdout=out,
                                            stderr=self.errors, stdin=subprocess.DEVNULL)

    def events(self):
        found = []
        for line in Path(self.lines.name).read_text(encoding="utf-8").splitlines(keepends=True):
            if line.startswith("{") and line.endswith("\n"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    raise Broken(f"{self.call}: not JSON: {line.strip()}") from None
        return found

    def wait_for(self, kind, times=1):
        end = time.monotonic() + PATIENCE_S
        while True:
            ended = self.process.poll() is not None
            found = [event for event in self.events() if event.get("ev") == kind]
            if len(found) >= times:
                return found
            require(not ended, f"{self.call}: ends with {self.process.returncode} before "
                               f"{kind}: {self.events()} {self.stderr()}")
            require(time.monotonic() < end, f"{self.call}: no {kind} within {PATIENCE_S} s")
            time.sleep(0.02)

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()[-300:].strip()

    def wait_end(self):
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.call}: does not end within {PATIENCE_S} s") from None

    def terminate(self):
        """SIGTERM: exit code 0 within 3 s."""
        require(self.process.poll() is None,
                f"{self.call}: ended with {self.process.poll()} before SIGTERM: {self.stderr()}")
        self.process.terminate()
        try:
            code = self.process.wait(CONTRACT_END_S)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.call}: runs {CONTRACT_END_S} s after SIGTERM") from None
        require(code == 0, f"{self.call}: exit code {code} after SIGTERM: {self.stderr()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.lines.close()
        self.errors.close()


def check_keys(kind, event, call):
    for key, expected in KEYS[kind].items():
        require(key in event, f"{call}: {kind} lacks {key}: {event}")
        value = event[key]
        right = isinstance(value, (int, float)) and not isinstance(value, bool) \
            if expected is float else type(value) is expected
        require(right, f"{call}: {kind} has {key}={value!r}, not {expected.__name__}")
        if expected in (int, float):
            require(value >= 0, f"{call}: {kind} has {key}={value}, below 0")


class System:
    def __init__(self, table, program):
        self.table = table
        self.program = program
        self.broker = []  # the key of the broker that runs, if there is one
        self.excepted = {text.split(":")[0] for text in table.get("except", [])}

    def arguments(self, *more):
        history = self.table.get("history", "1")
        return [*self.table["arguments"], "domain=11", f"hist={history}", *self.broker,
                *more]

    def start(self, role, *more):
        return Agent(self.program, role, self.arguments(*more))

    def reliabilities(self):
        return [rel for rel in ("reliable", "besteffort") if rel not in self.excepted]

    def can(self, workload):
        return workload not in self.excepted

    # Each function that starts with check_ is one case.

    def check_info(self):
        with Agent(self.program, "info", [*self.table["arguments"], "unknown=1"]) as agent:
            require(agent.wait_end() == 0, f"info: exit code {agent.process.returncode}")
            event = agent.wait_for("info")[0]
            check_keys("info", event, "info")
            require(event["fixed_size"] == self.table["fixed_size"],
                    f"info: fixed_size={event['fixed_size']}, not as in systems.toml")
            require(set(self.table["notify"]) <= set(event["notifies"].split(",")),
                    f"info: notifies={event['notifies']} lacks some of {self.table['notify']}")
            require(("complex" in event["types"].split(",") and self.can("complex"))
                    or not self.can("complex"), f"info: types={event['types']} lacks complex")
            require("default" in event["transports"].split(","), "info: no transport=default")

    def round_trips(self, *more, sizes, count=200, period_ns=0):
        out = tempfile.mktemp(prefix="takt-check-")
        options = [f"sizes={','.join(map(str, sizes))}", *more]
        try:
            with self.start("pong", *options) as pong:
                pong.wait_for("ready")
                with self.start("ping", *options, f"count={count}", "warmup=20",
                                f"period_ns={period_ns}", f"out={out}") as ping:
                    require(ping.wait_end() == 0,
                            f"{ping.call}: exit code {ping.process.returncode}: {ping.events()} "
                            f"{ping.stderr()}")
                    ping.wait_for("ready")
                    ping.wait_for("done")
                    results = ping.wait_for("result", len(sizes))
                    self.judge_round_trips(ping.call, results, sizes, count, out, options,
                                           period_ns)
                pong.terminate()
        finally:
            Path(out).unlink(missing_ok=True)

    def judge_round_trips(self, call, results, sizes, count, out, options, period_ns):
        for result, size in zip(results, sizes, strict=True):
            check_keys("ping", result, call)
            require(result["role"] == "ping" and result["size"] == size,
                    f"{call}: result of {result}, expected size {size}")
            require(result["got"] <= count, f"{call}: more round trips than {count}: {result}")
            require(result["got"] > 0, f"{call}: no round trip: {result}")
            require(result["listening"] == ("notify=listener" in options)
                    or not any(word.startswith("notify=") for word in options),
                    f"{call}: another notification: {result}")
            if period_ns:
                require(result["got"] + result["lost"] == count, f"{call}: not {count}: {result}")
            elif "rel=reliable" in options:
                # A pong that a busy machine delays for 1 s counts as lost.
                require(result["got"] + result["lost"] >= count and result["lost"] < 20,
                        f"{call}: reliable, but {result}")
        got = sum(result["got"] for result in results)
        octets = octets_of(out)
        require(octets == 8 * got, f"{call}: {octets} octets of times for {got} round trips")

    def check_round_trips(self):
        sizes = [[64], [16384]] if self.table["fixed_size"] else [[64, 16384]]
        for rel in self.reliabilities():
            for notify in self.table["notify"]:
                for some in sizes:
                    self.round_trips(f"rel={rel}", f"notify={notify}", sizes=some)

    def check_complex(self):
        if self.can("complex"):
            self.round_trips(f"rel={self.reliabilities()[0]}", "type=complex", sizes=[8, 64, 4096])

    def check_open_loop(self):
        if self.can("open-loop"):
            for notify in self.table["notify"][:2]:
                self.round_trips(f"rel={self.reliabilities()[0]}", f"notify={notify}", sizes=[64],
                                 period_ns=1000000)

    def check_acknowledgment(self):
        if self.can("ack"):
            self.round_trips(f"rel={self.reliabilities()[0]}", "reply=ack", sizes=[4, 1024])

    def stream(self, *more):
        out = tempfile.mktemp(prefix="takt-check-")
        history = self.table.get("history", "all")
        options = ["size=64", "warm_s=0.2", "secs=1", "touch=1", f"hist={history}", *more]
        try:
            with self.start("sub", *options, f"out={out}") as sub:
                sub.wait_for("ready")
                with self.start("pub", *options) as pub:
                    require(pub.wait_end() == 0, f"{pub.call}: exit code {pub.process.returncode}: "
                                                 f"{pub.events()} {pub.stderr()}")
                    pub.wait_for("done")
                    written = pub.wait_for("result")[0]
                received = sub.wait_for("result")[0]
                sub.terminate()
                require(written["n"] > 0, f"{pub.call}: {written}")
                check_keys("pub", written, pub.call)
                self.judge_received(sub.call, received, out)
        finally:
            Path(out).unlink(missing_ok=True)

    def judge_received(self, call, received, out):
        check_keys("sub", received, call)
        samples = received["n"]
        require(samples > 0 and received["bytes"] == 64 * samples, f"{call}: {received}")
        require(received["span"] >= samples - 1, f"{call}: span is too short: {received}")
        if "rel=reliable" in call and self.table.get("history") == "all":
            require(received["span"] == samples - 1, f"{call}: reliable, but lost: {received}")
        times = octets_of(out) // 8
        require(times == min(samples, 1 << 24), f"{call}: {times} times of {samples} samples")

    def check_stream(self):
        if self.can("stream"):
            for rel in self.reliabilities():
                self.stream(f"rel={rel}", "rate=0")
            self.stream(f"rel={self.reliabilities()[0]}", "rate=1000")

    def pair(self, role, *more):
        """Two agents that match each other; those that are still alive at the end get SIGTERM."""
        options = ["warm_s=0.1", "secs=0.3", f"rel={self.reliabilities()[0]}", "size=64", *more]
        started_ns = time.monotonic_ns()
        with self.start(role, *options, "id=0", f"t0={started_ns}") as first, \
                self.start(role, *options, "id=1", f"t0={started_ns}") as second:
            for agent in (first, second):
                agent.wait_for("ready")
                matched = agent.wait_for("matched")[0]
                check_keys("matched", matched, agent.call)
                require(matched["main_ms"] <= matched["init_ms"] <= matched["match_ms"],
                        f"{agent.call}: not in order: {matched}")
                if role == "idle":
                    check_keys("idle", agent.wait_for("result")[0], agent.call)
            first.terminate()
            second.terminate()

    def check_idle(self):
        if not self.can("idle"):
            return
        self.pair("idle")
        with self.start("idle", "n=0", "warm_s=0.1", "secs=0.2", "size=64",
                        f"rel={self.reliabilities()[0]}") as alone:
            alone.wait_for("result")
            require(not [event for event in alone.events() if event.get("ev") == "matched"],
                    f"{alone.call}: matched without a peer")
            alone.terminate()

    def check_discovery(self):
        if self.can("disc"):
            self.pair("disc")

    def roles(self):
        with Agent(self.program, "info", self.table["arguments"]) as agent:
            return agent.wait_for("info")[0].get("roles", "").split(",")

    def check_crowd(self):
        """A newcomer finds all writers of a crowd of three, and three find one another."""
        if "crowd" not in self.roles():
            return
        options = ["participants=3", "endpoints=2", "warm_s=0.1", "rel=reliable", "size=64"]
        with self.start("crowd", *options) as crowd:
            crowd.wait_for("ready")
            result = crowd.wait_for("result")[0]
            check_keys("crowd", result, crowd.call)
            require(result["resident_kib"] > result["bare_kib"], f"{crowd.call}: {result}")
            with self.start("seek", *options, f"t0={time.monotonic_ns()}") as seek:
                seek.wait_for("ready")
                matched = seek.wait_for("matched")[0]
                check_keys("matched", matched, seek.call)
                require(matched["init_ms"] <= matched["match_ms"], f"{seek.call}: {matched}")
                seek.terminate()
            crowd.terminate()
        with self.start("mesh", *options, "participants=1", f"t0={time.monotonic_ns()}") as mesh:
            mesh.wait_for("ready")
            check_keys("matched", mesh.wait_for("matched")[0], mesh.call)
            mesh.terminate()

    def check_wrong_values(self):
        wrong = WRONG + (["type=complex"] if "complex" in self.excepted else [])
        wrong += ["rel=reliable"] if "reliable" in self.excepted else []
        for value in wrong:
            with self.start("ping", value) as agent:
                code = agent.wait_end()
                require(code > 0, f"{agent.call}: exit code {code}")
                what = agent.wait_for("error")[0].get("what")
                require(isinstance(what, str) and what, f"{agent.call}: error without a text")
        with self.start("sing") as agent:
            require(agent.wait_end() > 0, "an unknown role has exit code 0")
            agent.wait_for("error")

    def check_terminate(self):
        """SIGTERM while the agent waits for a peer that never comes."""
        for role in ("ping", "pong", "pub", "sub"):
            if role in ("pub", "sub") and not self.can("stream"):
                continue
            with self.start(role, f"rel={self.reliabilities()[0]}", "size=64") as agent:
                agent.wait_for("ready")
                agent.terminate()


def check_table(table):
    name = table.get("name", "?")
    for key, kind in TABLE.items():
        if key in table or key not in OPTIONAL:
            require(isinstance(table.get(key), kind), f"{name}: {key} is not a {kind.__name__}")
    unknown = set(table) - set(TABLE)
    require(not unknown, f"{name}: unknown keys {unknown}")
    require(table["class"] in CLASSES, f"{name}: class {table['class']}")
    require(table["profile"] in ("default", "tuned"), f"{name}: profile {table['profile']}")
    require(table["profile"] == "default" or table.get("document"), f"{name}: no document")
    for text in table.get("except", []):
        word = text.split(":")[0]
        known = word in EXCEPTIONS or (word.startswith("above ") and word[6:].isdigit())
        require(known and ": " in text, f"{name}: except {text!r}")


def isolate():
    """Runs this program again in namespaces of its own; returns where that is not possible."""
    if os.environ.get(ISOLATED):
        return
    spaces = ["--net", "--mount"] if os.geteuid() == 0 else ["--net", "--mount", "--map-root-user"]
    prepare = "mount -t tmpfs tmpfs /dev/shm && ip link set lo up multicast on && " \
              "ip route add 239.0.0.0/8 dev lo"
    trial = ["unshare", *spaces, "sh", "-c", prepare]
    if shutil.which("unshare") and \
            subprocess.run(trial, capture_output=True, check=False).returncode == 0:
        os.environ[ISOLATED] = "1"
        os.execvp("unshare", ["unshare", *spaces, "sh", "-c", f'{prepare} && exec "$@"', "sh",
                              sys.executable, *sys.argv])
    print("no namespaces here: the agents share this host's loopback", flush=True)


def check_system(table, program):
    system = System(table, program)
    if "broker" not in table:
        return check_cases(system)
    system.broker = [f"broker=127.0.0.1:{BROKER_PORT}"]
    broker = str(Path(program).with_name(table["broker"]))
    try:
        with Agent(broker, "broker", system.arguments()) as agent:
            agent.wait_for("ready")
            broken = check_cases(system)
            agent.terminate()
        return broken
    except Broken as why:
        print(f"FAIL {table['name']} broker: {why}", flush=True)
        return 1


def check_cases(system):
    table, broken = system.table, 0
    for case in (name for name in dir(System) if name.startswith("check_")):
        try:
            getattr(system, case)()
        except Broken as why:
            broken += 1
            print(f"FAIL {table['name']} {case}: {why}", flush=True)
    if not broken:
        print(f"ok   {table['name']}", flush=True)
    return broken


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    isolate()
    directory, wanted = Path(sys.argv[1]), set(sys.argv[2:])
    tables = tomllib.loads((HERE / "systems.toml").read_text(encoding="utf-8"))["system"]
    unknown = wanted - {table.get("name") for table in tables}
    if unknown:
        sys.exit(f"systems.toml has no {', '.join(sorted(unknown))}")
    broken = 0
    for table in tables:
        try:
            check_table(table)
        except Broken as why:
            broken += 1
            print(f"FAIL systems.toml {why}", flush=True)
            continue
        if wanted and table["name"] not in wanted:
            continue
        program, reason = directory / table["program"], directory / f"{table['program']}.missing"
        if os.access(program, os.X_OK):
            broken += check_system(table, str(program))
        elif reason.is_file():
            print(f"skip {table['name']}: {reason.read_text(encoding='utf-8').splitlines()[0]}",
                  flush=True)
        else:
            broken += 1
            print(f"FAIL {table['name']}: neither {program} nor {reason} is there", flush=True)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
