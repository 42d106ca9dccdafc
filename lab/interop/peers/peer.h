/* What a peer program is made of: peer.c owns the line protocol (see ../README.md), an adapter owns one DDS product.
 * An adapter implements the adapter_* functions and calls the report_* functions, from any thread. */
#ifndef TAKT_INTEROP_PEER_H
#define TAKT_INTEROP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kind { UNKEYED, KEY, NAME_KEY, WIDE_KEY, OCTET_KEY, SEQUENCE_KEY };
#define KINDS 6

/* The member of 8 bytes in the key of instance `key`; a sequence begins with it and goes on counting. */
static inline uint64_t wide_key(uint32_t key) { return key * UINT64_C(0x0123456789); }
static inline uint32_t sequence_key_len(uint32_t key) { return 1 + key % 3; }
/* The key of an instance whose members do not belong together. */
#define WRONG_KEY UINT32_MAX
enum representation { XCDR1, XCDR2, ANY_REPRESENTATION };
enum durability { DURABILITY_VOLATILE, DURABILITY_TRANSIENT_LOCAL, DURABILITY_TRANSIENT };

/* Command line, key=value. */
struct options {
  unsigned domain;
  const char *interface_name; /* network interface to use; "" = whatever the product does when left alone */
  const char *address;        /* IPv4 address of that interface */
  const char *peer;           /* "" = multicast discovery; else the only address that is asked, by unicast */
  unsigned max_message_bytes; /* largest datagram to send; 0 = the product's default */
  bool own_ports;             /* discovery and samples come in at ports of their own, where the product has one for both by default */
  unsigned tcp_listen;        /* TCP alone: the port to listen at; 0 = nowhere */
  const char *tcp_connect;    /* TCP alone: ADDRESS:PORT to connect to; "" = nobody */
  const char *enclave;        /* directory with the files of DDS Security, named as SROS2 does; "" = no security */
};

struct endpoint_spec {
  const char *id; /* outlives the endpoint */
  const char *topic;
  enum kind kind;
  bool appendable;
  enum representation representation;
  bool reliable;
  enum durability durability;
  int history_depth; /* 0 = KEEP_ALL */
  bool autodispose;  /* writer: dispose instances that are unregistered */
  int block_ms;      /* writer: max_blocking_time */
  /* of these 0 is the default of the product, and of DDS */
  int lifespan_ms; /* writer */
  int deadline_ms;
  int lease_ms;           /* LIVELINESS, AUTOMATIC */
  int strength;           /* -1 = SHARED, else EXCLUSIVE, and the strength of a writer */
  uint64_t filter_below;  /* reader: 0 = none, else a content filter `seq < filter_below` */
  bool synchronous;       /* writer of Fast DDS: sends within write; samples of one datagram only */
  bool on_demand;         /* reader: takes when told to, instead of what comes at once */
  bool by_source;         /* DESTINATION_ORDER BY_SOURCE_TIMESTAMP; Fast DDS refuses it, and its readers ignore it */
};

struct sample {
  uint32_t key;
  const char *name; /* NAME_KEY only */
  uint64_t seq;
  int64_t stamp_ns; /* CLOCK_REALTIME when written */
  const uint8_t *payload;
  uint32_t payload_len;
};

enum instance_state { INSTANCE_ALIVE, INSTANCE_DISPOSED, INSTANCE_NO_WRITERS };

struct endpoint;

extern const char *const adapter_name;
extern const char *const adapter_version;
/* Each returns NULL or a reason that lives forever (or until the next call). */
const char *adapter_open(const struct options *options);
void adapter_close(void);
const char *adapter_create(bool writer, const struct endpoint_spec *spec, struct endpoint **endpoint);
void adapter_delete(struct endpoint *endpoint);
void adapter_take(struct endpoint *reader);
const char *adapter_write(struct endpoint *endpoint, const struct sample *sample);
const char *adapter_dispose(struct endpoint *endpoint, const struct sample *key);
const char *adapter_unregister(struct endpoint *endpoint, const struct sample *key);
const char *adapter_wait_acknowledged(struct endpoint *endpoint, int timeout_ms);

void report_matched(const char *id, int current, int total);
void report_incompatible(const char *id, int policy, int total);
void report_deadline_missed(const char *id, int total);
void report_lost(const char *id, int total);
void report_rejected(const char *id, int total);
/* valid = false: only key (and name, if known) of `sample` are meaningful; key_known = false: not even those. */
void report_sample(const char *id, const struct sample *sample, bool valid, bool key_known, enum instance_state state,
                   int64_t source_ns);

#ifdef __cplusplus
}
#endif
#endif
