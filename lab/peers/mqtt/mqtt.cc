// Agent `mqtt`: libmosquitto and the broker mosquitto. reliable: QoS 1, besteffort: QoS 0.
#include <mosquitto.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "agent.h"
#include "broker.h"
#include "match.h"

namespace {

// libmosquitto queues without a limit; the agent refuses samples beyond these.
constexpr int kMaxOutstanding = 1000;
constexpr size_t kMaxOutstandingOctets = 16 << 20;
// The largest value that the protocol has.
constexpr int kTunedInflight = 65535;

struct Item {
  std::string name;
  int32_t number;
};
using Complex = std::vector<std::vector<Item>>;

struct mosquitto *client;
const agent_options *options;
std::string prefix, written_topic, read_topic, match_topic;
bool threaded;
int max_outstanding = kMaxOutstanding;
std::atomic<int> subscribed, outstanding;
std::atomic<bool> connected;
agent_handler handler;
void *context;
bool handed; // a message reached the handler since `receive` began

void put(std::string &to, uint32_t value) {
  to.append(reinterpret_cast<const char *>(&value), sizeof value);
}

// CDR, little-endian: aligned lengths and numbers, strings with their terminating zero.
std::string encode(const Complex &sample) {
  std::string bytes;
  bytes.reserve(sample.size() * 320);
  put(bytes, static_cast<uint32_t>(sample.size()));
  for (const auto &group : sample) {
    put(bytes, static_cast<uint32_t>(group.size()));
    for (const Item &item : group) {
      put(bytes, static_cast<uint32_t>(item.name.size() + 1));
      bytes.append(item.name.c_str(), item.name.size() + 1);
      bytes.resize((bytes.size() + 3) & ~size_t{3});
      put(bytes, static_cast<uint32_t>(item.number));
    }
  }
  return bytes;
}

// Reads from `bytes`; clears `good` if it ends early.
uint32_t get(const char *bytes, size_t size, size_t &at, bool &good) {
  uint32_t value = 0;
  good = good && at + sizeof value <= size;
  if (good) memcpy(&value, bytes + at, sizeof value);
  at += sizeof value;
  return value;
}

bool decode(const char *bytes, size_t size, Complex &sample) {
  size_t at = 0;
  bool good = true;
  sample.clear();
  const uint32_t groups = get(bytes, size, at, good);
  for (uint32_t g = 0; g < groups && good; g++) {
    auto &group = sample.emplace_back();
    const uint32_t items = get(bytes, size, at, good);
    for (uint32_t i = 0; i < items && good; i++) {
      const uint32_t length = get(bytes, size, at, good);
      if (!good || length == 0 || length > size - at) return false;
      std::string name(bytes + at, length - 1);
      at = (at + length + 3) & ~size_t{3};
      const auto number = static_cast<int32_t>(get(bytes, size, at, good));
      group.push_back({std::move(name), number});
    }
  }
  return good && !sample.empty() && !sample[0].empty();
}

void on_connect(mosquitto *, void *, int code) {
  if (code) agent_fail("the broker refuses the connection: %s", mosquitto_connack_string(code));
  connected = true;
}

void on_disconnect(mosquitto *, void *, int code) {
  if (code && !agent_stopping) agent_fail("the broker is gone: %s", mosquitto_strerror(code));
}

void on_subscribe(mosquitto *, void *, int, int, const int *) { subscribed++; }

void on_publish(mosquitto *, void *, int) { outstanding--; }

void on_message(mosquitto *, void *, const mosquitto_message *message) {
  const auto *bytes = static_cast<const char *>(message->payload);
  const auto size = static_cast<size_t>(message->payloadlen);
  if (message->topic == match_topic) {
    match_receive(bytes, size);
    return;
  }
  if (!handler) return;
  handed = true;
  agent_message sample{bytes, size, nullptr, 0};
  if (options->type == AGENT_COMPLEX) {
    static Complex complex_sample;
    if (!decode(bytes, size, complex_sample)) return;
    sample = {nullptr, 0, &complex_sample, complex_sample[0][0].number};
  }
  handler(context, &sample);
}

// Runs the client once if no thread of libmosquitto does.
void step(int timeout_ms) {
  if (threaded) return;
  const int code = mosquitto_loop(client, timeout_ms, 1);
  if (code && !agent_stopping) agent_fail("mosquitto_loop: %s", mosquitto_strerror(code));
}

void publish(const std::string &topic, const void *data, size_t size, int qos) {
  outstanding++;
  const int code = mosquitto_publish(client, nullptr, topic.c_str(), static_cast<int>(size), data,
                                     qos, false);
  if (code && !agent_stopping) agent_fail("mosquitto_publish: %s", mosquitto_strerror(code));
}

void send_match(const char *text) { publish(match_topic, text, strlen(text), 1); }

bool wait_for(const std::atomic<int> &value, int wanted) {
  const uint64_t end_ns = agent_now_ns() + 10000000000u;
  while (value < wanted && !agent_stopping) {
    if (agent_now_ns() > end_ns) return false;
    step(10);
    if (threaded) agent_sleep_ns(1000000);
  }
  return true;
}

bool is_tuned() { return !strcmp(options->transport, "tuned"); }

const char *check(const agent_options *given) {
  const bool stream = !strcmp(given->role, "pub") || !strcmp(given->role, "sub");
  if (given->depth && (stream || given->period_ns))
    return "hist: MQTT has no KEEP_LAST; a depth is for closed loops alone";
  char address[16];
  int port;
  return broker_parse(given->broker, address, &port);
}

const char *open_client(const agent_options *given, const char *writes, const char *reads) {
  options = given;
  char address[16];
  int port;
  broker_parse(options->broker, address, &port);
  prefix = "takt/" + std::to_string(options->domain) + "/";
  written_topic = prefix + (writes ? writes : "");
  read_topic = prefix + (reads ? reads : "");
  match_topic = prefix + MATCH_TOPIC;
  // A publisher and an idle pair have nobody who would call `receive`.
  const bool receives = !strcmp(options->role, "ping") || !strcmp(options->role, "pong") ||
                        !strcmp(options->role, "sub");
  threaded = !receives || options->notify == AGENT_LISTENER;
  if (options->max_size * kMaxOutstanding > kMaxOutstandingOctets)
    max_outstanding = static_cast<int>(kMaxOutstandingOctets / options->max_size) + 1;
  mosquitto_lib_init();
  client = mosquitto_new(nullptr, true, nullptr);
  if (!client) return "mosquitto_new fails";
  if (is_tuned()) {
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, kTunedInflight);
  }
  mosquitto_connect_callback_set(client, on_connect);
  mosquitto_disconnect_callback_set(client, on_disconnect);
  mosquitto_subscribe_callback_set(client, on_subscribe);
  mosquitto_publish_callback_set(client, on_publish);
  mosquitto_message_callback_set(client, on_message);
  match_open(writes, reads, send_match);
  int code = mosquitto_connect(client, address, port, 60);
  if (code) return agent_text("cannot reach the broker %s: %s", options->broker,
                              mosquitto_strerror(code));
  if (threaded) mosquitto_loop_start(client);
  mosquitto_subscribe(client, nullptr, match_topic.c_str(), 1);
  if (reads) mosquitto_subscribe(client, nullptr, read_topic.c_str(), options->reliable ? 1 : 0);
  if (!wait_for(subscribed, reads ? 2 : 1)) return "the broker does not confirm a subscription";
  return nullptr;
}

