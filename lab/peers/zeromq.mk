# ZeroMQ: libzmq of Debian.
SYSTEMS += zeromq
NEED_zeromq = test -f /usr/include/zmq.h
HOW_zeromq = libzmq is missing: apt-get install libzmq3-dev
$(OUT)/zeromq: zeromq/zeromq.c $(KIT)
	$(CC) $(KIT_CFLAGS) zeromq/zeromq.c $(KIT) -o $@ -lzmq -lpthread
