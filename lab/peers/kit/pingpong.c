/* Round trips: `ping` in closed and open loop, `pong`. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "kit.h"

/* reply=ack returns the first 4 octets, which must be the low half of the sequence number. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the host must be little-endian");

#define LOST_AFTER_NS UINT64_C(1000000000)
#define MAX_LOST 20

/* A round trip is one sample: a writer that batches must not wait for more. */
static void send_now(const struct agent_adapter *adapter, const struct agent_options *options) {
  if (options->batch > 1) adapter->flush();
}

struct ping {
  const struct agent_adapter *adapter;
  const struct agent_options *options;
  unsigned char *payload;
  void *complex_sample;
  size_t size;
  uint64_t sequence; /* of the last ping; runs on from size to size */
  uint64_t first_counted, last;
  _Atomic uint64_t awaited; /* closed loop: sequence number of the pong; 0: none */
  _Atomic uint64_t sent_ns;
  uint64_t start_ns;        /* open loop: planned time of sequence number `first` */
  uint64_t first;
  _Atomic uint64_t answered; /* open loop: counted pongs */
  uint64_t refused, lost;
  struct agent_times times;
  struct agent_usage usage;
  sem_t finished;
  atomic_bool ended;
};

static void write_ping(struct ping *ping, uint64_t sent_ns) {
  if (ping->sequence == ping->first_counted) ping->usage = usage_now();
  const struct agent_adapter *adapter = ping->adapter;
  const bool reliable = ping->options->reliable;
  if (ping->options->type == AGENT_OCTETS) {
    octets_stamp(ping->payload, ping->size, ping->sequence, sent_ns);
    write_octets(adapter, ping->options, ping->payload, ping->size, reliable, &ping->refused);
    send_now(adapter, ping->options);
    return;
  }
  adapter->complex_set_number(ping->complex_sample, (int32_t)ping->sequence);
  while (adapter->complex_write(ping->complex_sample) == AGENT_REFUSED && reliable &&
         !agent_stopping)
    agent_sleep_ns(10000);
  send_now(adapter, ping->options);
}

static void send_next(struct ping *ping) {
  ping->sequence++;
  const uint64_t now_ns = agent_now_ns();
  ping->sent_ns = now_ns;
  ping->awaited = ping->sequence; /* before the write: a listener may run while it lasts */
  write_ping(ping, now_ns);
}

/* The low half of the sequence number of a pong; false: not a pong of this size. */
static bool pong_sequence(const struct ping *ping, const struct agent_message *message,
                          uint32_t *sequence) {
  if (ping->options->type == AGENT_COMPLEX) {
    *sequence = (uint32_t)message->number;
    return true;
  }
  if (message->size != (ping->options->reply_ack ? 4 : ping->size)) return false;
  touch_read(ping->options->touch, message->data, message->size);
  *sequence = (uint32_t)octets_sequence(message->data, message->size);
  return true;
}

static void on_closed_pong(void *context, const struct agent_message *message) {
  struct ping *ping = context;
  uint32_t sequence;
  if (ping->ended || agent_stopping || !pong_sequence(ping, message, &sequence)) return;
  const uint64_t now_ns = agent_now_ns();
  uint64_t awaited = ping->awaited;
  if (!awaited || (uint32_t)awaited != sequence) return;
  if (!atomic_compare_exchange_strong(&ping->awaited, &awaited, 0)) return;
  if (awaited >= ping->first_counted) ping->times.ns[ping->times.count++] = now_ns - ping->sent_ns;
  if (ping->options->notify != AGENT_LISTENER) return;
  if (awaited == ping->last)
    sem_post(&ping->finished);
  else
    send_next(ping);
}

