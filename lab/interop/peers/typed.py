"""A CycloneDDS endpoint whose type is one of several versions of `interop::Pose`.

Run as `typed.py DOMAIN writer|reader VERSION`. A writer writes one sample ten times a second; a reader prints one JSON
object for each sample, with the members that its type has. Ends when standard input does.
"""

import json
import sys
from dataclasses import asdict, dataclass
from threading import Thread

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import appendable, key
from cyclonedds.idl.types import float32, float64, int32, sequence, uint32
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic
from cyclonedds.util import duration


@dataclass
@appendable
class OldPart(IdlStruct, typename="interop::Part"):
    a: int32


@dataclass
@appendable
class NewPart(IdlStruct, typename="interop::Part"):
    a: int32
    b: int32 = 0


@dataclass
@appendable
class Old(IdlStruct, typename="interop::Pose"):
    id: uint32
    key("id")
    x: float64
    parts: sequence[OldPart]


@dataclass
@appendable
class New(IdlStruct, typename="interop::Pose"):
    id: uint32
    key("id")
    x: float64
    parts: sequence[NewPart]
    y: float64 = 0.0
    frame: str = ""


@dataclass
@appendable
class Other(IdlStruct, typename="interop::Pose"):
    id: uint32
    key("id")
    x: float32
    parts: sequence[OldPart]


SAMPLES = {
    "old": Old(3, 1.5, [OldPart(10), OldPart(20)]),
    "new": New(3, 1.5, [NewPart(10, 11), NewPart(20, 21)], -2.5, "base"),
    "other": Other(3, 1.5, [OldPart(10), OldPart(20)]),
}
QOS = Qos(
    Policy.Reliability.Reliable(duration(seconds=10)),
    Policy.Durability.TransientLocal,
    Policy.History.KeepLast(1),
    Policy.DataRepresentation(use_xcdrv2_representation=True),
)


def main():
    domain, role, version = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    sample = SAMPLES[version]
    participant = DomainParticipant(domain)
    topic = Topic(participant, "Topic", type(sample), qos=QOS)
    if role == "writer":
        endpoint = DataWriter(Publisher(participant), topic, qos=QOS)
    else:
        endpoint = DataReader(Subscriber(participant), topic, qos=QOS)
    print(json.dumps({"ready": version}), flush=True)
    # Standard input ends with whoever started us.
    end = Thread(target=sys.stdin.read, daemon=True)
    end.start()
    while end.is_alive():
        if role == "writer":
            endpoint.write(sample)
        else:
            for received in endpoint.take(10):
                if hasattr(received, "id"):
                    print(json.dumps(asdict(received)), flush=True)
        end.join(0.1)


main()
