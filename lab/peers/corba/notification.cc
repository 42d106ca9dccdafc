// Agent `corba-notification`: structured events by push through the Notification Service of JacORB;
// suppliers and consumers by omniORB.
#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "CosNotifyChannelAdmin.hh"
#include "agent.h"
#include "bench.hh"
#include "broker.h"
#include "match.h"

namespace {

using CosNotification::StructuredEvent;
using CosNotifyChannelAdmin::EventChannel_var;

// The service has a channel for each of these, with its index as number.
constexpr const char *kTopics[] = {"Ping", "Pong", "Data", MATCH_TOPIC};
// Events that wait for a consumer of a reliable topic.
constexpr CORBA::Long kMaxEvents = 100000;
constexpr uint64_t kStartNs = 20000000000;  // the service opens its port before its channels

const agent_options *options;
CORBA::ORB_var orb;
PortableServer::POA_var poa;
agent_handler handler;
void *context;

// A consumer of a channel. Threads of the ORB call it.
class Consumer : public POA_CosNotifyComm::StructuredPushConsumer {
 public:
  explicit Consumer(void (*take)(const CORBA::Any &)) : take_(take) {}
  void push_structured_event(const StructuredEvent &event) override {
    std::lock_guard lock(mutex_);
    take_(event.remainder_of_body);
  }
  void disconnect_structured_push_consumer() override {}
  void offer_change(const CosNotification::EventTypeSeq &,
                    const CosNotification::EventTypeSeq &) override {}

 private:
  std::mutex mutex_;
  void (*take_)(const CORBA::Any &);
};

// A supplier of a channel.
class Supplier {
 public:
  void connect(const EventChannel_var &channel, const char *topic) {
    const auto admin = CosNotifyChannelAdmin::SupplierAdmin_var(channel->default_supplier_admin());
    CosNotifyChannelAdmin::ProxyID id;
    const auto proxy = CosNotifyChannelAdmin::ProxyConsumer_var(
        admin->obtain_notification_push_consumer(CosNotifyChannelAdmin::STRUCTURED_EVENT, id));
    proxy_ = CosNotifyChannelAdmin::StructuredProxyPushConsumer::_narrow(proxy);
    proxy_->connect_structured_push_supplier(CosNotifyComm::StructuredPushSupplier::_nil());
    event_.header.fixed_header.event_type.domain_name = CORBA::string_dup("takt");
    event_.header.fixed_header.event_type.type_name = CORBA::string_dup(topic);
    event_.header.fixed_header.event_name = CORBA::string_dup("");
  }

  void disconnect() {
    if (!CORBA::is_nil(proxy_)) proxy_->disconnect_structured_push_consumer();
  }

  // The body is what was inserted into `body`. Two-way: returns once the channel has the event.
  CORBA::Any &body() { return event_.remainder_of_body; }
  enum agent_write push() {
    try {
      proxy_->push_structured_event(event_);
    } catch (const CORBA::IMP_LIMIT &) {
      return AGENT_REFUSED;  // RejectNewEvents: the queue of the channel is full
    }
    return AGENT_WRITTEN;
  }

