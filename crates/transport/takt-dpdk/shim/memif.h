/*
 * net_memif (22.11) connects and disconnects in DPDK's interrupt thread, whenever the other end does, and frees what a burst on
 * another thread is reading just then: who is there when the other end dies would die with it. So while there are such ports,
 * that thread stands still in a callback of ours, and goes on only while none of our threads is within the driver.
 */
#ifndef TAKT_MEMIF_H
#define TAKT_MEMIF_H

/* Before a port is opened, and before one is closed: one more counts, and the caller is within. -EBUSY if the interrupt thread is away for two seconds. */
int takt_memif_open(void);
int takt_memif_enter_alone(void);

/* One port less. */
void takt_memif_closed(void);

/* Enters the driver once the interrupt thread stands still; whether it does within two seconds. */
int takt_memif_enter(void);
void takt_memif_leave(void);

/* Has the interrupt thread do what waits for it, unless one of ours is within. */
void takt_memif_turn(void);

#endif
