# OpenDDS: an installed one, named by DDS_ROOT (its prefix or its build tree) or found by CMake.
SYSTEMS += opendds
OPENDDS_FLAGS = $(if $(DDS_ROOT),-DCMAKE_PREFIX_PATH=$(DDS_ROOT))
NEED_opendds = command -v cmake && { test -d "$(DDS_ROOT)/include/dds" || test -d "$(DDS_ROOT)/dds" || command -v opendds_idl; }
HOW_opendds = OpenDDS is missing, and Debian has no package: build it from opendds.org, set DDS_ROOT to it, apt-get install cmake
$(OUT)/opendds: $(wildcard opendds/*) $(KIT)
	cmake -S opendds -B $(OUT)/opendds-build -DCMAKE_BUILD_TYPE=Release -DKIT_OBJECTS=$(OUT)/kit $(OPENDDS_FLAGS)
	cmake --build $(OUT)/opendds-build
	cp $(OUT)/opendds-build/opendds $@