 private:
  CosNotifyChannelAdmin::StructuredProxyPushConsumer_var proxy_;
  StructuredEvent event_;
};

Supplier supplier, match_supplier;
std::vector<CosNotifyChannelAdmin::StructuredProxyPushSupplier_var> consumed;
std::mutex match_mutex;

void take_sample(const CORBA::Any &body) {
  if (!handler || agent_stopping) return;
  if (options->type == AGENT_COMPLEX) {
    const Bench::Complex *sample;
    if (!(body >>= sample) || !sample->groups.length() || !sample->groups[0].items.length()) return;
    const agent_message message{nullptr, 0, sample, sample->groups[0].items[0].number};
    handler(context, &message);
    return;
  }
  const Bench::Octets *octets;
  if (!(body >>= octets)) return;
  const agent_message message{octets->get_buffer(), octets->length(), nullptr, 0};
  handler(context, &message);
}

void take_match(const CORBA::Any &body) {
  const char *text;
  if (body >>= text) match_receive(text, strlen(text));
}

void send_match(const char *text) {
  std::lock_guard lock(match_mutex);
  match_supplier.body() <<= text;
  match_supplier.push();
}

int channel_of(const char *topic) {
  int at = 0;
  while (strcmp(kTopics[at], topic)) at++;
  return at;
}

EventChannel_var find_channel(const char *topic) {
  const std::string url = "corbaloc::" + std::string(options->broker) + "/NotificationService";
  const uint64_t end_ns = agent_now_ns() + kStartNs;
  for (;;) {
    try {
      const CORBA::Object_var object = orb->string_to_object(url.c_str());
      const auto factory = CosNotifyChannelAdmin::EventChannelFactory_var(
          CosNotifyChannelAdmin::EventChannelFactory::_narrow(object));
      if (!CORBA::is_nil(factory)) return factory->get_event_channel(channel_of(topic));
    } catch (const CORBA::Exception &) {
      if (agent_stopping || agent_now_ns() > end_ns) throw;
    }
    agent_sleep_ns(50000000);
  }
}

void consume(const EventChannel_var &channel, void (*take)(const CORBA::Any &)) {
  const auto admin = CosNotifyChannelAdmin::ConsumerAdmin_var(channel->default_consumer_admin());
  CosNotifyChannelAdmin::ProxyID id;
  const auto proxy = CosNotifyChannelAdmin::ProxySupplier_var(
      admin->obtain_notification_push_supplier(CosNotifyChannelAdmin::STRUCTURED_EVENT, id));
  const auto structured = CosNotifyChannelAdmin::StructuredProxyPushSupplier_var(
      CosNotifyChannelAdmin::StructuredProxyPushSupplier::_narrow(proxy));
  if (options->reliable) {
    CosNotification::QoSProperties qos(1);
    qos.length(1);
    qos[0].name = CORBA::string_dup(CosNotification::MaxEventsPerConsumer);
    qos[0].value <<= kMaxEvents;  // JacORB discards beyond 100 by default
    structured->set_qos(qos);
  }
  auto *consumer = new Consumer(take);
  const PortableServer::ObjectId_var object = poa->activate_object(consumer);
  structured->connect_structured_push_consumer(
      CosNotifyComm::StructuredPushConsumer_var(consumer->_this()));
  consumed.push_back(structured);
}

const char *check(const agent_options *given) {
  const bool stream = !strcmp(given->role, "pub") || !strcmp(given->role, "sub");
  if (given->depth && (stream || given->period_ns))
    return "hist: a channel has no KEEP_LAST of a reader; a depth is for closed loops alone";
  char address[16];
  int port;
  return broker_parse(given->broker, address, &port);
}

const char *open_channels(const agent_options *given, const char *writes, const char *reads) {
  options = given;
  try {
    std::string endpoint = std::string("giop:tcp:") + options->addr + ":";
    std::string words[] = {"agent", "-ORBendPoint", endpoint, "-ORBgiopMaxMsgSize", "134217728"};
    char *argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                    words[4].data()};
    int argc = 5;
    orb = CORBA::ORB_init(argc, argv);
    const CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    poa = PortableServer::POA::_narrow(object);
    PortableServer::POAManager_var(poa->the_POAManager())->activate();
    match_open(writes, reads, send_match);
    const EventChannel_var match = find_channel(MATCH_TOPIC);
    match_supplier.connect(match, MATCH_TOPIC);
    if (writes) supplier.connect(find_channel(writes), writes);
    if (reads) consume(find_channel(reads), take_sample);
    consume(match, take_match);
  } catch (const CORBA::Exception &error) {
    return agent_text("Notification Service at %s: %s", options->broker, error._name());
  }
  return nullptr;
}

