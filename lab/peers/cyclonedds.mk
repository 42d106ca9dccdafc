# Eclipse CycloneDDS: 0.10 of Debian, and 11 of the PyPI wheel `cyclonedds`.
# The headers and the IDL compiler of Debian serve both.
SYSTEMS += cyclonedds-0.10 cyclonedds-11
CYCLONE_11_VERSION := $(shell sed -n 's/^CYCLONE_11_VERSION := //p' $(INTEROP)/Makefile)
CYCLONE_WHEEL := $(VENV)/cyclonedds-$(CYCLONE_11_VERSION)
CYCLONE_SOURCES := cyclonedds/cyclonedds.c cyclonedds/roudi.c $(OUT)/gen/bench.c
# Debian puts the plugins of DDS Security into a directory of their own; the wheel has none.
CYCLONE_SECURITY := $(firstword $(patsubst %/libdds_security_auth.so,%,$(wildcard /usr/lib/*/libddsc0debian/libdds_security_auth.so)))
CYCLONE_FLAGS = $(KIT_CFLAGS) -I$(OUT)/gen -Icyclonedds

NEED_cyclonedds-0.10 = command -v idlc && test -f /usr/include/dds/dds.h
HOW_cyclonedds-0.10 = CycloneDDS 0.10 is missing: apt-get install cyclonedds-dev cyclonedds-tools iceoryx
NEED_cyclonedds-11 = $(NEED_cyclonedds-0.10) && command -v python3
HOW_cyclonedds-11 = headers of CycloneDDS or Python are missing: apt-get install cyclonedds-dev cyclonedds-tools python3-venv

$(OUT)/gen/bench.h $(OUT)/gen/bench.c &: types/bench.idl
	@mkdir -p $(OUT)/gen
	idlc -o $(OUT)/gen types/bench.idl
$(OUT)/cyclonedds-0.10: $(CYCLONE_SOURCES) cyclonedds/roudi.h $(OUT)/gen/bench.h $(KIT)
	$(CC) $(CYCLONE_FLAGS) $(if $(CYCLONE_SECURITY),-DSECURITY_LIBRARIES='"$(CYCLONE_SECURITY)"') $(CYCLONE_SOURCES) $(KIT) \
	  -o $@ -lddsc -lpthread

$(CYCLONE_WHEEL):
	@mkdir -p $(CACHE)
	flock $(CACHE)/venv.lock $(MAKE) --no-print-directory -C $(INTEROP) VENV=$(VENV) $@
# The wheel has no linkable name: link the file itself and leave its path behind.
$(OUT)/cyclonedds-11: $(CYCLONE_SOURCES) cyclonedds/roudi.h $(OUT)/gen/bench.h $(KIT) $(CYCLONE_WHEEL)
	library=$$(ls $(VENV)/lib/python3*/site-packages/cyclonedds.libs/libddsc-*.so.*) && \
	$(CC) $(CYCLONE_FLAGS) -DCYCLONE_11 $(CYCLONE_SOURCES) $(KIT) -o $@ \
	  $$library -Wl,-rpath,$$(dirname $$library) -lpthread
