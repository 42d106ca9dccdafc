# The operating system without a middleware.
SYSTEMS += limit
NEED_limit = command -v $(CC)
HOW_limit = a C compiler is missing: apt-get install gcc
$(OUT)/limit: $(wildcard limit/*.c) limit/limit.h $(KIT)
	$(CC) $(KIT_CFLAGS) $(filter %.c,$^) $(KIT) -o $@ -lpthread -lrt