enum agent_write push_sample() {
  try {
    return supplier.push();
  } catch (const CORBA::Exception &error) {
    if (!agent_stopping) agent_fail("push_structured_event: %s", error._name());
  }
  return AGENT_REFUSED;
}

enum agent_write write_octets_of(const void *data, size_t size) {
  auto *octets = new Bench::Octets;
  octets->length(size);
  memcpy(octets->get_buffer(), data, size);
  supplier.body() <<= octets;  // takes it over
  return push_sample();
}

enum agent_write complex_write(const void *sample) {
  supplier.body() <<= *static_cast<const Bench::Complex *>(sample);
  return push_sample();
}

void *complex_new(const agent_complex *shape) {
  auto *sample = new Bench::Complex;
  std::string name(shape->name_length + 1, 0);
  const uint32_t of_group = shape->items_of_group;
  sample->groups.length((shape->items + of_group - 1) / of_group);
  for (uint32_t at = 0; at < shape->items; at++) {
    Bench::ItemSeq &items = sample->groups[at / of_group].items;
    items.length(at % of_group + 1);
    agent_item_name(name.data(), at, shape->name_length);
    items[at % of_group].name = CORBA::string_dup(name.c_str());
    items[at % of_group].number = static_cast<CORBA::Long>(at);
  }
  return sample;
}

void complex_set_number(void *sample, int32_t number) {
  static_cast<Bench::Complex *>(sample)->groups[0].items[0].number = number;
}

const char *listen(agent_handler to, void *of) {
  context = of;
  handler = to;
  return nullptr;
}

// Without this the service would go on trying to reach the consumers of this process.
void close_channels() {
  try {
    for (auto &proxy : consumed) proxy->disconnect_structured_push_supplier();
    supplier.disconnect();
    match_supplier.disconnect();
  } catch (const CORBA::Exception &) {
    // The service is gone.
  }
  _exit(0);  // the ORB may wait for a service that is gone
}

// The program NAME-service, beside this one, starts the service with the options of Java.
int serve(int argc, char **argv) {
  broker_options broker;
  broker_prepare(&broker, argc, argv);
  char self[PATH_MAX] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) agent_fail("no /proc/self/exe");
  std::string program = std::string(self) + "-service";
  std::string port = "-DOAPort=" + std::to_string(broker.port);
  std::string address = std::string("-DOAIAddr=") + broker.address;
  std::string directory = std::string("-Duser.dir=") + broker.directory;
  // JacORB Programming Guide, chapter "Notification Service".
  std::string start = "-Djacorb.notification.start_time_supported=off";
  std::string stop = "-Djacorb.notification.stop_time_supported=off";
  std::string threads = "-Djacorb.notification.proxysupplier.threadpolicy=ThreadPerProxy";
  char *command[] = {program.data(), port.data(), address.data(), directory.data(),
                     start.data(),   stop.data(), threads.data(), nullptr};
  if (strcmp(broker.transport, "tuned")) command[4] = nullptr;
  return broker_run(&broker, command);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "broker")) return serve(argc, argv);
  agent_adapter adapter{};
  adapter.peer = "corba-notification";
  const std::string version =
      std::string("omniORB ") + omniORB::versionString() + ", JacORB " JACORB_VERSION;
  adapter.version = version.c_str();
  adapter.transports = "default,tuned";
  adapter.notifies = "listener";
  adapter.types = "octets,complex";
  adapter.deliveries = "unicast";
  adapter.check = check;
  adapter.open = open_channels;
  adapter.close = close_channels;
  adapter.matched_readers = match_readers;
  adapter.matched_writers = match_writers;
  adapter.write = write_octets_of;
  adapter.listen = listen;
  adapter.complex_new = complex_new;
  adapter.complex_set_number = complex_set_number;
  adapter.complex_write = complex_write;
  return agent_main(argc, argv, &adapter);
}
