#!/usr/bin/env python3
"""Writes cyclonedds.txt: what CycloneDDS' Python binding makes of the values in tests/it/vectors.rs.

    pip install cyclonedds==11.0.1 && python generate.py > cyclonedds.txt

A line is: case, representation (1, 2), byte order (le, be), what (sample, key), bytes in hexadecimal. Samples have
the encapsulation header but no padding at the end; keys have neither.
"""

from dataclasses import dataclass
from typing import Optional

import cyclonedds.idl.annotations as a
from cyclonedds.idl import IdlBitmask, IdlEnum, IdlStruct, IdlUnion
from cyclonedds.idl._support import Endianness
from cyclonedds.idl.types import (array, bounded_str, case, char, default, float32, float64, int8, int16, int32, int64,
                                  sequence, uint8, uint16, uint32, uint64)


@dataclass
@a.appendable
class ShapeType(IdlStruct):
    color: bounded_str[128]
    a.key("color")
    x: int32
    y: int32
    shapesize: int32
    additional_payload_size: sequence[uint8]


@dataclass
@a.final
class Primitives(IdlStruct):
    flag: bool
    i64: int64
    octet: uint8
    double: float64
    i16: int16
    i32: int32
    letter: char
    u16: uint16
    float: float32
    i8: int8
    u32: uint32
    u64: uint64


@dataclass
@a.final
class Point(IdlStruct):
    x: int32
    y: float64


@dataclass
@a.appendable
class Grown(IdlStruct):
    name: str
    count: int8


class Color(IdlEnum):
    RED = 0
    GREEN = 1
    BLUE = 7


@a.bit_bound(8)
class Small(IdlEnum):
    ONE = 1
    TWO = 2


@a.bit_bound(16)
class Middle(IdlEnum):
    LOW = 0
    HIGH = 300


@dataclass
@a.bit_bound(8)
class Mask8(IdlBitmask):
    a: bool = False
    b: bool = False
    c: bool = False


@dataclass
@a.bit_bound(64)
class Mask64(IdlBitmask):
    low: bool = False
    high: bool = False
    a.position("high", 31)


@dataclass
@a.appendable
class Enums(IdlStruct):
    small: Small
    color: Color
    middle: Middle
    mask: Mask8
    wide: Mask64
    colors: sequence[Color]
    smalls: array[Small, 3]


@dataclass
@a.appendable
class Collections(IdlStruct):
    shorts: sequence[int16]
    longs: sequence[int64]
    flags: sequence[bool]
    names: sequence[str]
    fixed: array[int32, 3]
    words: array[str, 2]
    matrix: array[array[float64, 2], 3]
    table: array[array[str, 2], 2]
    points: sequence[Point]
    grown: sequence[Grown]
    nested: sequence[sequence[int32]]
    empty: sequence[int64]
    last: uint8


@a.final
class FinalUnion(IdlUnion, discriminator=int32):
    radius: case[1, float64]
    label: case[[2, 3], str]
    point: case[4, Point]
    other: default[int16]


@a.appendable
class AppendableUnion(IdlUnion, discriminator=Color):
    radius: case[Color.RED, float64]
    grown: case[Color.BLUE, Grown]


@dataclass
@a.final
class Unions(IdlStruct):
    lead: uint8
    a: FinalUnion
    b: FinalUnion
    c: FinalUnion
    d: FinalUnion
    e: AppendableUnion
    f: AppendableUnion


@dataclass
@a.final
class FinalOptional(IdlStruct):
    lead: uint8
    number: Optional[int32]
    wide: Optional[float64]
    text: Optional[str]
    point: Optional[Point]
    last: int16


@dataclass
@a.appendable
class AppendableOptional(IdlStruct):
    lead: uint8
    number: Optional[int32]
    wide: Optional[float64]
    text: Optional[str]
    grown: Optional[Grown]
    last: int16


@dataclass
@a.mutable
class Mutable(IdlStruct):
    octet: uint8
    i16: int16
    a.member_id("i16", 10)
    i32: int32
    i64: int64
    text: str
    a.must_understand("text")
    octets: sequence[uint8]
    a.member_id("octets", 0x3f00)
    ints: sequence[int32]
    longs: sequence[int64]
    shorts: sequence[int16]
    names: sequence[str]
    point: Point
    a.member_id("point", 5)
    grown: Grown
    fixed: array[int32, 3]
    words: array[str, 2]
    color: Color
    a.member_id("color", 16)
    absent: Optional[int32]
    present: Optional[int64]