void close_client() {
  mosquitto_disconnect(client);
  if (threaded) mosquitto_loop_stop(client, true);
}

enum agent_write write_sample(const void *data, size_t size) {
  if (outstanding >= max_outstanding) {
    step(0);
    return AGENT_REFUSED;
  }
  publish(written_topic, data, size, options->reliable ? 1 : 0);
  return AGENT_WRITTEN;
}

void wait_acknowledged(int64_t timeout_ns) {
  const uint64_t end_ns = agent_now_ns() + static_cast<uint64_t>(timeout_ns);
  while (outstanding > 0 && agent_now_ns() < end_ns && !agent_stopping) {
    step(1);
    if (threaded) agent_sleep_ns(1000000);
  }
}

void receive(agent_handler to, void *of, int64_t timeout_ns) {
  handler = to;
  context = of;
  handed = false;
  const uint64_t end_ns = agent_now_ns() + static_cast<uint64_t>(timeout_ns);
  do {
    const uint64_t now_ns = agent_now_ns();
    const uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
    step(static_cast<int>((left_ns + 999999) / 1000000));
  } while (!handed && agent_now_ns() < end_ns && !agent_stopping);
}

const char *listen(agent_handler to, void *of) {
  context = of;
  handler = to;
  return nullptr;
}

int readers() {
  step(0);
  return match_readers();
}

