/* Arguments of an agent. A value that is malformed or not supported is an error. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"

bool agent_listed(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = list; at && *at;) {
    const size_t here = strcspn(at, ",");
    if (here == length && !memcmp(at, word, length)) return true;
    at += here;
    if (*at) at++;
  }
  return false;
}

const char *notify_name(enum agent_notify notify) {
  static const char *const names[] = {"auto", "listener", "waitset", "poll"};
  return names[notify];
}

static uint64_t whole(const char *key, const char *value, uint64_t least, uint64_t most) {
  char *end;
  errno = 0;
  const unsigned long long number = strtoull(value, &end, 10);
  if (*value < '0' || *value > '9' || *end || errno || number < least || number > most)
    agent_fail("%s=%s is not a whole number from %llu to %llu", key, value,
               (unsigned long long)least, (unsigned long long)most);
  return number;
}

static double decimal(const char *key, const char *value, double most) {
  char *end;
  const double number = strtod(value, &end);
  if (end == value || *end || !isfinite(number) || number < 0 || number > most)
    agent_fail("%s=%s is not a number from 0 to %g", key, value, most);
  return number;
}

/* The index of the value in the list `words`, which NULL ends. */
static int choice(const char *key, const char *value, const char *const *words) {
  for (int at = 0; words[at]; at++)
    if (!strcmp(words[at], value)) return at;
  char all[128] = "";
  for (int at = 0; words[at]; at++) {
    if (at) strncat(all, ", ", sizeof all - strlen(all) - 1);
    strncat(all, words[at], sizeof all - strlen(all) - 1);
  }
  agent_fail("%s=%s is none of %s", key, value, all);
}

static const char *address(const char *key, const char *value) {
  struct in_addr parsed;
  if (inet_pton(AF_INET, value, &parsed) != 1)
    agent_fail("%s=%s is not an IPv4 address", key, value);
  return value;
}

static void parse_sizes(struct agent_options *options, const char *key, const char *value) {
  options->size_count = 0;
  char *copy = strdup(value), *rest = copy;
  for (char *size; (size = strsep(&rest, ",")) != NULL;) {
    if (options->size_count == AGENT_MAX_SIZES)
      agent_fail("%s has more than %d sizes", key, AGENT_MAX_SIZES);
    options->sizes[options->size_count++] = whole(key, size, 4, AGENT_MAX_SIZE);
  }
  free(copy);
}

static void parse_key(struct agent_options *options, const char *key, const char *value) {
  static const char *const reliabilities[] = {"besteffort", "reliable", NULL};
  static const char *const notifies[] = {"auto", "listener", "waitset", "poll", NULL};
  static const char *const types[] = {"octets", "complex", NULL};
  static const char *const replies[] = {"whole", "ack", NULL};
  static const char *const deliveries[] = {"unicast", "multicast", "broadcast", NULL};
  static const char *const touches[] = {"0", "1", "all", NULL};
#define KEY(name) (!strcmp(key, name))
  if KEY ("transport") options->transport = value;
  else if KEY ("rel") options->reliable = choice(key, value, reliabilities);
  else if KEY ("hist")
    options->depth = !strcmp(value, "all") ? 0 : (int)whole(key, value, 1, 1000000);
  else if KEY ("notify") options->notify = (enum agent_notify)choice(key, value, notifies);
  else if KEY ("type") options->type = (enum agent_type)choice(key, value, types);
  else if (KEY("size") || KEY("sizes")) parse_sizes(options, key, value);
  else if KEY ("reply") options->reply_ack = choice(key, value, replies);
  else if KEY ("warmup") options->warmup = whole(key, value, 0, 1000000000);
  else if KEY ("count") options->count = whole(key, value, 1, 100000000);
  else if KEY ("period_ns") options->period_ns = whole(key, value, 0, UINT64_C(60000000000));
  else if KEY ("warm_s") options->warm_s = decimal(key, value, 86400);
  else if KEY ("secs") options->secs = decimal(key, value, 86400);
  else if KEY ("rate") options->rate = decimal(key, value, 1e9);
  else if KEY ("batch") options->batch = (int)whole(key, value, 1, AGENT_MAX_BATCH);
  else if KEY ("n") options->n = (int)whole(key, value, 0, 10000);
  else if KEY ("id") options->id = (int)whole(key, value, 0, 10000);
  else if KEY ("delivery") options->delivery = (enum agent_delivery)choice(key, value, deliveries);
  else if KEY ("touch") options->touch = (enum agent_touch)choice(key, value, touches);
  else if KEY ("loan") options->loan = whole(key, value, 0, 1);
  else if KEY ("domain") options->domain = (int)whole(key, value, 0, 232);
  else if KEY ("iface") options->iface = value;
  else if KEY ("addr") options->addr = address(key, value);
  else if KEY ("peer") options->peer = address(key, value);
  else if KEY ("broker") options->broker = value;
  else if KEY ("t0") options->t0 = whole(key, value, 0, UINT64_MAX);
  else if KEY ("out") options->out = value;
  else if KEY ("participants")
    options->participants = (int)whole(key, value, 1, AGENT_MAX_PARTICIPANTS);
  else if KEY ("endpoints") options->endpoints = (int)whole(key, value, 0, 10000);
  else if KEY ("instances") options->instances = (int)whole(key, value, 0, 1000000);
  else if KEY ("security") options->security = value;
#undef KEY
}

