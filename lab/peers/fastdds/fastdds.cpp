// Agent for eProsima Fast DDS. One source for version 2 and, with FASTDDS_3 defined, version 3.
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <fastdds/dds/core/LoanableCollection.hpp>
#include <fastdds/dds/core/condition/StatusCondition.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>

#include "agent.h"
#include "types.hpp"

namespace {

constexpr uint32_t kBuffer = 4u << 20;            // of sockets, tuned
constexpr uint32_t kSegment = 16u << 20;          // of shared memory, tuned
constexpr uint32_t kMessage = 65500;              // largest message of both transports
constexpr size_t kHistoryBytes = size_t{256} << 20;
constexpr int32_t kDefaultSamples = 5000;         // RESOURCE_LIMITS of the product

const agent_options *options;
DomainParticipant *participant;
std::vector<DomainParticipant *> crowd;
std::vector<DataReader *> found_by;
DataWriter *writer;
DataReader *reader;
WaitSet waitset;

bool named(const agent_options *given, const char *name) {
  return !std::strcmp(given->transport, name);
}
bool data_sharing(const agent_options *given) { return named(given, "datasharing"); }
bool udp_only(const agent_options *given) {
  return named(given, "udp") || named(given, "udp-tuned");
}
bool tuned(const agent_options *given) {
  return named(given, "tuned") || named(given, "udp-tuned");
}

bool has_multicast(const char *name) {
  ifreq request{};
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  const int failed = ioctl(any, SIOCGIFFLAGS, &request);
  close(any);
  return !failed && (request.ifr_flags & IFF_MULTICAST);
}

const char *check(const agent_options *given) {
  if (!if_nametoindex(given->iface))
    return agent_text("iface=%s: no such interface", given->iface);
  if (given->delivery == AGENT_MULTICAST && !udp_only(given))
    return "delivery=multicast needs transport=udp or udp-tuned: others use shared memory";
  if (given->delivery == AGENT_MULTICAST && !has_multicast(given->iface))
    return agent_text("delivery=multicast: iface=%s has no multicast", given->iface);
  if (named(given, "large-data") && !has_multicast(given->iface))
    return agent_text("transport=large-data finds participants by multicast, iface=%s has none",
                      given->iface);
  if (given->loan && !data_sharing(given)) return "loan=1 needs transport=datasharing";
  if (data_sharing(given) && given->type == AGENT_COMPLEX)
    return "transport=datasharing and type=complex: data sharing needs a plain type";
  if (data_sharing(given) && given->security) return "transport=datasharing has no security";
  if (data_sharing(given) && given->peer) return "transport=datasharing does not leave the host";
  return nullptr;
}

void set_transports(DomainParticipantQos &qos) {
  auto &transport = qos.transport();
  if (named(options, "large-data")) use_large_data(qos);
  if (udp_only(options) || tuned(options)) {
    auto udp = std::make_shared<UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.emplace_back(options->addr);
    if (tuned(options)) {
      udp->sendBufferSize = udp->receiveBufferSize = kBuffer;
      udp->maxMessageSize = kMessage;
      transport.send_socket_buffer_size = transport.listen_socket_buffer_size = kBuffer;
    }
    transport.use_builtin_transports = false;
    transport.user_transports.push_back(udp);
    if (!udp_only(options)) {
      auto memory = std::make_shared<SharedMemTransportDescriptor>();
      memory->segment_size(kSegment);
      transport.user_transports.push_back(memory);
    }
  }
  if (has_multicast(options->iface) && !options->peer) return;
  // Without multicast, participants are found at the ports of well-known numbers.
  for (const char *host : {options->addr, options->peer}) {
    if (!host) continue;
    Locator_t at;
    IPLocator::setIPv4(at, host);
    qos.wire_protocol().builtin.initialPeersList.push_back(at);
  }
}

// 5000 samples of the largest size would not fit in memory.
int32_t history_samples() {
  const size_t fit = kHistoryBytes / options->max_size;
  return static_cast<int32_t>(std::clamp<size_t>(fit, 8, kDefaultSamples));
}

template <typename Qos>
void set_common(Qos &qos) {
  qos.reliability().kind =
      options->reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  qos.durability().kind =
      options->transient_local ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  qos.history().kind = options->depth ? KEEP_LAST_HISTORY_QOS : KEEP_ALL_HISTORY_QOS;
  if (options->depth) qos.history().depth = options->depth;
  if (const int32_t samples = history_samples(); samples < kDefaultSamples) {
    auto &limits = qos.resource_limits();
    limits.max_samples = limits.max_samples_per_instance = samples;
    limits.max_instances = 1;
    limits.allocated_samples = 0;
  }
  if (options->depth > 400) qos.resource_limits().max_samples_per_instance = options->depth;
  if (data_sharing(options))
    qos.data_sharing().automatic();
  else
    qos.endpoint().history_memory_policy = PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
}

// The topic, which a writer and a reader of one participant share.
Topic *create_topic(const char *name) {
  if (TopicDescription *known = participant->lookup_topicdescription(name))
    return static_cast<Topic *>(known);
  const uint32_t size = static_cast<uint32_t>(options->max_size);
  TypeSupport type(data_sharing(options) ? static_cast<TopicDataType *>(new ArrayType(size))
                   : options->type == AGENT_COMPLEX
                       ? static_cast<TopicDataType *>(new StructType<Complex>("Complex", 256))
                       : new StructType<Blob>("Blob", 256));
  type.register_type(participant);
  Topic *topic = participant->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT);
  if (!topic) agent_fail("create_topic %s fails", name);
  return topic;
}

