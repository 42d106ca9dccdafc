/* Samples for readers that come later: `hold` and `join`. */
#include <stdatomic.h>

#include "kit.h"

#define LIMIT_NS UINT64_C(30000000000)

/* Both ends keep as many samples as there are. */
static void make_durable(struct agent_options *options) {
  options->reliable = true;
  options->transient_local = true;
  options->depth = (int)options->count;
}

void run_hold(const struct agent_adapter *adapter, struct agent_options *options) {
  make_durable(options);
  const char *why = adapter->open(options, "Data", NULL);
  if (why) agent_fail("%s", why);
  const size_t size = options->sizes[0];
  unsigned char *payload = octets_new(size);
  uint64_t refused = 0;
  for (uint64_t sequence = 1; sequence <= options->count && !agent_stopping; sequence++) {
    octets_stamp(payload, size, sequence, agent_now_ns());
    write_octets(adapter, options, payload, size, true, &refused);
  }
  if (adapter->flush) adapter->flush();
  say("{\"ev\":\"ready\"}");
  while (!agent_stopping) sleep_until_ns(agent_now_ns() + UINT64_C(3600000000000));
}

struct join {
  _Atomic uint64_t count, first_ns, last_ns;
};

static void on_sample(void *context, const struct agent_message *message) {
  struct join *join = context;
  (void)message;
  join->last_ns = agent_now_ns();
  if (!join->first_ns) join->first_ns = join->last_ns;
  join->count++;
}

void run_join(const struct agent_adapter *adapter, struct agent_options *options,
              uint64_t main_ns) {
  static struct join join;
  make_durable(options);
  const uint64_t t0 = options->t0 ? options->t0 : main_ns;
  open_endpoints(adapter, options, NULL, "Data", on_sample, &join);
  while (!agent_stopping && join.count < options->count && agent_now_ns() < main_ns + LIMIT_NS)
    receive_some(adapter, options, on_sample, &join, 1000000);
  if (!join.count) agent_fail("no sample arrived within 30 s");
  say("{\"ev\":\"result\",\"role\":\"join\",\"n\":%llu,\"first_ms\":%.3f,\"last_ms\":%.3f}",
      (unsigned long long)join.count, 1e-6 * (double)(int64_t)(join.first_ns - t0),
      1e-6 * (double)(int64_t)(join.last_ns - t0));
  while (!agent_stopping) receive_some(adapter, options, on_sample, &join, 100000000);
}