/* The ping is given up if its pong is late; false: the size ends. */
static bool check_late(struct ping *ping) {
  uint64_t awaited = ping->awaited;
  if (!awaited || agent_now_ns() < ping->sent_ns + LOST_AFTER_NS) return true;
  if (!atomic_compare_exchange_strong(&ping->awaited, &awaited, 0)) return true;
  ping->lost++;
  return ping->lost < MAX_LOST && ping->sequence < ping->last;
}

static void run_closed_listening(struct ping *ping) {
  send_next(ping);
  while (!agent_stopping) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += 100000000;
    if (at.tv_nsec >= 1000000000) at.tv_sec++, at.tv_nsec -= 1000000000;
    if (!sem_clockwait(&ping->finished, CLOCK_MONOTONIC, &at)) return;
    const uint64_t lost = ping->lost;
    if (!check_late(ping)) return;
    if (ping->lost > lost) send_next(ping);
  }
}

static void run_closed_waiting(struct ping *ping) {
  while (ping->sequence < ping->last && !agent_stopping) {
    send_next(ping);
    const uint64_t lost = ping->lost;
    while (ping->awaited && !agent_stopping) {
      receive_some(ping->adapter, ping->options, on_closed_pong, ping, 100000000);
      if (ping->awaited && !check_late(ping)) return;
      if (ping->lost > lost) break;
    }
  }
}

static void on_open_pong(void *context, const struct agent_message *message) {
  struct ping *ping = context;
  uint32_t sequence;
  if (ping->ended || !pong_sequence(ping, message, &sequence)) return;
  const uint64_t now_ns = agent_now_ns();
  const uint32_t index = sequence - (uint32_t)ping->first;
  if (index > ping->last - ping->first || ping->first + index < ping->first_counted) return;
  if (ping->times.count == ping->times.capacity) return;
  const uint64_t planned_ns = ping->start_ns + index * ping->options->period_ns;
  ping->times.ns[ping->times.count++] = now_ns - planned_ns;
  ping->answered = ping->times.count;
}

static void *receive_pongs(void *context) {
  struct ping *ping = context;
  while (!ping->ended && !agent_stopping)
    ping->adapter->receive(on_open_pong, ping, 100000000);
  return NULL;
}

static void wait_open(struct ping *ping, uint64_t until_ns, bool all) {
  if (ping->options->notify != AGENT_POLL && !all) {
    sleep_until_ns(until_ns);
    return;
  }
  while (agent_now_ns() < until_ns && !agent_stopping) {
    if (all && ping->answered == ping->options->count) return;
    if (ping->options->notify == AGENT_POLL)
      ping->adapter->receive(on_open_pong, ping, 0);
    else
      agent_sleep_ns(10000000);
  }
}

static void run_open(struct ping *ping) {
  const uint64_t period_ns = ping->options->period_ns;
  pthread_t receiver;
  const bool threaded = ping->options->notify == AGENT_WAITSET;
  ping->first = ping->sequence + 1;
  ping->start_ns = agent_now_ns() + period_ns;
  ping->answered = 0;
  ping->ended = false;
  if (threaded && pthread_create(&receiver, NULL, receive_pongs, ping))
    agent_fail("no thread that receives");
  while (ping->sequence < ping->last && !agent_stopping) {
    const uint64_t planned_ns = ping->start_ns + (ping->sequence + 1 - ping->first) * period_ns;
    wait_open(ping, planned_ns, false);
    ping->sequence++;
    write_ping(ping, planned_ns);
  }
  wait_open(ping, agent_now_ns() + LOST_AFTER_NS, true);
  ping->ended = true;
  if (threaded) pthread_join(receiver, NULL);
  ping->lost = ping->options->count - ping->answered;
}

