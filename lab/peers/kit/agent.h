/* Kit for agents in C and C++ (docs/reference/bench-agents.md).
 *
 * The kit has the arguments, the roles, the payloads, the statistics and the output. An adapter
 * fills `struct agent_adapter` and calls `agent_main`. `lab/peers/README.md` shows the smallest.
 */
#ifndef TAKT_AGENT_H
#define TAKT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AGENT_MAX_SIZES 32
#define AGENT_MAX_SIZE ((size_t)64 << 20)
#define AGENT_MAX_BATCH 1024
#define AGENT_MAX_PARTICIPANTS 200
#define AGENT_BLOCKING_NS INT64_C(10000000000) /* RELIABILITY.max_blocking_time */
#define AGENT_END UINT64_MAX                   /* sequence number that ends a stream */

enum agent_notify { AGENT_AUTO, AGENT_LISTENER, AGENT_WAITSET, AGENT_POLL };
enum agent_type { AGENT_OCTETS, AGENT_COMPLEX };
enum agent_delivery { AGENT_UNICAST, AGENT_MULTICAST, AGENT_BROADCAST };
enum agent_touch { AGENT_TOUCH_NONE, AGENT_TOUCH_LINES, AGENT_TOUCH_ALL };
enum agent_write { AGENT_WRITTEN, AGENT_REFUSED };

/* The arguments, checked. Strings live as long as the process. */
struct agent_options {
  const char *role;
  const char *transport;
  bool reliable;
  int depth;                /* KEEP_LAST; 0: KEEP_ALL */
  enum agent_notify notify; /* never AGENT_AUTO once `open` is called */
  enum agent_type type;
  size_t sizes[AGENT_MAX_SIZES];
  int size_count;
  size_t max_size; /* the largest of `sizes` */
  bool reply_ack;
  uint64_t warmup, count, period_ns;
  double warm_s, secs, rate;
  int batch;
  int n, id;
  enum agent_delivery delivery;
  enum agent_touch touch;
  bool loan;
  int domain;
  const char *iface, *addr;
  const char *peer;   /* NULL: both processes are on this host */
  const char *broker; /* NULL: none was named */
  uint64_t t0;
  const char *out; /* NULL: no file */
  bool transient_local; /* DURABILITY; `depth` samples are kept for readers that come later */
  int participants, endpoints, instances; /* of a crowd */
  const char *security; /* directory with the files of DDS Security; NULL: none */
};

/* A received sample, valid until the handler returns. */
struct agent_message {
  const void *data; /* type=octets: the payload */
  size_t size;
  const void *complex_sample; /* type=complex: the sample as `complex_write` takes it */
  int32_t number;             /* `number` of its first item */
};

/* One thread at a time calls the handler. It may write. */
typedef void (*agent_handler)(void *context, const struct agent_message *message);

/* What a sample of type=complex consists of. All names have the same length. */
struct agent_complex {
  uint32_t items;          /* in total */
  uint32_t items_of_group; /* the last group may have fewer */
  uint32_t name_length;    /* without the terminating zero */
};

/* Functions that are marked optional may be NULL. A function that returns a text returns NULL on
 * success and an error text otherwise; `agent_text` formats one. */
struct agent_adapter {
  const char *peer, *version;
  /* Lists with commas. The first transport is `default`. `auto` is not listed in `notifies`. */
  const char *transports, *notifies, *types, *deliveries;
  bool (*fixed_size)(const struct agent_options *); /* optional: false */
  bool durable; /* whether `open` obeys `transient_local` */
  bool secures; /* whether `open` obeys `security` */
  /* Optional: whether the writer of this transport takes `batch` samples until `flush`. */
  bool (*batches)(const struct agent_options *);
  /* Optional: an option that the system cannot honor. Called before `open`. */
  const char *(*check)(const struct agent_options *);
  /* Optional: the notification of notify=auto; by default the first of `notifies`. */
  enum agent_notify (*fastest)(const struct agent_options *);
  /* Creates a writer of the topic `writes` and a reader of `reads`; either may be NULL. */
  const char *(*open)(const struct agent_options *, const char *writes, const char *reads);
  void (*close)(void);
  int (*matched_readers)(void);
  int (*matched_writers)(void);
  /* AGENT_REFUSED: the sample may be written again later. Any other failure: `agent_fail`. */
  enum agent_write (*write)(const void *data, size_t size);
  void (*flush)(void);                             /* optional: sends what a batch holds back */
  void (*wait_acknowledged)(int64_t timeout_ns);   /* optional */
  void *(*loan)(size_t size);                      /* optional; NULL: refused */
  enum agent_write (*write_loan)(void *loan, size_t size); /* with `loan` */
  /* Hands received samples to the handler; returns after the first ones or the timeout. 0 polls. */
  void (*receive)(agent_handler, void *context, int64_t timeout_ns);
  /* Optional: from now on a thread of the system calls the handler. Called once after `open`. */
  const char *(*listen)(agent_handler, void *context);
  /* With type=complex: makes a sample, sets `number` of its first item, writes it. Samples live
   * as long as the process. `complex_new` is called after `open`. */
  void *(*complex_new)(const struct agent_complex *);
  void (*complex_set_number)(void *complex_sample, int32_t number);
  enum agent_write (*complex_write)(const void *complex_sample);
  /* Optional, for `crowd`, `seek` and `mesh`, which call no `open`: makes a further participant. */
  const char *(*join)(const struct agent_options *);
  /* With `join`: a writer, or a reader, of the participant with this number. */
  const char *(*add_writer)(int participant, const char *topic);
  const char *(*add_reader)(int participant, const char *topic);
  int (*found_writers)(void); /* with `join`: of all readers together */
};

/* Runs the role; the exit code of the process. */
int agent_main(int argc, char **argv, const struct agent_adapter *adapter);

/* For adapters in languages that mirror the structures: sizes of options, message, adapter. */
extern const size_t agent_sizes[3];

/* For adapters. */
extern volatile int agent_stopping; /* set by SIGTERM */
uint64_t agent_now_ns(void);        /* CLOCK_MONOTONIC */
void agent_sleep_ns(uint64_t ns);
void agent_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
const char *agent_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Name of the item at `index` of a complex sample: `name_length` characters and a zero. */
void agent_item_name(char *name, uint32_t index, uint32_t name_length);
bool agent_listed(const char *list, const char *word);

#ifdef __cplusplus
}
#endif
#endif
