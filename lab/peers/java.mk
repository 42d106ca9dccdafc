# Agents in Java. Maven copies the libraries of a profile of java/pom.xml into the cache once.
JARS = $(CACHE)/bench-jars-$(shell sha256sum java/pom.xml | cut -c1-12)
JAVA_KIT := $(wildcard java/src/peers/*.java)
NEED_JAVA = command -v javac && command -v mvn
HOW_JAVA = javac or mvn is missing: apt-get install openjdk-17-jdk-headless maven

# Copies to a directory of its own first: an interrupted copy is not taken for a whole one.
$(CACHE)/bench-jars-%.done:
	rm -rf $(basename $@) && mkdir -p $(basename $@)
	mvn -q -B -f java/pom.xml -P $(subst .,,$(suffix $(basename $@))) dependency:copy-dependencies \
	  -DoutputDirectory=$(basename $@)
	touch $@

# A program that starts a class: $(call JAVA_PROGRAM,CLASS,PROFILE)
define JAVA_PROGRAM
	@mkdir -p $@.classes
	javac -Xlint:all -d $@.classes -cp '$(JARS).$(2)/*' $(filter %.java,$^)
	printf '%s\n' '#!/bin/sh' \
	  'exec java -cp "$@.classes:$(JARS).$(2)/*" $(1) "$$@"' >$@
	chmod +x $@
endef

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