static void run_size(struct ping *ping, size_t size) {
  const struct agent_options *options = ping->options;
  ping->size = size;
  ping->lost = 0;
  ping->times.count = 0;
  ping->first_counted = ping->sequence + options->warmup + 1;
  ping->last = ping->sequence + options->warmup + options->count;
  ping->usage = usage_now();
  if (options->type == AGENT_COMPLEX) {
    const struct agent_complex shape = complex_shape(size);
    ping->complex_sample = ping->adapter->complex_new(&shape);
  }
  ping->ended = false;
  if (options->period_ns) run_open(ping);
  else if (options->notify == AGENT_LISTENER) run_closed_listening(ping);
  else run_closed_waiting(ping);
  ping->ended = true;
  const struct agent_usage used = usage_since(&ping->usage);
  ping->sequence = ping->last;
  if (agent_stopping) return;
  times_append(&ping->times, options->out);
  say("{\"ev\":\"result\",\"role\":\"ping\",\"size\":%zu,\"got\":%llu,\"lost\":%llu,"
      "\"cpu_s\":%.6f,\"wall_s\":%.6f,\"nvcsw\":%ld,\"nivcsw\":%ld,\"listening\":%d}",
      size, (unsigned long long)ping->times.count, (unsigned long long)ping->lost, used.cpu_s,
      1e-9 * (double)used.at_ns, used.nvcsw, used.nivcsw, options->notify == AGENT_LISTENER);
}

void run_ping(const struct agent_adapter *adapter, const struct agent_options *options) {
  static struct ping ping;
  ping.adapter = adapter;
  ping.options = options;
  ping.ended = true;
  ping.payload = octets_new(options->max_size);
  times_open(&ping.times, options->count);
  /* No page fault while times are taken. */
  memset(ping.times.ns, 1, options->count * sizeof(uint64_t));
  sem_init(&ping.finished, 0, 0);
  open_endpoints(adapter, options, "Ping", "Pong",
                 options->period_ns ? on_open_pong : on_closed_pong, &ping);
  if (!wait_matched(adapter, 1, 1)) return;
  agent_sleep_ns(300000000);
  /* The kernel otherwise rounds the planned time up by 50 us. Threads of the system keep theirs. */
  prctl(PR_SET_TIMERSLACK, 1);
  for (int at = 0; at < options->size_count && !agent_stopping; at++)
    run_size(&ping, options->sizes[at]);
  if (!agent_stopping) say("{\"ev\":\"done\"}");
}

struct pong {
  const struct agent_adapter *adapter;
  const struct agent_options *options;
  void *acknowledgment;
  uint64_t refused;
};

static void answer_complex(struct pong *pong, const struct agent_message *message) {
  const void *reply = message->complex_sample;
  if (pong->acknowledgment) {
    pong->adapter->complex_set_number(pong->acknowledgment, message->number);
    reply = pong->acknowledgment;
  }
  while (pong->adapter->complex_write(reply) == AGENT_REFUSED && pong->options->reliable &&
         !agent_stopping)
    agent_sleep_ns(10000);
  send_now(pong->adapter, pong->options);
}

static void on_ping(void *context, const struct agent_message *message) {
  struct pong *pong = context;
  if (agent_stopping) return;
  if (pong->options->type == AGENT_COMPLEX) {
    answer_complex(pong, message);
    return;
  }
  touch_read(pong->options->touch, message->data, message->size);
  const size_t size = pong->options->reply_ack ? 4 : message->size;
  if (message->size < size) return;
  write_octets(pong->adapter, pong->options, message->data, size, pong->options->reliable,
               &pong->refused);
  send_now(pong->adapter, pong->options);
}

void run_pong(const struct agent_adapter *adapter, const struct agent_options *options) {
  static struct pong pong;
  pong.adapter = adapter;
  pong.options = options;
  open_endpoints(adapter, options, "Pong", "Ping", on_ping, &pong);
  if (options->type == AGENT_COMPLEX && options->reply_ack) {
    const struct agent_complex shape = {.items = 1, .items_of_group = 1, .name_length = 0};
    pong.acknowledgment = adapter->complex_new(&shape);
  }
  while (!agent_stopping) receive_some(adapter, options, on_ping, &pong, 100000000);
}
