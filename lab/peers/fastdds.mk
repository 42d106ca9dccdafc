# eProsima Fast DDS: 2.9 of Debian, and 3 of the PyPI wheels `ros-fastdds` and `ros-fastcdr`.
SYSTEMS += fastdds-2 fastdds-3
FASTDDS_3_VERSION := $(shell sed -n 's/^FASTDDS_3_VERSION := //p' $(INTEROP)/Makefile)
FASTDDS_WHEEL := $(VENV)/fastdds-$(FASTDDS_3_VERSION)
FASTDDS_SOURCES := fastdds/fastdds.cpp fastdds/types.hpp fastdds/product.hpp

NEED_fastdds-2 = command -v $(CXX) && test -f /usr/include/fastdds/dds/domain/DomainParticipant.hpp
HOW_fastdds-2 = Fast DDS 2.9 is missing: apt-get install g++ libfastrtps-dev libfastcdr-dev
NEED_fastdds-3 = command -v $(CXX) && command -v python3
HOW_fastdds-3 = a C++ compiler or Python is missing: apt-get install g++ python3-venv

$(OUT)/fastdds-2: $(FASTDDS_SOURCES) $(KIT)
	$(CXX) $(KIT_CXXFLAGS) -Wno-deprecated-declarations $< $(KIT) -o $@ -lfastrtps -lfastcdr -lpthread

$(FASTDDS_WHEEL):
	@mkdir -p $(CACHE)
	flock $(CACHE)/venv.lock $(MAKE) --no-print-directory -C $(INTEROP) VENV=$(VENV) $@
# A library of the wheel looks for others where the program does: RPATH, not RUNPATH.
$(OUT)/fastdds-3: $(FASTDDS_SOURCES) $(KIT) $(FASTDDS_WHEEL)
	needed=$$(ls -d $(VENV)/lib/python3*/site-packages/ros_fastdds.libs) && \
	$(CXX) $(KIT_CXXFLAGS) -DFASTDDS_3 -isystem $(VENV)/include $< $(KIT) -o $@ -L$(VENV)/lib \
	  -Wl,--disable-new-dtags,-rpath,$(VENV)/lib,-rpath,$$needed -lfastdds -lfastcdr -lpthread