@dataclass
@a.final
class Nested(IdlStruct):
    lead: uint8
    grown: Grown
    mutable: Mutable
    tail: uint64


@dataclass
@a.appendable
class Base(IdlStruct):
    id: int32
    a.key("id")
    name: str


@dataclass
@a.appendable
class Derived(Base):
    extra: float64


@dataclass
@a.final
class Inner(IdlStruct):
    ignored: str
    high: int64
    a.key("high")
    a.member_id("high", 9)
    low: int16
    a.key("low")
    a.member_id("low", 3)


@dataclass
@a.appendable
class Keyed(IdlStruct):
    text: str
    late: int64
    a.key("late")
    a.member_id("late", 20)
    inner: Inner
    a.key("inner")
    a.member_id("inner", 4)
    early: int32
    a.key("early")
    a.member_id("early", 2)
    point: Point
    a.key("point")
    a.member_id("point", 30)


@dataclass
@a.mutable
class MutableKeyed(IdlStruct):
    text: str
    id: int64
    a.key("id")
    name: str
    a.key("name")
    flag: uint8


def point(n):
    return Point(n, n + 0.5)


def mutable(present):
    return Mutable(200, -2, 3, -4, "five", [6, 7, 8], [9, -9], [10], [11, 12, 13], ["a", "bc"], point(14),
                   Grown("grown", 15), [16, 17, 18], ["x", ""], Color.BLUE, None, present)


CASES = [
    ("shape", ShapeType("BLUE", 1, -2, 30, [255, 254, 253])),
    ("shape_empty", ShapeType("", 0, 0, 0, [])),
    ("primitives", Primitives(True, -0x0102030405060708, 200, 1.5, -2, 0x01020304, "T", 65535, -0.25, -7, 4000000000,
                              0x8000000000000001)),
    ("enums", Enums(Small.TWO, Color.BLUE, Middle.HIGH, Mask8(a=True, c=True), Mask64(high=True),
                    [Color.GREEN, Color.RED], [Small.ONE, Small.TWO, Small.ONE])),
    ("collections", Collections([1, -2, 3], [4, -5], [True, False, True], ["", "six"], [7, 8, 9], ["ten", "e"],
                                [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [["a", "b"], ["cc", "dd"]],
                                [point(1), point(2)], [Grown("g", 1), Grown("hh", 2)], [[1], [], [2, 3]], [], 77)),
    ("collections_empty", Collections([], [], [], [], [0, 0, 0], ["", ""], [[0.0, 0.0]] * 3, [["", ""]] * 2,
                                      [], [], [], [], 0)),
    ("unions", Unions(1, FinalUnion(discriminator=1, value=2.5), FinalUnion(discriminator=2, value="two"),
                      FinalUnion(discriminator=4, value=point(4)), FinalUnion(discriminator=0, value=-1),
                      AppendableUnion(discriminator=Color.RED, value=0.125),
                      AppendableUnion(discriminator=Color.BLUE, value=Grown("u", 5)))),
    ("final_optional", FinalOptional(1, 2, 3.0, "four", point(5), 6)),
    ("final_optional_absent", FinalOptional(1, None, None, None, None, 6)),
    ("final_optional_mixed", FinalOptional(1, None, 3.0, None, point(5), 6)),
    ("appendable_optional", AppendableOptional(1, 2, 3.0, "four", Grown("g", 5), 6)),
    ("appendable_optional_absent", AppendableOptional(1, None, None, None, None, 6)),
    ("mutable", mutable(19)),
    ("mutable_absent", mutable(None)),
    ("nested", Nested(1, Grown("n", 2), mutable(None), 3)),
    ("derived", Derived(7, "seven", 7.5)),
    ("keyed", Keyed("text", 0x1112131415161718, Inner("no", 0x2122232425262728, 0x3132), 0x41424344, point(5))),
    ("mutable_keyed", MutableKeyed("text", 0x0102030405060708, "nine", 1)),
]

KEYED = {"shape", "shape_empty", "derived", "keyed", "mutable_keyed"}

for name, value in CASES:
    for version in (1, 2):
        if name == "enums" and version == 1:
            # The binding ignores bit_bound of enumerations in XCDR1; the C library and XTypes 1.3 do not.
            continue
        for order, endianness in (("le", Endianness.Little), ("be", Endianness.Big)):
            data = value.serialize(endianness=endianness, use_version_2=version == 2)
            print(name, version, order, "sample", bytes(data).hex())
            if name in KEYED:
                data = value.serialize_key(endianness=endianness, use_version_2=version == 2)
                print(name, version, order, "key", bytes(data).hex())
