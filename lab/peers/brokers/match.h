/* Readers and writers behind a broker, which does not tell one of the other: a query on the topic
 * `Match` makes them answer. */
#ifndef TAKT_PEERS_MATCH_H
#define TAKT_PEERS_MATCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MATCH_TOPIC "Match"

/* `send` writes a text on the topic; it may be called by any thread. */
void match_open(const char *writes, const char *reads, void (*send)(const char *text));
/* Takes a text that came on the topic. */
void match_receive(const char *text, size_t size);
/* Endpoints that answered so far; asks again if there are fewer than the next call may need. */
int match_readers(void);
int match_writers(void);

#ifdef __cplusplus
}
#endif
#endif
