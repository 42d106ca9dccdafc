#!/usr/bin/env python3
"""Checks that the agents add no time of their own to a round trip (docs/reference/bench-agents.md).

    bias.py DIRECTORY TAKT [--starts N] [PART ...]

DIRECTORY has the agents (make -s -C lab/peers paths), TAKT is a release build of takt. Parts:

    udp                  UDP of `takt perf agent` and of `limit`, beside a bare C program: 2 %
    cyclonedds-listener  the agent of CycloneDDS, beside its own ddsperf: 5 %
    cyclonedds-waitset   the same with a waitset

Both programs are started N times. They run in turns of 50 ms: SIGSTOP holds one while the other
runs, so that a machine that drifts favors neither. A round is a turn of each, or for ddsperf a
second, since it prints medians of seconds. The ratio of a round is that of the median round trips.
A claim is kept if the 95 % interval of the median ratio (bootstrap over rounds) is within its
limit, not kept if it is outside, else undecided. Exit code 1 if one is not kept.
"""
import argparse
import array
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import check  # noqa: E402

SIZES = [64, 16384]
RESAMPLES = 2000
PORT = 20900
TURN_S = 0.05
# A round trip that a stop interrupts takes longer, and no other one does.
INTERRUPTED_NS = 5_000_000
MATCH_S = 1.0
PATIENCE_S = 60
# As the agent configures it on an interface with multicast.
CYCLONEDDS_URI = (
    '<CycloneDDS><Domain><General><Interfaces><NetworkInterface name="lo"/></Interfaces>'
    "<AllowMulticast>spdp</AllowMulticast></General></Domain></CycloneDDS>")


class Failed(Exception):
    """A program that is compared does not run."""


class Pair:
    """`ping` of one program on processor 0, `pong` on 1; they end with the block."""

    def __init__(self, pong, ping, directory, environment=None):
        self.out = directory / "ping"
        self.running = []
        for processor, words, name in ((1, pong, "pong"), (0, ping, "ping")):
            words = ["taskset", "--cpu-list", str(processor), *map(str, words)]
            with open(directory / name, "w", encoding="utf-8") as out:
                self.started_s = time.monotonic()
                process = subprocess.Popen(words, stdout=out, stderr=out, env=environment)
            self.running.append(process)
            time.sleep(0.2)

    def ended(self):
        return self.running[1].poll() is not None

    def send(self, number):
        for process in self.running[::1 if number == signal.SIGCONT else -1]:
            if process.poll() is None:
                process.send_signal(number)

    def wait_end(self):
        code = self.running[1].wait(PATIENCE_S)
        if code:
            text = self.out.read_text(encoding="utf-8")
            raise Failed(f"{' '.join(self.running[1].args)}: exit code {code}: {text}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        for process in self.running:
            process.wait(PATIENCE_S)


class Bare:
    """The C program of this directory."""

    name = "bare C"
    trips = 100000

    def __init__(self, directory):
        self.program = directory / "bias-pingpong"

    def start(self, size, directory):
        ping = [self.program, "ping", PORT, size, 0, self.trips, directory / "times"]
        return Pair([self.program, "pong", PORT], ping, directory)


class Agent:
    """An agent, with the arguments that `takt bench run` gives it."""

    def __init__(self, name, trips, program, *arguments):
        self.name, self.trips = name, trips
        self.program, self.arguments = program, arguments

    def start(self, size, directory):
        common = ["domain=11", "iface=lo", "addr=127.0.0.1", f"size={size}", *self.arguments]
        ping = [*self.program, "ping", *common, "warmup=0", f"count={self.trips}",
                f"out={directory / 'times'}"]
        return Pair([*self.program, "pong", *common], ping, directory)


class DdsPerf:
    """CycloneDDS's own program. It prints the median of halved round trips each second."""

    name = "ddsperf"
    trips = None

    def __init__(self, notify):
        self.notify = notify

    def start(self, size, directory):
        environment = {"PATH": os.environ["PATH"], "CYCLONEDDS_URI": CYCLONEDDS_URI}
        words = ["ddsperf", "-i", "12"]
        return Pair([*words, "pong", self.notify],
                    [*words, "ping", "size", size, self.notify], directory, environment)

    def seconds(self, pair):
        """(time of the line, median round trip in us) of each second."""
        text = pair.out.read_text(encoding="utf-8")
        found = re.findall(r"^\[\d+\] ([0-9.]+) .* size \d+ mean .* 50% ([0-9.]+)us ", text, re.M)
        return [(pair.started_s + 0.2 + float(at), 2 * float(half)) for at, half in found]


def turns_of(path):
    """Round trips of each turn, us."""
    times = array.array("Q", path.read_bytes())
    stops = [at for at, ns in enumerate(times) if ns >= INTERRUPTED_NS]
    turns, spent_ns = [[]], 0
    for ns in times[stops[0] + 1:] if stops else []:
        if ns >= INTERRUPTED_NS:
            continue
        if spent_ns >= TURN_S * 1e9:
            turns.append([])
            spent_ns = 0
        turns[-1].append(ns / 1e3)
        spent_ns += ns
    return turns[:-1]


def take_turns(first, second):
    """Lets two pairs run in turns until one ends; the times at which the second one ran."""
    second.send(signal.SIGSTOP)
    began_s = []
    while not first.ended() and not second.ended():
        for pair in (first, second):
            pair.send(signal.SIGCONT)
            if pair is second:
                began_s.append(time.monotonic())
            time.sleep(TURN_S)
            pair.send(signal.SIGSTOP)
    return began_s


def start_once(reference, subject, size, directory):
    """Medians of the rounds of one start: those of the reference, those of the subject."""
    places = [directory / "reference", directory / "subject"]
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    with reference.start(size, places[0]) as first:
        if reference.trips:
            first.send(signal.SIGSTOP)
        with subject.start(size, places[1]) as second:
            time.sleep(MATCH_S)
            first.send(signal.SIGSTOP)
            began_s = take_turns(first, second)
            second.send(signal.SIGCONT)
            second.wait_end()
            if reference.trips:
                first.send(signal.SIGCONT)
                first.wait_end()
    of_subject = turns_of(places[1] / "times")
    if reference.trips:
        of_reference = turns_of(places[0] / "times")
        count = min(len(of_reference), len(of_subject), len(began_s))
        return [list(map(statistics.median, turns[:count])) for turns in (of_reference, of_subject)]
    medians = [], []
    seconds = reference.seconds(first)
    for (from_s, _), (to_s, median) in zip(seconds, seconds[1:]):
        trips = [trip for at_s, turn in zip(began_s, of_subject) if from_s <= at_s < to_s - TURN_S
                 for trip in turn]
        # The first second with turns has trips from before them.
        if trips and from_s > began_s[0]:
            medians[0].append(median)
            medians[1].append(statistics.median(trips))
    return medians


def interval(ratios):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios)))
                     for _ in range(RESAMPLES))
    return medians[RESAMPLES * 25 // 1000], medians[RESAMPLES * 975 // 1000 - 1]


def verdict(low, high, limit):
    if 1 - limit <= low and high <= 1 + limit:
        return "kept"
    return "not kept" if high < 1 - limit or low > 1 + limit else "undecided"


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} us (quartiles {low:.2f}, {high:.2f})"


