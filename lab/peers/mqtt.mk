# MQTT: the broker mosquitto and libmosquitto of Debian.
SYSTEMS += mqtt
NEED_mqtt = command -v $(CXX) && test -f /usr/include/mosquitto.h && test -x /usr/sbin/mosquitto
HOW_mqtt = mosquitto or libmosquitto is missing: apt-get install g++ mosquitto libmosquitto-dev
$(OUT)/mqtt: mqtt/mqtt.cc $(KIT) $(BROKERS)
	$(CXX) $(KIT_CXXFLAGS) -Ibrokers $< $(KIT) $(BROKERS) -o $@ -lmosquitto -lpthread
