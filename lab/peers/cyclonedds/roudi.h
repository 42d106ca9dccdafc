/* RouDi, the daemon of iceoryx: one a host, without which no process shares memory. */
#ifndef TAKT_ROUDI_H
#define TAKT_ROUDI_H

/* Starts it if no agent has, and waits until clients may connect. An error text, or NULL.
 * At exit it ends RouDi if no other agent of this user needs it. */
const char *roudi_start(void);

#endif