static void check_combination(const struct agent_options *options) {
  const bool stream = !strcmp(options->role, "pub") || !strcmp(options->role, "sub");
  if (options->type == AGENT_COMPLEX && (stream || options->period_ns))
    agent_fail("type=complex is for closed loops alone");
  for (int at = 0; at < options->size_count; at++)
    if (options->type == AGENT_OCTETS && options->sizes[at] < 16 && (stream || options->period_ns))
      agent_fail("a size of %zu octets is for closed loops alone; others need 16",
                 options->sizes[at]);
  const bool pair = !strcmp(options->role, "idle") || !strcmp(options->role, "disc");
  if (pair && options->id > 1) agent_fail("id=%d of %s is not 0 or 1", options->id, options->role);
}

static void check_support(struct agent_options *options, const struct agent_adapter *adapter) {
  static const char *const deliveries[] = {"unicast", "multicast", "broadcast"};
  const char *type = options->type == AGENT_COMPLEX ? "complex" : "octets";
  const char *delivery = deliveries[options->delivery];
  if (!agent_listed(adapter->transports, options->transport))
    agent_fail("transport=%s of %s is none of %s", options->transport, adapter->peer,
               adapter->transports);
  if (!agent_listed(adapter->types, type))
    agent_fail("type=%s of %s is none of %s", type, adapter->peer, adapter->types);
  if (!agent_listed(adapter->deliveries, delivery))
    agent_fail("delivery=%s of %s is none of %s", delivery, adapter->peer, adapter->deliveries);
  const char *notify = notify_name(options->notify);
  if (options->notify != AGENT_AUTO && !agent_listed(adapter->notifies, notify))
    agent_fail("notify=%s of %s is none of %s", notify, adapter->peer, adapter->notifies);
  const bool fixed = adapter->fixed_size && adapter->fixed_size(options);
  if (fixed && options->size_count > 1)
    agent_fail("transport=%s has one fixed size; start the agent once for each size",
               options->transport);
  if (fixed && options->reply_ack)
    agent_fail("transport=%s has one fixed size; reply=ack has another", options->transport);
  if (options->batch > 1 && !(adapter->flush && adapter->batches && adapter->batches(options)))
    agent_fail("transport=%s of %s does not batch on request", options->transport, adapter->peer);
  if (options->security && !adapter->secures)
    agent_fail("security=%s: the agent of %s has no DDS Security", options->security,
               adapter->peer);
  if (options->loan && !adapter->loan) agent_fail("%s has no loans", adapter->peer);
  if (options->loan && options->type == AGENT_COMPLEX)
    agent_fail("loan=1 and type=complex exclude one another");
  const char *why = adapter->check ? adapter->check(options) : NULL;
  if (why) agent_fail("%s", why);
}

static enum agent_notify first_notify(const struct agent_adapter *adapter) {
  if (!strncmp(adapter->notifies, "listener", 8)) return AGENT_LISTENER;
  return strncmp(adapter->notifies, "poll", 4) ? AGENT_WAITSET : AGENT_POLL;
}

void options_parse(struct agent_options *options, int argc, char **argv,
                   const struct agent_adapter *adapter) {
  *options = (struct agent_options){
      .role = argv[1], .transport = "default", .reliable = true, .sizes = {32}, .size_count = 1,
      .warmup = 1000, .count = 10000, .warm_s = 0.5, .secs = 2, .batch = 1, .n = 1, .domain = 7,
      .iface = "lo", .addr = "127.0.0.1", .participants = 1, .endpoints = 1,
  };
  for (int at = 2; at < argc; at++) {
    char *value = strchr(argv[at], '=');
    if (!value) agent_fail("%s is not key=value", argv[at]);
    *value++ = 0;
    parse_key(options, argv[at], value);
  }
  for (int at = 0; at < options->size_count; at++)
    if (options->sizes[at] > options->max_size) options->max_size = options->sizes[at];
  if (!strcmp(options->role, "info")) return;
  check_combination(options);
  check_support(options, adapter);
  if (options->notify == AGENT_AUTO)
    options->notify = adapter->fastest ? adapter->fastest(options) : first_notify(adapter);
}
