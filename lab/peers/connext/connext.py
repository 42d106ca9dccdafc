"""Agent for RTI Connext, on its Python API.

The roles run in the C kit (libagent.so); this file supplies what `struct agent_adapter` of
kit/agent.h asks for. A sample is built and read by Python, which adds some 10 us to each.
"""
import array
import ctypes
import dataclasses
import os
import pathlib
import sys
from collections.abc import Sequence

import rti.connextdds as dds
import rti.types as idl

VERSION = "7.7.0"
AUTO, LISTENER, WAITSET, POLL = range(4)
WRITTEN, REFUSED = 0, 1
MAX_SIZES = 32


class Options(ctypes.Structure):
    """struct agent_options"""
    _fields_ = [
        ("role", ctypes.c_char_p), ("transport", ctypes.c_char_p), ("reliable", ctypes.c_bool),
        ("depth", ctypes.c_int), ("notify", ctypes.c_int), ("type", ctypes.c_int),
        ("sizes", ctypes.c_size_t * MAX_SIZES), ("size_count", ctypes.c_int),
        ("max_size", ctypes.c_size_t), ("reply_ack", ctypes.c_bool),
        ("warmup", ctypes.c_uint64), ("count", ctypes.c_uint64), ("period_ns", ctypes.c_uint64),
        ("warm_s", ctypes.c_double), ("secs", ctypes.c_double), ("rate", ctypes.c_double),
        ("batch", ctypes.c_int), ("n", ctypes.c_int), ("id", ctypes.c_int),
        ("delivery", ctypes.c_int), ("touch", ctypes.c_int), ("loan", ctypes.c_bool),
        ("domain", ctypes.c_int), ("iface", ctypes.c_char_p), ("addr", ctypes.c_char_p),
        ("peer", ctypes.c_char_p), ("broker", ctypes.c_char_p), ("t0", ctypes.c_uint64),
        ("out", ctypes.c_char_p), ("transient_local", ctypes.c_bool),
        ("participants", ctypes.c_int), ("endpoints", ctypes.c_int), ("instances", ctypes.c_int),
        ("security", ctypes.c_char_p),
    ]


class Message(ctypes.Structure):
    """struct agent_message"""
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t),
                ("complex_sample", ctypes.c_void_p), ("number", ctypes.c_int32)]


class Shape(ctypes.Structure):
    """struct agent_complex"""
    _fields_ = [("items", ctypes.c_uint32), ("items_of_group", ctypes.c_uint32),
                ("name_length", ctypes.c_uint32)]


TEXT, OPTIONS = ctypes.c_char_p, ctypes.POINTER(Options)
HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Message))
# Functions that return a text return its address, so that ctypes does not free it.
SIGNATURES = {
    "fixed_size": ctypes.CFUNCTYPE(ctypes.c_bool, OPTIONS),
    "batches": ctypes.CFUNCTYPE(ctypes.c_bool, OPTIONS),
    "check": ctypes.CFUNCTYPE(ctypes.c_void_p, OPTIONS),
    "fastest": ctypes.CFUNCTYPE(ctypes.c_int, OPTIONS),
    "open": ctypes.CFUNCTYPE(ctypes.c_void_p, OPTIONS, TEXT, TEXT),
    "close": ctypes.CFUNCTYPE(None),
    "matched_readers": ctypes.CFUNCTYPE(ctypes.c_int),
    "matched_writers": ctypes.CFUNCTYPE(ctypes.c_int),
    "write": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
    "flush": ctypes.CFUNCTYPE(None),
    "wait_acknowledged": ctypes.CFUNCTYPE(None, ctypes.c_int64),
    "loan": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t),
    "write_loan": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
    "receive": ctypes.CFUNCTYPE(None, HANDLER, ctypes.c_void_p, ctypes.c_int64),
    "listen": ctypes.CFUNCTYPE(ctypes.c_void_p, HANDLER, ctypes.c_void_p),
    "complex_new": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Shape)),
    "complex_set_number": ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32),
    "complex_write": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p),
    "join": ctypes.CFUNCTYPE(ctypes.c_void_p, OPTIONS),
    "add_writer": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, TEXT),
    "add_reader": ctypes.CFUNCTYPE(ctypes.c_void_p, TEXT),
    "found_writers": ctypes.CFUNCTYPE(ctypes.c_int),
}


