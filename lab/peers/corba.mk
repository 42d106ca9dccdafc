# CORBA: omniORB of Debian, the Notification Service of JacORB from Maven.
SYSTEMS += corba-notification
COS := /usr/share/idl/omniORB
NEED_corba-notification = command -v $(CXX) && command -v omniidl && command -v java && \
  command -v mvn && test -f $(COS)/COS/CosNotifyChannelAdmin.idl && test -f /usr/include/omniORB4/CORBA.h
HOW_corba-notification = omniORB, java or mvn is missing: \
  apt-get install g++ omniidl omniorb-idl libomniorb4-dev openjdk-17-jre-headless maven
COS_IDL := CosEventComm CosEventChannelAdmin CosNotification CosNotifyComm CosNotifyFilter \
  CosNotifyChannelAdmin
$(OUT)/corba-notification: corba/notification.cc corba/bench.idl $(KIT) $(BROKERS) \
  $(JARS).jacorb.done
	@rm -rf $@.gen && mkdir -p $@.gen && touch $@.gen/COS_sysdep.h
	for idl in $(addprefix $(COS)/COS/,$(addsuffix .idl,$(COS_IDL))) corba/bench.idl; do \
	  omniidl -bcxx -Wba -C$@.gen -I$(COS) -I$(COS)/COS $$idl || exit 1; \
	done
	printf '%s\n' '#!/bin/sh' 'exec java "$$@" -cp "$(JARS).jacorb/*" \' \
	  '  -Dorg.omg.CORBA.ORBClass=org.jacorb.orb.ORB \' \
	  '  -Dorg.omg.CORBA.ORBSingletonClass=org.jacorb.orb.ORBSingleton \' \
	  '  org.jacorb.notification.ConsoleMain -channels 4' >$@-service
	chmod +x $@-service
	$(CXX) $(KIT_CXXFLAGS) -Wno-unused -Wno-deprecated-copy -Wno-overloaded-virtual -Ibrokers \
	  -I$@.gen \
	  '-DJACORB_VERSION="$(shell sed -n '/jacorb-services/{n;s/[^0-9.]//gp}' java/pom.xml)"' \
	  corba/notification.cc $(addprefix $@.gen/,$(addsuffix SK.cc,$(COS_IDL) bench) \
	  $(addsuffix DynSK.cc,$(COS_IDL) bench)) $(KIT) $(BROKERS) -o $@ \
	  -lomniDynamic4 -lomniORB4 -lomnithread -lpthread
