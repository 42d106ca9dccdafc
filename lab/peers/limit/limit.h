/* Transports of the agent `limit`: what the operating system does without a middleware. */
#ifndef TAKT_LIMIT_H
#define TAKT_LIMIT_H

#include "agent.h"

#define LIMIT_MAX_READERS 512

struct limit_transport {
  const char *(*check)(const struct agent_options *);
  const char *(*open)(const struct agent_options *, const char *writes, const char *reads);
  /* Looks for peers for a moment; false: nothing is left to find. Runs in a thread of its own. */
  bool (*find_peers)(void);
  int (*matched_readers)(void);
  int (*matched_writers)(void);
  enum agent_write (*write)(const void *data, size_t size);
  void (*flush)(void);
  void *(*loan)(size_t size);
  enum agent_write (*write_loan)(void *loan, size_t size);
  void (*receive)(agent_handler, void *context, int64_t timeout_ns);
  void (*close)(void);
};

extern const struct limit_transport limit_udp, limit_stream, limit_ring;

/* 0 for Ping, 1 for Pong, 2 for Data. */
int limit_topic(const char *topic);
/* Readers that the writer of this role has. */
int limit_expected_readers(const struct agent_options *);
/* UDP or TCP port of the writer of a topic. */
uint16_t limit_port(const struct agent_options *, const char *topic);

#endif