class Adapter(ctypes.Structure):
    """struct agent_adapter"""
    _fields_ = [(name, TEXT) for name in
                ("peer", "version", "transports", "notifies", "types", "deliveries")] \
        + [("fixed_size", SIGNATURES["fixed_size"]),
           ("durable", ctypes.c_bool), ("secures", ctypes.c_bool)] \
        + [(name, form) for name, form in SIGNATURES.items() if name != "fixed_size"]


@idl.struct(type_annotations=[idl.final, idl.type_name("Blob")])
class Blob:
    data: Sequence[idl.uint8] = dataclasses.field(default_factory=idl.array_factory(idl.uint8))


@idl.struct(type_annotations=[idl.final, idl.type_name("Item")])
class Item:
    name: str = ""
    number: idl.int32 = 0


@idl.struct(type_annotations=[idl.final, idl.type_name("Group")])
class Group:
    items: Sequence[Item] = dataclasses.field(default_factory=list)


@idl.struct(type_annotations=[idl.final, idl.type_name("Complex")])
class Complex:
    groups: Sequence[Group] = dataclasses.field(default_factory=list)


class Listener(dds.NoOpDataReaderListener):
    def __init__(self, deliver):
        super().__init__()
        self.deliver = deliver

    def on_data_available(self, _reader):
        self.deliver()


