/* The line protocol of the peer programs: commands in on standard input, one JSON object per line out on standard
 * output. ../README.md describes it; ../src/bin/takt-peer.rs is the same program for Takt. */
#include "peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_WORDS 24
#define MAX_ENDPOINTS 4096
#define NAME_LEN 64

struct words {
  char *word[MAX_WORDS];
  int count;
};

struct slot {
  char *id;
  char *topic;
  bool writer;
  enum kind kind;
  struct endpoint *endpoint;
};
static struct slot slots[MAX_ENDPOINTS];

static int64_t realtime_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- content -------------------------------------------------------------------------------------------------- */

static uint64_t splitmix(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* The payload is a function of (key, seq, length): a splitmix64 stream, little-endian words. */
static void fill(uint8_t *payload, uint32_t len, uint32_t key, uint64_t seq) {
  uint64_t state = ((uint64_t)key << 40) ^ ((uint64_t)len << 20) ^ seq;
  for (uint32_t at = 0; at < len; at += 8) {
    uint64_t word = splitmix(&state);
    for (uint32_t i = 0; i < 8 && at + i < len; i++) payload[at + i] = (uint8_t)(word >> (8 * i));
  }
}

static uint64_t fnv1a(const uint8_t *bytes, uint32_t len) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (uint32_t i = 0; i < len; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* Names of different lengths, so that the member behind the name moves. */
static void instance_name(char *name, uint32_t key) {
  snprintf(name, NAME_LEN, "instance-%0*" PRIu32, (int)(1 + key % 5), key);
}

/* ---- reports: one fprintf with one line each, so that lines of different threads never mix --------------------- */

void report_matched(const char *id, int current, int total) {
  printf("{\"ev\":\"matched\",\"id\":\"%s\",\"current\":%d,\"total\":%d}\n", id, current, total);
  fflush(stdout);
}
void report_incompatible(const char *id, int policy, int total) {
  printf("{\"ev\":\"incompatible\",\"id\":\"%s\",\"policy\":%d,\"total\":%d}\n", id, policy, total);
  fflush(stdout);
}
void report_deadline_missed(const char *id, int total) {
  printf("{\"ev\":\"deadline_missed\",\"id\":\"%s\",\"total\":%d}\n", id, total);
  fflush(stdout);
}
void report_lost(const char *id, int total) {
  printf("{\"ev\":\"lost\",\"id\":\"%s\",\"total\":%d}\n", id, total);
  fflush(stdout);
}
void report_rejected(const char *id, int total) {
  printf("{\"ev\":\"rejected\",\"id\":\"%s\",\"total\":%d}\n", id, total);
  fflush(stdout);
}
void report_sample(const char *id, const struct sample *sample, bool valid, bool key_known, enum instance_state state,
                   int64_t source_ns) {
  static const char *const states[] = {"alive", "disposed", "no_writers"};
  int64_t received_ns = realtime_ns();
  char key[24] = "null", name[NAME_LEN + 8] = "null";
  if (key_known) snprintf(key, sizeof key, "%" PRIu32, sample->key);
  if (key_known && sample->name) snprintf(name, sizeof name, "\"%.*s\"", NAME_LEN, sample->name);
  if (valid)
    printf("{\"ev\":\"sample\",\"id\":\"%s\",\"valid\":true,\"state\":\"%s\",\"key\":%s,\"name\":%s,\"seq\":%" PRIu64
           ",\"len\":%" PRIu32 ",\"hash\":\"%016" PRIx64 "\",\"stamp_ns\":%" PRId64 ",\"source_ns\":%" PRId64
           ",\"received_ns\":%" PRId64 "}\n",
           id, states[state], key, name, sample->seq, sample->payload_len, fnv1a(sample->payload, sample->payload_len),
           sample->stamp_ns, source_ns, received_ns);
  else
    printf("{\"ev\":\"sample\",\"id\":\"%s\",\"valid\":false,\"state\":\"%s\",\"key\":%s,\"name\":%s,\"source_ns\":%" PRId64
           ",\"received_ns\":%" PRId64 "}\n",
           id, states[state], key, name, source_ns, received_ns);
  fflush(stdout);
}

static void report_done(const char *id, const char *command) {
  printf("{\"ev\":\"done\",\"id\":\"%s\",\"command\":\"%s\"}\n", id, command);
  fflush(stdout);
}
static void report_error(const char *id, const char *command, const char *why) {
  printf("{\"ev\":\"error\",\"id\":\"%s\",\"command\":\"%s\",\"what\":\"%s\"}\n", id, command, why);
  fflush(stdout);
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static struct words split(char *line) {
  struct words words = {.count = 0};
  char *save = NULL;
  for (char *w = strtok_r(line, " \r\n", &save); w && words.count < MAX_WORDS; w = strtok_r(NULL, " \r\n", &save))
    words.word[words.count++] = w;
  return words;
}

/* The value of key=value, or `otherwise`. */
static const char *text(const struct words *words, const char *key, const char *otherwise) {
  size_t len = strlen(key);
  for (int i = 1; i < words->count; i++)
    if (!strncmp(words->word[i], key, len) && words->word[i][len] == '=') return words->word[i] + len + 1;
  return otherwise;
}
static uint64_t number(const struct words *words, const char *key, uint64_t otherwise) {
  const char *value = text(words, key, NULL);
  return value ? strtoull(value, NULL, 10) : otherwise;
}

static struct slot *find(const char *id) {
  for (int i = 0; i < MAX_ENDPOINTS; i++)
    if (slots[i].id && !strcmp(slots[i].id, id)) return &slots[i];
  return NULL;
}
static struct slot *vacant(void) {
  for (int i = 0; i < MAX_ENDPOINTS; i++)
    if (!slots[i].id) return &slots[i];
  return NULL;
}

static enum kind kind_of(const char *name) {
  static const char *const names[KINDS] = {"unkeyed", "key", "name_key", "wide_key", "octet_key", "sequence_key"};
  for (int i = 0; i < KINDS; i++)
    if (!strcmp(names[i], name)) return (enum kind)i;
  return UNKEYED;
}

static const char *create(const struct words *words, bool writer) {
  const char *type = text(words, "type", "unkeyed"), *history = text(words, "history", "all");
  const char *representation = text(words, "repr", "xcdr1"), *durability = text(words, "durability", "volatile");
  struct slot *slot = vacant();
  if (!slot) return "too many endpoints";
  slot->id = strdup(text(words, "id", "?"));
  slot->topic = strdup(text(words, "topic", "Topic"));
  slot->writer = writer;
  slot->kind = kind_of(type);
  const struct endpoint_spec spec = {
      .id = slot->id,
      .topic = slot->topic,
      .kind = slot->kind,
      .appendable = !strcmp(text(words, "ext", "final"), "appendable"),
      .representation = !strcmp(representation, "xcdr2") ? XCDR2 : !strcmp(representation, "any") ? ANY_REPRESENTATION : XCDR1,
      .reliable = !strcmp(text(words, "reliability", "reliable"), "reliable"),
      .durability = !strcmp(durability, "transient")         ? DURABILITY_TRANSIENT
                    : !strcmp(durability, "transient_local") ? DURABILITY_TRANSIENT_LOCAL
                                                             : DURABILITY_VOLATILE,
      .history_depth = strcmp(history, "all") ? atoi(history) : 0,
      .autodispose = number(words, "autodispose", 0) != 0,
      .block_ms = (int)number(words, "block_ms", 30000),
      .lifespan_ms = (int)number(words, "lifespan_ms", 0),
      .deadline_ms = (int)number(words, "deadline_ms", 0),
      .lease_ms = (int)number(words, "lease_ms", 0),
      .strength = atoi(text(words, "strength", "-1")),
      .filter_below = number(words, "filter_below", 0),
      .synchronous = number(words, "synchronous", 0) != 0,
      .on_demand = number(words, "on_demand", 0) != 0,
      .by_source = !strcmp(text(words, "order", "reception"), "source"),
  };
  const char *why = adapter_create(writer, &spec, &slot->endpoint);
  if (why) { /* the names stay: a listener may still be using them */
    slot->id = slot->topic = NULL;
  }
  return why;
}

static const char *write_samples(const struct words *words, const struct slot *slot) {
  uint64_t first = number(words, "first", 0), count = number(words, "count", 1), keys = number(words, "keys", 1);
  uint64_t period_us = number(words, "period_us", 0);
  uint32_t key = (uint32_t)number(words, "key", 0), size = (uint32_t)number(words, "size", 16);
  uint8_t *payload = malloc(size ? size : 1);
  struct timespec due;
  char name[NAME_LEN];
  const char *why = NULL;
  if (!payload) return "out of memory";
  clock_gettime(CLOCK_MONOTONIC, &due);
  for (uint64_t i = 0; i < count && !why; i++) {
    struct sample sample = {.key = slot->kind == UNKEYED ? 0 : key + (uint32_t)(i % keys), .seq = first + i};
    fill(payload, size, sample.key, sample.seq);
    instance_name(name, sample.key);
    sample.name = slot->kind == NAME_KEY ? name : NULL;
    sample.payload = payload;
    sample.payload_len = size;
    sample.stamp_ns = realtime_ns();
    why = adapter_write(slot->endpoint, &sample);
    if (period_us) {
      due.tv_nsec += (long)(period_us % 1000000) * 1000;
      due.tv_sec += (time_t)(period_us / 1000000) + due.tv_nsec / 1000000000;
      due.tv_nsec %= 1000000000;
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
  }
  free(payload);
  return why;
}

static const char *end_instance(const struct words *words, const struct slot *slot, bool dispose) {
  char name[NAME_LEN];
  struct sample sample = {.key = (uint32_t)number(words, "key", 0)};
  instance_name(name, sample.key);
  sample.name = slot->kind == NAME_KEY ? name : NULL;
  return dispose ? adapter_dispose(slot->endpoint, &sample) : adapter_unregister(slot->endpoint, &sample);
}

static const char *run(const char *command, const struct words *words) {
  if (!strcmp(command, "writer") || !strcmp(command, "reader")) return create(words, !strcmp(command, "writer"));
  struct slot *slot = find(text(words, "id", ""));
  if (!slot) return "no such endpoint";
  if (!strcmp(command, "delete")) {
    adapter_delete(slot->endpoint);
    slot->id = slot->topic = NULL;
    return NULL;
  }
  if (!strcmp(command, "take")) {
    if (slot->writer) return "not a reader";
    adapter_take(slot->endpoint);
    return NULL;
  }
  if (!slot->writer) return "not a writer";
  if (!strcmp(command, "write")) return write_samples(words, slot);
  if (!strcmp(command, "dispose")) return end_instance(words, slot, true);
  if (!strcmp(command, "unregister")) return end_instance(words, slot, false);
  if (!strcmp(command, "acks")) return adapter_wait_acknowledged(slot->endpoint, (int)number(words, "timeout_ms", 10000));
  return "unknown command";
}

int main(int argc, char **argv) {
  struct words arguments = {.count = argc < MAX_WORDS ? argc : MAX_WORDS};
  memcpy(arguments.word, argv, (size_t)arguments.count * sizeof *argv);
  const struct options options = {
      .domain = (unsigned)number(&arguments, "domain", 0),
      .interface_name = text(&arguments, "interface", ""),
      .address = text(&arguments, "address", ""),
      .peer = text(&arguments, "peer", ""),
      .max_message_bytes = (unsigned)number(&arguments, "max_message", 0),
      .own_ports = !strcmp(text(&arguments, "ports", ""), "own"),
      .tcp_listen = (unsigned)number(&arguments, "tcp_listen", 0),
      .tcp_connect = text(&arguments, "tcp_connect", ""),
      .enclave = text(&arguments, "enclave", ""),
  };
  const char *why = adapter_open(&options);
  if (why) {
    report_error("", "open", why);
    return 1;
  }
  printf("{\"ev\":\"ready\",\"peer\":\"%s\",\"version\":\"%s\"}\n", adapter_name, adapter_version);
  fflush(stdout);
  char *line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, stdin) > 0) {
    struct words words = split(line);
    if (!words.count) continue;
    const char *command = words.word[0], *id = text(&words, "id", "");
    if (!strcmp(command, "quit")) break;
    why = run(command, &words);
    if (why)
      report_error(id, command, why);
    else
      report_done(id, command);
  }
  free(line);
  adapter_close();
  report_done("", "quit");
  return 0;
}
