"""Both roles of takt bench sdn-overload for CycloneDDS, unmodified: NAME ROLE PLAN CYCLONEDDS_URI."""

import json
import os
import select
import struct
import sys
import time
from dataclasses import dataclass

role, plan, uri = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
os.environ["CYCLONEDDS_URI"] = uri

from cyclonedds.core import Policy, Qos, WaitSet, ReadCondition, ViewState, InstanceState, SampleState
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import sequence, uint8
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration


@dataclass
class Blob(IdlStruct, typename="Blob"):
    data: sequence[uint8]


def say(**line):
    print(json.dumps(line), flush=True)


def line_heard():
    return bool(select.select([sys.stdin], [], [], 0)[0]) and sys.stdin.readline() != ""


category = plan["category"]
blocking = duration(seconds=30)
if category == "best-effort":
    reliability, history = Policy.Reliability.BestEffort, Policy.History.KeepLast(1)
elif category == "reliable-all":
    reliability, history = Policy.Reliability.Reliable(blocking), Policy.History.KeepAll
else:
    reliability, history = Policy.Reliability.Reliable(blocking), Policy.History.KeepLast(category["reliable"])

order = Policy.DestinationOrder.BySourceTimestamp
participant = DomainParticipant(plan["domain"])
topic = Topic(participant, "Overload", Blob)

if role == "overload-subscribe":
    reader = DataReader(participant, topic, qos=Qos(reliability, Policy.History.KeepAll, order))
    waitset = WaitSet(participant)
    waitset.attach(ReadCondition(reader, ViewState.Any | InstanceState.Any | SampleState.Any))
    say(ev="ready")
    arrivals, is_matched = [], False
    while not line_heard():
        if not is_matched and reader.get_matched_publications():
            say(ev="matched")
            is_matched = True
        waitset.wait(duration(milliseconds=20))
        for sample in reader.take(N=64):
            if isinstance(sample, Blob):
                arrivals.append([struct.unpack("=Q", bytes(sample.data[:8]))[0], time.monotonic_ns()])
    say(ev="result", arrivals=arrivals)
else:
    writer = DataWriter(participant, topic, qos=Qos(reliability, history, order))
    end = time.monotonic() + 25
    while not writer.get_matched_subscriptions():
        if time.monotonic() > end:
            say(ev="error", what="the subscriber is not found")
            sys.exit(1)
        time.sleep(0.02)
    say(ev="matched")
    while not line_heard():
        time.sleep(0.02)
    filler = [0xA5] * (plan["size"] - 8)
    late = 0
    begin = time.monotonic_ns() + plan["period_ns"]
    for number in range(plan["count"]):
        due = begin + number * plan["period_ns"]
        left = due - time.monotonic_ns()
        if left > 0:
            time.sleep(left / 1e9)
        late = max(late, time.monotonic_ns() - due)
        writer.write(Blob(list(struct.pack("=Q", number)) + filler))
    if category == "best-effort":
        time.sleep(1)
    else:
        writer.wait_for_acks(blocking)
    say(ev="result", sent=plan["count"], late_ns=late)