class Connext:
    """Methods have the names of the members of `struct agent_adapter`."""

    def __init__(self, kit):
        self.kit = kit
        self.samples = {}  # complex samples by the number that stands for their address
        self.texts = []
        self.writer = self.reader = self.waitset = self.listener = None

    def text(self, words):
        self.texts.append(ctypes.create_string_buffer(str(words).replace("\n", " ").encode()))
        return ctypes.addressof(self.texts[-1])

    def check(self, options):
        if options.contents.loan:
            return self.text("the Python API of Connext has no loans")
        return None

    def fastest(self, _options):
        return LISTENER

    def participant_qos(self):
        qos = dds.DomainParticipantQos()
        if self.options.transport == b"udp":
            qos.transport_builtin = dds.TransportBuiltin(dds.TransportBuiltinMask.UDPv4)
        peer = self.options.peer or self.options.addr
        qos.discovery.initial_peers = [f"8@builtin.udpv4://{peer.decode()}", "8@builtin.shmem://"][
            :1 if self.options.transport == b"udp" or self.options.peer else 2]
        address = self.options.addr.decode()
        qos.property["dds.transport.UDPv4.builtin.parent.allow_interfaces"] = address
        # The transport otherwise leaves loopback out when shared memory is there.
        qos.property["dds.transport.UDPv4.builtin.ignore_loopback_interface"] = "0"
        return qos

    def endpoint_qos(self, qos):
        blocking = dds.Duration(10, 0)
        qos.reliability = dds.Reliability.reliable(blocking) if self.options.reliable \
            else dds.Reliability.best_effort()
        qos.history = dds.History.keep_last(self.options.depth) if self.options.depth \
            else dds.History.keep_all()
        qos.durability = dds.Durability.volatile()
        return qos

    def open(self, options, writes, reads):
        self.options = options.contents
        self.kind = Complex if self.options.type else Blob
        try:
            self.participant = dds.DomainParticipant(self.options.domain, self.participant_qos())
            if writes:
                topic = dds.Topic(self.participant, writes.decode(), self.kind)
                self.writer = dds.DataWriter(dds.Publisher(self.participant), topic,
                                             self.endpoint_qos(dds.DataWriterQos()))
            if reads:
                topic = dds.Topic(self.participant, reads.decode(), self.kind)
                self.reader = dds.DataReader(dds.Subscriber(self.participant), topic,
                                             self.endpoint_qos(dds.DataReaderQos()))
                self.waitset = dds.WaitSet()
                self.waitset.attach_condition(dds.ReadCondition(self.reader, dds.DataState.any))
        except dds.Error as why:
            return self.text(f"RTI Connext: {why} (RTI_LICENSE_FILE="
                             f"{os.environ.get('RTI_LICENSE_FILE')})")
        return None

    def close(self):
        self.participant.close_contained_entities()
        self.participant.close()

    def matched_readers(self):
        return self.writer.publication_matched_status.current_count

    def matched_writers(self):
        return self.reader.subscription_matched_status.current_count

    def write_sample(self, sample):
        try:
            self.writer.write(sample)
        except dds.TimeoutError:
            return REFUSED
        return WRITTEN

    def write(self, data, size):
        return self.write_sample(Blob(data=array.array("B", ctypes.string_at(data, size))))

    def wait_acknowledged(self, timeout_ns):
        try:
            self.writer.wait_for_acknowledgments(dds.Duration(*divmod(timeout_ns, 1000000000)))
        except dds.TimeoutError:
            pass

    def deliver(self, handler, context):
        for sample in self.reader.take_data():
            if self.kind is Blob:
                octets = array.array("B", sample.data)
                address, size = octets.buffer_info()
                message = Message(data=address, size=size)
            else:
                self.samples[1] = sample
                message = Message(complex_sample=1, number=sample.groups[0].items[0].number)
            handler(context, ctypes.byref(message))

    def receive(self, handler, context, timeout_ns):
        if timeout_ns and not self.waitset.wait(dds.Duration(*divmod(timeout_ns, 1000000000))):
            return
        self.deliver(handler, context)

    def listen(self, handler, context):
        # ctypes frees its view of the pointer after this call: keep a function of our own.
        kept = HANDLER(ctypes.cast(handler, ctypes.c_void_p).value)
        self.listener = Listener(lambda: self.deliver(kept, context))
        self.reader.set_listener(self.listener, dds.StatusMask.DATA_AVAILABLE)

    def complex_new(self, shape):
        shape = shape.contents
        name = ctypes.create_string_buffer(shape.name_length + 1)
        sample = Complex()
        for at in range(shape.items):
            if at % shape.items_of_group == 0:
                sample.groups.append(Group())
            self.kit.agent_item_name(name, at, shape.name_length)
            sample.groups[-1].items.append(Item(name=name.value.decode(), number=at))
        key = 2 + len(self.samples)
        self.samples[key] = sample
        return key

    def complex_set_number(self, key, number):
        self.samples[key].groups[0].items[0].number = number

    def complex_write(self, key):
        return self.write_sample(self.samples[key])


def main():
    kit = ctypes.CDLL(str(pathlib.Path(sys.argv[1]) / "libagent.so"))
    mirrored = [ctypes.sizeof(kind) for kind in (Options, Message, Adapter)]
    if list((ctypes.c_size_t * 3).in_dll(kit, "agent_sizes")) != mirrored:
        sys.exit("connext.py differs from agent.h")
    connext = Connext(kit)
    callbacks = {name: signature(getattr(connext, name)) for name, signature in SIGNATURES.items()
                 if hasattr(connext, name)}
    adapter = Adapter(peer=b"connext", version=VERSION.encode(), transports=b"default,udp",
                      notifies=b"listener,waitset,poll", types=b"octets,complex",
                      deliveries=b"unicast", **callbacks)
    # The kit changes the texts in place.
    words = [ctypes.create_string_buffer(word.encode()) for word in ["connext", *sys.argv[2:]]]
    arguments = (ctypes.c_void_p * (len(words) + 1))(*map(ctypes.addressof, words), None)
    sys.exit(kit.agent_main(len(words), arguments, ctypes.byref(adapter)))


if __name__ == "__main__":
    main()