def compare(reference, subject, size, limit, starts, directory):
    """Prints the ratios of rounds and what they say; false: the claim is not kept."""
    references, subjects = [], []
    print(f"{subject.name} / {reference.name}, {size} B")
    for start in range(starts):
        found = start_once(reference, subject, size, directory)
        if len(found[0]) < 2:
            raise Failed(f"start {start + 1} has {len(found[0])} rounds")
        ratios = [one / other for one, other in zip(found[1], found[0], strict=True)]
        print(f"  start {start + 1}: " + " ".join(f"{ratio:.3f}" for ratio in ratios), flush=True)
        references += found[0]
        subjects += found[1]
    ratios = [one / other for one, other in zip(subjects, references, strict=True)]
    low, high = interval(ratios)
    word = verdict(low, high, limit)
    print(f"  {spread(subjects)} / {spread(references)}")
    print(f"  median of {len(ratios)} rounds {statistics.median(ratios):.4f}, "
          f"95 % interval {low:.4f} to {high:.4f}, limit {100 * limit:g} %: {word}", flush=True)
    return word != "not kept"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("takt", type=Path)
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("parts", nargs="*", metavar="PART")
    given = parser.parse_intermixed_args()
    if not given.takt.is_file():
        sys.exit(f"{given.takt} is not there: cargo build --release --locked -p takt-cli")
    check.isolate()
    lossy = ["rel=besteffort", "hist=all"]
    takt = Agent("takt perf agent", 100000, [given.takt, "perf", "agent"], "transport=raw", *lossy)
    limit = Agent("limit", 100000, [given.directory / "limit"], "transport=udp", *lossy)
    parts = {"udp": (Bare(given.directory), [takt, limit], 0.02)}
    for notify in ("listener", "waitset"):
        agent = Agent("cyclonedds-0.10", 60000, [given.directory / "cyclonedds-0.10"],
                      "rel=reliable", "hist=1", f"notify={notify}")
        parts[f"cyclonedds-{notify}"] = (DdsPerf(notify), [agent], 0.05)
    unknown = set(given.parts) - set(parts)
    if unknown:
        sys.exit(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    are_kept = True
    for name in given.parts or parts:
        if name != "udp" and not shutil.which("ddsperf"):
            print(f"{name}: ddsperf is missing: apt-get install cyclonedds-tools")
            continue
        reference, subjects, limit = parts[name]
        print(f"{name}, {given.starts} starts", flush=True)
        with tempfile.TemporaryDirectory(prefix="takt-bias-") as directory:
            for subject in subjects:
                for size in SIZES:
                    are_kept &= compare(reference, subject, size, limit, given.starts,
                                        Path(directory))
    sys.exit(0 if are_kept else 1)


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"bias.py: {why}")
