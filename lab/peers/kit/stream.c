/* One way: `pub`, `load` and `sub`. */
#include <stdatomic.h>
#include <string.h>

#include "kit.h"

#define AFTER_NS UINT64_C(300000000)
#define SILENCE_NS UINT64_C(3000000000)
#define ACKNOWLEDGE_NS INT64_C(2000000000)
#define MAX_TIMES (UINT64_C(1) << 24) /* of one-way latencies: 128 MiB */

struct window {
  bool opened, closed;
  uint64_t first; /* samples before it */
  uint64_t samples;
  struct agent_usage usage;
};

static void advance(struct window *window, const struct agent_options *options, uint64_t start_ns,
                    uint64_t now_ns, uint64_t written) {
  if (!window->opened && now_ns - start_ns >= (uint64_t)(options->warm_s * 1e9)) {
    window->opened = true;
    window->first = written;
    window->usage = usage_now();
    window->usage.at_ns = now_ns;
  }
  if (window->opened && !window->closed &&
      now_ns - window->usage.at_ns >= (uint64_t)(options->secs * 1e9)) {
    window->closed = true;
    window->samples = written - window->first;
    window->usage = usage_since(&window->usage);
  }
}

static void write_end(const struct agent_adapter *adapter, const struct agent_options *options,
                      unsigned char *payload, size_t size) {
  uint64_t refused = 0;
  octets_stamp(payload, size, AGENT_END, agent_now_ns());
  for (int repeat = 0; repeat < 3 && !agent_stopping; repeat++) {
    write_octets(adapter, options, payload, size, options->reliable, &refused);
    if (adapter->flush) adapter->flush();
    agent_sleep_ns(50000000);
  }
  if (options->reliable && adapter->wait_acknowledged) adapter->wait_acknowledged(ACKNOWLEDGE_NS);
}

/* `load` stamps each sample with the time that it is planned for, and `pub` with that of the call. */
void run_pub(const struct agent_adapter *adapter, const struct agent_options *options) {
  const size_t size = options->sizes[0];
  const bool planned = !strcmp(options->role, "load");
  if (planned && options->rate <= 0) agent_fail("load needs a rate: rate=1000");
  open_endpoints(adapter, options, "Data", NULL, NULL, NULL);
  if (!wait_matched(adapter, options->n, 0)) return;
  if (planned) say("{\"ev\":\"matched\"}");
  agent_sleep_ns(500000000);
  unsigned char *payload = octets_new(size);
  const double period_ns = options->rate > 0 ? 1e9 / options->rate : 0;
  const uint64_t start_ns = agent_now_ns();
  const uint64_t end_ns =
      start_ns + (uint64_t)((options->warm_s + options->secs) * 1e9) + AFTER_NS;
  struct window window = {0};
  uint64_t sequence = 0, written = 0, refused = 0, now_ns = start_ns;
  while (!agent_stopping && (now_ns < end_ns || !window.closed)) {
    const uint64_t within_batch = sequence % (uint64_t)options->batch;
    const uint64_t due_ns = start_ns + (uint64_t)(period_ns * (double)(sequence - within_batch));
    if (period_ns > 0 && within_batch == 0) sleep_until_ns(due_ns);
    now_ns = agent_now_ns();
    advance(&window, options, start_ns, now_ns, written);
    octets_stamp(payload, size, ++sequence, planned ? due_ns : now_ns);
    if (write_octets(adapter, options, payload, size, options->reliable, &refused)) written++;
    if (options->batch > 1 && sequence % (uint64_t)options->batch == 0) adapter->flush();
  }
  if (agent_stopping) return;
  if (adapter->flush) adapter->flush();
  if (options->reliable && adapter->wait_acknowledged) adapter->wait_acknowledged(ACKNOWLEDGE_NS);
  say("{\"ev\":\"result\",\"role\":\"%s\",\"n\":%llu,\"wall_s\":%.6f,\"cpu_s\":%.6f,"
      "\"fails\":%llu,\"total\":%llu}",
      options->role, (unsigned long long)window.samples, 1e-9 * (double)window.usage.at_ns, window.usage.cpu_s,
      (unsigned long long)refused, (unsigned long long)written);
  write_end(adapter, options, payload, size);
  say("{\"ev\":\"done\"}");
}