void create_writer(const char *name) {
  DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
  set_common(qos);
  qos.reliability().max_blocking_time = Duration(AGENT_BLOCKING_NS / 1000000000, 0);
  // A sample above the largest message is sent as fragments, which the asynchronous mode needs.
  if (options->max_size + 256 > kMessage && !data_sharing(options))
    qos.publish_mode().kind = ASYNCHRONOUS_PUBLISH_MODE;
  if (tuned(options)) set_heartbeat_period(qos, Duration(0, 20000000));
  writer = participant->create_publisher(PUBLISHER_QOS_DEFAULT)
               ->create_datawriter(create_topic(name), qos);
  if (!writer) agent_fail("create_datawriter %s fails", name);
}

void create_reader(const char *name) {
  DataReaderQos qos = DATAREADER_QOS_DEFAULT;
  set_common(qos);
  if (options->delivery == AGENT_MULTICAST) {
    Locator_t group;
    IPLocator::setIPv4(group, "239.255.1.4");
    group.port = static_cast<uint32_t>(22222 + options->domain);
    qos.endpoint().multicast_locator_list.push_back(group);
  }
  reader = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT)
               ->create_datareader(create_topic(name), qos);
  if (!reader) agent_fail("create_datareader %s fails", name);
  reader->get_statuscondition().set_enabled_statuses(StatusMask::data_available());
  waitset.attach_condition(reader->get_statuscondition());
}

// The properties of DDS Security.
void set_security(DomainParticipantQos &qos) {
  const std::string files = std::string("file://") + options->security + "/";
  const std::string auth = "dds.sec.auth.builtin.PKI-DH.";
  const std::string access = "dds.sec.access.builtin.Access-Permissions.";
  const std::pair<std::string, std::string> properties[] = {
      {"dds.sec.auth.plugin", "builtin.PKI-DH"},
      {auth + "identity_ca", files + "identity_ca.cert.pem"},
      {auth + "identity_certificate", files + "cert.pem"},
      {auth + "private_key", files + "key.pem"},
      {"dds.sec.access.plugin", "builtin.Access-Permissions"},
      {access + "permissions_ca", files + "permissions_ca.cert.pem"},
      {access + "governance", files + "governance.p7s"},
      {access + "permissions", files + "permissions.p7s"},
      {"dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC"},
  };
  for (const auto &[name, value] : properties)
    qos.properties().properties().emplace_back(name, value);
}

const char *create_participant(const agent_options *given) {
  options = given;
  DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
  qos.name("takt-agent");
  set_transports(qos);
  if (options->security) set_security(qos);
  participant = DomainParticipantFactory::get_instance()->create_participant(
      static_cast<uint32_t>(options->domain), qos);
  return participant ? nullptr : "create_participant fails";
}

const char *join(const agent_options *given) {
  const char *why = create_participant(given);
  crowd.push_back(participant);
  return why;
}

const char *add_writer(int member, const char *topic) {
  participant = crowd[static_cast<size_t>(member)];
  create_writer(topic);
  return nullptr;
}

const char *add_reader(int member, const char *topic) {
  participant = crowd[static_cast<size_t>(member)];
  create_reader(topic);
  found_by.push_back(reader);
  return nullptr;
}

int found_writers() {
  int found = 0;
  for (DataReader *one : found_by) {
    SubscriptionMatchedStatus status;
    one->get_subscription_matched_status(status);
    found += status.current_count;
  }
  return found;
}

const char *open_endpoints(const agent_options *given, const char *writes, const char *reads) {
  if (const char *why = create_participant(given)) return why;
  if (writes) create_writer(writes);
  if (reads) create_reader(reads);
  return nullptr;
}

void close_all() {
  if (reader) reader->set_listener(nullptr);
  if (crowd.empty()) crowd.push_back(participant);
  for (DomainParticipant *one : crowd) {
    one->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(one);
  }
}

int matched_readers() {
  PublicationMatchedStatus status;
  writer->get_publication_matched_status(status);
  return status.current_count;
}

int matched_writers() {
  SubscriptionMatchedStatus status;
  reader->get_subscription_matched_status(status);
  return status.current_count;
}

// The API does not tell a full history from other failures.
agent_write written(bool accepted) { return accepted ? AGENT_WRITTEN : AGENT_REFUSED; }

agent_write write_sample(const void *data, size_t size) {
  if (data_sharing(options)) return written(is_written(writer->write(const_cast<void *>(data))));
  Blob blob;
  blob.data = static_cast<const uint8_t *>(data);
  blob.size = static_cast<uint32_t>(size);
  return written(is_written(writer->write(&blob)));
}

