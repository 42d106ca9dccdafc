# What systems with a broker share. This file is read before those that use it.
BROKERS := $(patsubst brokers/%.c,$(OUT)/brokers/%.o,$(wildcard brokers/*.c))
$(OUT)/brokers/%.o: brokers/%.c $(wildcard brokers/*.h) kit/agent.h kit/kit.h
	@mkdir -p $(OUT)/brokers
	$(CC) $(KIT_CFLAGS) -Ibrokers -c $< -o $@

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
