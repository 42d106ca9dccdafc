/* What the files of the kit share. Adapters include agent.h alone. */
#ifndef TAKT_AGENT_KIT_H
#define TAKT_AGENT_KIT_H

#include <stdio.h>

#include "agent.h"

struct agent_usage {
  double cpu_s;
  uint64_t at_ns;
  long nvcsw, nivcsw;
};
struct agent_usage usage_now(void);
struct agent_usage usage_since(const struct agent_usage *start); /* at_ns: time between */

struct agent_memory {
  long resident_kib, peak_kib, private_kib;
};
struct agent_memory memory_now(void);

void options_parse(struct agent_options *, int argc, char **argv, const struct agent_adapter *);

/* One line of JSON. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sleep_until_ns(uint64_t at_ns);
const char *notify_name(enum agent_notify);

/* Payloads. */
unsigned char *octets_new(size_t size);
void octets_stamp(void *payload, size_t size, uint64_t sequence, uint64_t sent_ns);
uint64_t octets_sequence(const void *payload, size_t size);
uint64_t octets_sent_ns(const void *payload);
struct agent_complex complex_shape(size_t size);
void touch_read(enum agent_touch, const void *data, size_t size);
/* Copies into a loan what the options say that its writer writes. */
void touch_write(enum agent_touch, void *loan, const void *payload, size_t size);

/* Times in ns that a file gets at the end. */
struct agent_times {
  uint64_t *ns;
  uint64_t count, capacity;
};
void times_open(struct agent_times *, uint64_t capacity);
void times_append(const struct agent_times *, const char *path);

/* Writes a sample until the writer accepts it or the agent ends; counts refusals. */
bool write_octets(const struct agent_adapter *, const struct agent_options *, const void *data,
                  size_t size, bool retry, uint64_t *refused);
/* Opens the endpoints, listens if notify=listener, prints `ready`. */
void open_endpoints(const struct agent_adapter *, const struct agent_options *, const char *writes,
                    const char *reads, agent_handler, void *context);
/* Waits for matched endpoints; false if the agent ends. Fails after 30 s. */
bool wait_matched(const struct agent_adapter *, int readers, int writers);
/* Receives until the agent ends or `done` says so; 100 ms at most without asking. */
void receive_some(const struct agent_adapter *, const struct agent_options *, agent_handler,
                  void *context, int64_t timeout_ns);

void run_ping(const struct agent_adapter *, const struct agent_options *);
void run_pong(const struct agent_adapter *, const struct agent_options *);
void run_pub(const struct agent_adapter *, const struct agent_options *);
void run_sub(const struct agent_adapter *, const struct agent_options *);
void run_hold(const struct agent_adapter *, struct agent_options *);
void run_join(const struct agent_adapter *, struct agent_options *, uint64_t main_ns);
void run_crowd(const struct agent_adapter *, const struct agent_options *);
void run_seek(const struct agent_adapter *, const struct agent_options *, uint64_t main_ns);
void run_mesh(const struct agent_adapter *, const struct agent_options *, uint64_t main_ns);
void run_idle(const struct agent_adapter *, const struct agent_options *, uint64_t main_ns);

#endif