enum sub_state { SUB_WARMING, SUB_COUNTING, SUB_COUNTED };

struct sub {
  const struct agent_options *options;
  _Atomic uint64_t first_ns, last_ns; /* of all samples */
  uint64_t samples, bytes, total, least, greatest;
  struct agent_usage usage;
  struct agent_times times;
  atomic_int state;
};

/* Ends the count at the last counted sample if it is not over by time. */
static void stop_counting(struct sub *sub, uint64_t end_ns) {
  if (sub->state == SUB_COUNTING) {
    const uint64_t opened_ns = sub->usage.at_ns;
    sub->usage = usage_since(&sub->usage);
    sub->usage.at_ns = end_ns - opened_ns;
  }
  sub->state = SUB_COUNTED;
}

static void on_data(void *context, const struct agent_message *message) {
  struct sub *sub = context;
  if (message->size < 16) return;
  const uint64_t sequence = octets_sequence(message->data, message->size);
  const uint64_t now_ns = agent_now_ns();
  if (sequence == AGENT_END) {
    if (sub->state != SUB_COUNTED) stop_counting(sub, sub->last_ns);
    return;
  }
  touch_read(sub->options->touch, message->data, message->size);
  sub->total++;
  sub->last_ns = now_ns;
  if (!sub->first_ns) sub->first_ns = now_ns;
  const uint64_t warm_ns = (uint64_t)(sub->options->warm_s * 1e9);
  if (sub->state == SUB_WARMING && now_ns - sub->first_ns >= warm_ns) {
    sub->usage = usage_now();
    sub->usage.at_ns = now_ns;
    sub->least = sub->greatest = sequence;
    sub->state = SUB_COUNTING;
  }
  if (sub->state != SUB_COUNTING) return;
  if (now_ns - sub->usage.at_ns >= (uint64_t)(sub->options->secs * 1e9)) {
    stop_counting(sub, now_ns);
    return;
  }
  sub->samples++;
  sub->bytes += message->size;
  if (sequence < sub->least) sub->least = sequence;
  if (sequence > sub->greatest) sub->greatest = sequence;
  if (sub->times.count < sub->times.capacity)
    sub->times.ns[sub->times.count++] = now_ns - octets_sent_ns(message->data);
}

static void print_sub(const struct sub *sub) {
  const struct agent_usage used = sub->samples ? sub->usage : (struct agent_usage){0};
  times_append(&sub->times, sub->options->out);
  say("{\"ev\":\"result\",\"role\":\"sub\",\"id\":%d,\"n\":%llu,\"bytes\":%llu,\"wall_s\":%.6f,"
      "\"cpu_s\":%.6f,\"span\":%llu,\"total\":%llu}",
      sub->options->id, (unsigned long long)sub->samples, (unsigned long long)sub->bytes,
      1e-9 * (double)used.at_ns, used.cpu_s, (unsigned long long)(sub->greatest - sub->least),
      (unsigned long long)sub->total);
}

void run_sub(const struct agent_adapter *adapter, const struct agent_options *options) {
  static struct sub sub;
  sub.options = options;
  if (options->out) times_open(&sub.times, MAX_TIMES);
  open_endpoints(adapter, options, NULL, "Data", on_data, &sub);
  bool printed = false;
  while (!agent_stopping) {
    receive_some(adapter, options, on_data, &sub, 100000000);
    const uint64_t last_ns = sub.last_ns;
    if (last_ns && sub.state != SUB_COUNTED && agent_now_ns() > last_ns + SILENCE_NS)
      stop_counting(&sub, last_ns);
    if (!printed && sub.state == SUB_COUNTED) {
      print_sub(&sub);
      printed = true;
    }
  }
  if (!printed) {
    stop_counting(&sub, sub.last_ns);
    print_sub(&sub);
  }
}
