# MQTT: the broker mosquitto and libmosquitto of Debian.
SYSTEMS += mqtt
NEED_mqtt = command -v $(CXX) && test -f /usr/include/mosquitto.h && test -x /usr/sbin/mosquitto
HOW_mqtt = mosquitto or libmosquitto is missing: apt-get install g++ mosquitto libmosquitto-dev
BROKERS := $(patsubst brokers/%.c,$(OUT)/brokers/%.o,$(wildcard brokers/*.c))
$(OUT)/brokers/%.o: brokers/%.c $(wildcard brokers/*.h) kit/agent.h kit/kit.h
	@mkdir -p $(OUT)/brokers
	$(CC) $(KIT_CFLAGS) -Ibrokers -c $< -o $@
$(OUT)/mqtt: mqtt/mqtt.cc $(KIT) $(BROKERS)
	$(CXX) $(KIT_CXXFLAGS) -Ibrokers $< $(KIT) $(BROKERS) -o $@ -lmosquitto -lpthread
