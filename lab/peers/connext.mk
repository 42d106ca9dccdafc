# RTI Connext: the PyPI wheel `rti.connext`. It needs a license file, so it is installed on demand.
SYSTEMS += connext
CONNEXT_VERSION := 7.7.0.1
CONNEXT_VENV = $(CACHE)/venv-connext-$(CONNEXT_VERSION)
NEED_connext = test -r "$$RTI_LICENSE_FILE" && command -v python3
HOW_connext = RTI Connext needs a license: set RTI_LICENSE_FILE to the file of rti.com/get-connext; its wheel is then installed

$(CONNEXT_VENV)/installed:
	python3 -m venv $(CONNEXT_VENV)
	$(CONNEXT_VENV)/bin/pip install --quiet --disable-pip-version-check rti.connext==$(CONNEXT_VERSION)
	touch $@
$(OUT)/libagent.so: $(wildcard kit/*.c) kit/agent.h kit/kit.h
	@mkdir -p $(OUT)
	$(CC) $(KIT_CFLAGS) -fPIC -shared $(filter %.c,$^) -o $@ -lpthread
$(OUT)/connext: connext/connext.py $(OUT)/libagent.so $(CONNEXT_VENV)/installed
	cp connext/connext.py $(OUT)/connext.py
	printf '#!/bin/sh\nexec %s %s %s "$$@"\n' $(CONNEXT_VENV)/bin/python $(OUT)/connext.py $(OUT) >$@
	chmod +x $@
