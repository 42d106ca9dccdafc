#!/usr/bin/env python3
"""Writes cyclonedds_types.txt: what CycloneDDS' IDL compiler makes of objects.idl.

    idlc objects.idl && python type_objects.py objects.c > cyclonedds_types.txt

A line is: type, what (info: TypeInformation, as announced; map: its type objects under their identifiers, first the
sequence of the minimal pairs, then that of the complete ones), bytes in hexadecimal, XCDR2 little-endian.
"""

import re
import sys

source = open(sys.argv[1]).read()
for kind in ("INFO", "MAP"):
    for match in re.finditer(rf"#define TYPE_{kind}_CDR_objects_(\w+) \(unsigned char \[\]\)\{{(.*?)\}}", source, re.S):
        data = "".join(byte.lower() for byte in re.findall(r"0x([0-9a-fA-F]{2})", match.group(2)))
        print(f"objects::{match.group(1)}", kind.lower(), data)