void *loan(size_t) {
  void *sample = nullptr;
  const auto code =
      writer->loan_sample(sample, DataWriter::LoanInitializationKind::NO_LOAN_INITIALIZATION);
  return code == kOk ? sample : nullptr;
}

agent_write write_loan(void *sample, size_t) {
  if (is_written(writer->write(sample))) return AGENT_WRITTEN;
  writer->discard_loan(sample);
  return AGENT_REFUSED;
}

void wait_acknowledged(int64_t timeout_ns) {
  writer->wait_for_acknowledgments(Duration(static_cast<int32_t>(timeout_ns / 1000000000),
                                            static_cast<uint32_t>(timeout_ns % 1000000000)));
}

// Samples in place, of a type whose size only the arguments know.
struct LoanedSamples : LoanableCollection {
  void resize(size_type) override {}
};

void take_loans(agent_handler handler, void *context) {
  LoanedSamples samples;
  SampleInfoSeq infos;
  while (reader->take(samples, infos) == kOk) {
    for (LoanableCollection::size_type at = 0; at < samples.length(); at++) {
      if (!infos[at].valid_data) continue;
      agent_message message{};
      message.data = samples.buffer()[at];
      message.size = options->max_size;
      handler(context, &message);
    }
    reader->return_loan(samples, infos);
  }
}

template <typename Sample, typename View>
void take_copies(agent_handler handler, void *context, View view) {
  static Sample sample;
  SampleInfo info;
  while (reader->take_next_sample(&sample, &info) == kOk) {
    if (!info.valid_data) continue;
    agent_message message{};
    view(message, sample);
    handler(context, &message);
  }
}

// The threads of two transports may deliver at once.
void take_all(agent_handler handler, void *context) {
  static std::recursive_mutex mutex;
  const std::lock_guard guard(mutex);
  if (data_sharing(options)) {
    take_loans(handler, context);
  } else if (options->type == AGENT_COMPLEX) {
    take_copies<Complex>(handler, context, [](agent_message &message, const Complex &sample) {
      message.complex_sample = &sample;
      if (!sample.groups.empty() && !sample.groups[0].items.empty())
        message.number = sample.groups[0].items[0].number;
    });
  } else {
    take_copies<Blob>(handler, context, [](agent_message &message, const Blob &blob) {
      message.data = blob.data;
      message.size = blob.size;
    });
  }
}

void receive(agent_handler handler, void *context, int64_t timeout_ns) {
  static ConditionSeq active;
  const Duration timeout(static_cast<int32_t>(timeout_ns / 1000000000),
                         static_cast<uint32_t>(timeout_ns % 1000000000));
  if (!timeout_ns || waitset.wait(active, timeout) == kOk) take_all(handler, context);
}

struct Listener : DataReaderListener {
  agent_handler handler = nullptr;
  void *context = nullptr;
  void on_data_available(DataReader *) override { take_all(handler, context); }
} listener;

const char *listen_to(agent_handler handler, void *context) {
  listener.handler = handler;
  listener.context = context;
  return reader->set_listener(&listener, StatusMask::data_available()) == kOk
             ? nullptr
             : "DataReader::set_listener fails";
}

void *complex_new(const agent_complex *shape) {
  auto *sample = new Complex;
  std::string name(shape->name_length, ' ');
  for (uint32_t at = 0; at < shape->items; at++) {
    if (at % shape->items_of_group == 0) sample->groups.emplace_back();
    agent_item_name(name.data(), at, shape->name_length);
    sample->groups.back().items.push_back({name, static_cast<int32_t>(at)});
  }
  return sample;
}

void complex_set_number(void *sample, int32_t number) {
  static_cast<Complex *>(sample)->groups[0].items[0].number = number;
}

agent_write complex_write(const void *sample) {
  return written(is_written(writer->write(const_cast<void *>(sample))));
}

}  // namespace

int main(int argc, char **argv) {
  agent_adapter adapter{};
  adapter.peer = "fastdds";
  adapter.version = kVersion;
  adapter.transports = kTransports;
  adapter.notifies = "listener,waitset,poll";
  adapter.types = "octets,complex";
  adapter.deliveries = "unicast,multicast";
  adapter.fixed_size = data_sharing;
  adapter.durable = true;
  adapter.secures = true;
  adapter.check = check;
  adapter.open = open_endpoints;
  adapter.close = close_all;
  adapter.matched_readers = matched_readers;
  adapter.matched_writers = matched_writers;
  adapter.write = write_sample;
  adapter.wait_acknowledged = wait_acknowledged;
  adapter.loan = loan;
  adapter.write_loan = write_loan;
  adapter.receive = receive;
  adapter.listen = listen_to;
  adapter.join = join;
  adapter.add_writer = add_writer;
  adapter.add_reader = add_reader;
  adapter.found_writers = found_writers;
  adapter.complex_new = complex_new;
  adapter.complex_set_number = complex_set_number;
  adapter.complex_write = complex_write;
  return agent_main(argc, argv, &adapter);
}