int writers() {
  step(0);
  return match_writers();
}

void *complex_new(const agent_complex *shape) {
  auto *sample = new Complex;
  std::string name(shape->name_length + 1, 0);
  for (uint32_t at = 0; at < shape->items; at++) {
    if (at % shape->items_of_group == 0) sample->emplace_back();
    agent_item_name(name.data(), at, shape->name_length);
    sample->back().push_back({name.c_str(), static_cast<int32_t>(at)});
  }
  return sample;
}

void complex_set_number(void *sample, int32_t number) {
  (*static_cast<Complex *>(sample))[0][0].number = number;
}

enum agent_write complex_write(const void *sample) {
  const std::string bytes = encode(*static_cast<const Complex *>(sample));
  return write_sample(bytes.data(), bytes.size());
}

// mosquitto.conf(5) advises the tuned settings: low latency, and no limit to what waits.
int serve(int argc, char **argv) {
  broker_options broker;
  broker_prepare(&broker, argc, argv);
  const std::string path = std::string(broker.directory) + "/mosquitto.conf";
  FILE *file = fopen(path.c_str(), "w");
  if (!file) agent_fail("cannot write %s", path.c_str());
  // As another user it would not end with the agent: the kernel clears PR_SET_PDEATHSIG on setuid.
  fprintf(file, "user root\nlistener %d %s\nallow_anonymous true\npersistence false\n", broker.port,
          broker.address);
  if (!strcmp(broker.transport, "tuned"))
    fputs("set_tcp_nodelay true\nmax_inflight_messages 0\nmax_queued_messages 0\n"
          "max_queued_bytes 268435456\nlog_type error\n", file);
  fclose(file);
  std::string program = access("/usr/sbin/mosquitto", X_OK) ? "mosquitto" : "/usr/sbin/mosquitto";
  std::string flag = "-c", config = path;
  char *command[] = {program.data(), flag.data(), config.data(), nullptr};
  return broker_run(&broker, command);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "broker")) return serve(argc, argv);
  int major, minor, revision;
  mosquitto_lib_version(&major, &minor, &revision);
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", major, minor, revision);
  agent_adapter adapter{};
  adapter.peer = "mqtt";
  adapter.version = version;
  adapter.transports = "default,tuned";
  adapter.notifies = "listener,waitset,poll";
  adapter.types = "octets,complex";
  adapter.deliveries = "unicast";
  adapter.check = check;
  adapter.open = open_client;
  adapter.close = close_client;
  adapter.matched_readers = readers;
  adapter.matched_writers = writers;
  adapter.write = write_sample;
  adapter.wait_acknowledged = wait_acknowledged;
  adapter.receive = receive;
  adapter.listen = listen;
  adapter.complex_new = complex_new;
  adapter.complex_set_number = complex_set_number;
  adapter.complex_write = complex_write;
  return agent_main(argc, argv, &adapter);
}
