# JMS: Apache ActiveMQ Classic and Artemis.
SYSTEMS += jms-activemq jms-artemis
NEED_jms-activemq = $(NEED_JAVA)
HOW_jms-activemq = $(HOW_JAVA)
NEED_jms-artemis = $(NEED_JAVA)
HOW_jms-artemis = $(HOW_JAVA)
$(OUT)/jms-activemq: $(JAVA_KIT) java/src/peers/jms/JmsLink.java java/src/peers/jms/ActiveMq.java \
  $(JARS).activemq.done
	$(call JAVA_PROGRAM,peers.jms.ActiveMq,activemq)
$(OUT)/jms-artemis: $(JAVA_KIT) java/src/peers/jms/JmsLink.java java/src/peers/jms/Artemis.java \
  $(JARS).artemis.done
	$(call JAVA_PROGRAM,peers.jms.Artemis,artemis)
