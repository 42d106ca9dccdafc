# SOAP: gSOAP of Debian. soapcpp2 generates the stubs of soap/bench.h.
SYSTEMS += soap
NEED_soap = command -v $(CC) && command -v soapcpp2 && test -f /usr/include/stdsoap2.h
HOW_soap = gSOAP is missing: apt-get install gcc gsoap libgsoap-dev
GSOAP := /usr/share/gsoap
$(OUT)/soap: soap/soap.c soap/bench.h $(KIT)
	@rm -rf $@.gen && mkdir -p $@.gen
	soapcpp2 -c -x -d $@.gen -I$(GSOAP)/import:$(GSOAP) soap/bench.h >$@.gen/soapcpp2.log
	$(CC) $(KIT_CFLAGS) -Wno-unused-parameter -Wno-unused-variable -I$@.gen soap/soap.c \
	  $@.gen/soapC.c $@.gen/soapClient.c $@.gen/soapServer.c $(KIT) -o $@ -lgsoap -lpthread
