// Agent for OpenDDS, classic C++ mapping. Discovery is that of RTPS; the transport is TCP, the
// default of the product, or rtps_udp, or shared memory.
#include <dds/DCPS/LocalObject.h>
#include <dds/DCPS/Marked_Default_Qos.h>
#include <dds/DCPS/Service_Participant.h>
#include <dds/DCPS/WaitSet.h>
#include <dds/DCPS/RTPS/RtpsDiscovery.h>
#include <dds/DCPS/transport/rtps_udp/RtpsUdp.h>
#include <dds/DCPS/transport/shmem/Shmem.h>
#include <dds/DCPS/transport/tcp/Tcp.h>

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "agent.h"
#include "benchTypeSupportImpl.h"

namespace {

const agent_options *options;
DDS::DomainParticipant_var participant;
DDS::DataWriter_var writer;
DDS::DataReader_var reader;
DDS::WaitSet_var waitset;
BlobDataWriter_var blob_writer;
BlobDataReader_var blob_reader;
ComplexDataWriter_var complex_writer;
ComplexDataReader_var complex_reader;

bool has_multicast(const char *name) {
  ifreq request{};
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  const int failed = ioctl(any, SIOCGIFFLAGS, &request);
  close(any);
  return !failed && (request.ifr_flags & IFF_MULTICAST);
}

bool is_transport(const agent_options *given, const char *name) {
  return !std::strcmp(given->transport, name);
}

const char *check(const agent_options *given) {
  if (!if_nametoindex(given->iface))
    return agent_text("iface=%s: no such interface", given->iface);
  if (given->loan) return "OpenDDS has no loans for its writers";
  if (given->delivery == AGENT_MULTICAST && !is_transport(given, "rtps"))
    return "delivery=multicast needs transport=rtps";
  if (given->delivery == AGENT_MULTICAST && !has_multicast(given->iface))
    return agent_text("delivery=multicast: iface=%s has no multicast", given->iface);
  if (is_transport(given, "shm") && given->peer) return "transport=shm does not leave the host";
  return nullptr;
}

// Without multicast, participants are found at the unicast ports of the first numbers (RTPS 9.6.1).
std::string unicast_peers() {
  std::string peers;
  for (const char *host : {options->addr, options->peer})
    for (int number = 0; host && number < 4; number++)
      peers += (peers.empty() ? "" : ",") + std::string(host) + ":" +
               std::to_string(7400 + 250 * options->domain + 10 + 2 * number);
  return peers;
}

std::string configuration() {
  const std::string addr = options->addr;
  std::string text = "[common]\nDCPSDefaultDiscovery=bench\nDCPSGlobalTransportConfig=bench\n"
                     "DCPSDefaultAddress=" + addr + "\n"
                     "[rtps_discovery/bench]\nResendPeriod=1\nSedpLocalAddress=" + addr + ":0\n"
                     "SpdpLocalAddress=" + addr + ":0\nMulticastInterface=" + options->iface + "\n";
  if (!has_multicast(options->iface) || options->peer)
    text += "SpdpSendAddrs=" + unicast_peers() + "\n";
  text += "SedpMulticast=0\n[config/bench]\ntransports=bench\n[transport/bench]\n";
  if (is_transport(options, "rtps"))
    text += "transport_type=rtps_udp\nuse_multicast=" +
            std::string(options->delivery == AGENT_MULTICAST ? "1" : "0") +
            "\nlocal_address=" + addr + ":0\nmulticast_interface=" + options->iface + "\n";
  else if (is_transport(options, "shm"))
    text += "transport_type=shmem\n";
  else
    text += "transport_type=tcp\nlocal_address=" + addr + ":0\n";
  return text;
}

// OpenDDS reads its configuration from a file.
const char *start_service() {
  char path[] = "/tmp/takt-opendds-XXXXXX";
  const int file = mkstemp(path);
  const std::string text = configuration();
  const bool written = file >= 0 && write(file, text.data(), text.size()) ==
                                        static_cast<ssize_t>(text.size());
  if (file >= 0) close(file);
  std::string program = "opendds", key = "-DCPSConfigFile";
  ACE_TCHAR *arguments[] = {program.data(), key.data(), path, nullptr};
  int count = 3;
  DDS::DomainParticipantFactory_var factory;
  if (written) factory = TheParticipantFactoryWithArgs(count, arguments);
  unlink(path);
  if (!written) return "cannot write the configuration of OpenDDS to /tmp";
  if (!factory) return "TheParticipantFactoryWithArgs fails";
  participant = factory->create_participant(options->domain, PARTICIPANT_QOS_DEFAULT, nullptr,
                                            OpenDDS::DCPS::DEFAULT_STATUS_MASK);
  return participant ? nullptr : "create_participant fails";
}

DDS::Topic_var create_topic(const char *name) {
  DDS::TypeSupport_var type;
  if (options->type == AGENT_COMPLEX)
    type = new ComplexTypeSupportImpl;
  else
    type = new BlobTypeSupportImpl;
  CORBA::String_var type_name = type->get_type_name();
  if (type->register_type(participant, type_name) != DDS::RETCODE_OK)
    agent_fail("register_type %s fails", type_name.in());
  DDS::Topic_var topic = participant->create_topic(name, type_name, TOPIC_QOS_DEFAULT, nullptr,
                                                   OpenDDS::DCPS::DEFAULT_STATUS_MASK);
  if (!topic) agent_fail("create_topic %s fails", name);
  return topic;
}

template <typename Qos>
void set_common(Qos &qos) {
  qos.reliability.kind =
      options->reliable ? DDS::RELIABLE_RELIABILITY_QOS : DDS::BEST_EFFORT_RELIABILITY_QOS;
  qos.reliability.max_blocking_time.sec = static_cast<CORBA::Long>(AGENT_BLOCKING_NS / 1000000000);
  qos.reliability.max_blocking_time.nanosec = 0;
  qos.durability.kind = DDS::VOLATILE_DURABILITY_QOS;
  qos.history.kind = options->depth ? DDS::KEEP_LAST_HISTORY_QOS : DDS::KEEP_ALL_HISTORY_QOS;
  if (options->depth) qos.history.depth = options->depth;
}

void create_writer(const char *name) {
  DDS::Topic_var topic = create_topic(name);
  DDS::Publisher_var publisher = participant->create_publisher(
      PUBLISHER_QOS_DEFAULT, nullptr, OpenDDS::DCPS::DEFAULT_STATUS_MASK);
  DDS::DataWriterQos qos;
  publisher->get_default_datawriter_qos(qos);
  set_common(qos);
  writer = publisher->create_datawriter(topic, qos, nullptr, OpenDDS::DCPS::DEFAULT_STATUS_MASK);
  if (!writer) agent_fail("create_datawriter %s fails", name);
  if (options->type == AGENT_COMPLEX)
    complex_writer = ComplexDataWriter::_narrow(writer);
  else
    blob_writer = BlobDataWriter::_narrow(writer);
}

void create_reader(const char *name) {
  DDS::Topic_var topic = create_topic(name);
  DDS::Subscriber_var subscriber = participant->create_subscriber(
      SUBSCRIBER_QOS_DEFAULT, nullptr, OpenDDS::DCPS::DEFAULT_STATUS_MASK);
  DDS::DataReaderQos qos;
  subscriber->get_default_datareader_qos(qos);
  set_common(qos);
  reader = subscriber->create_datareader(topic, qos, nullptr, OpenDDS::DCPS::DEFAULT_STATUS_MASK);
  if (!reader) agent_fail("create_datareader %s fails", name);
  if (options->type == AGENT_COMPLEX)
    complex_reader = ComplexDataReader::_narrow(reader);
  else
    blob_reader = BlobDataReader::_narrow(reader);
  waitset = new DDS::WaitSet;
  DDS::ReadCondition_var any = reader->create_readcondition(
      DDS::ANY_SAMPLE_STATE, DDS::ANY_VIEW_STATE, DDS::ANY_INSTANCE_STATE);
  waitset->attach_condition(any);
}

const char *open_endpoints(const agent_options *given, const char *writes, const char *reads) {
  options = given;
  const char *why = start_service();
  if (why) return why;
  if (writes) create_writer(writes);
  if (reads) create_reader(reads);
  return nullptr;
}

void close_all() {
  if (reader) reader->set_listener(nullptr, OpenDDS::DCPS::NO_STATUS_MASK);
  participant->delete_contained_entities();
  TheParticipantFactory->delete_participant(participant);
  TheServiceParticipant->shutdown();
}

int matched_readers() {
  DDS::PublicationMatchedStatus status;
  return writer->get_publication_matched_status(status) == DDS::RETCODE_OK ? status.current_count
                                                                           : 0;
}

int matched_writers() {
  DDS::SubscriptionMatchedStatus status;
  return reader->get_subscription_matched_status(status) == DDS::RETCODE_OK ? status.current_count
                                                                            : 0;
}

agent_write written(DDS::ReturnCode_t code) {
  if (code == DDS::RETCODE_OK) return AGENT_WRITTEN;
  if (code == DDS::RETCODE_TIMEOUT || code == DDS::RETCODE_OUT_OF_RESOURCES) return AGENT_REFUSED;
  agent_fail("DataWriter::write fails with %d", code);
}

agent_write write_sample(const void *data, size_t size) {
  Blob blob;
  const auto length = static_cast<CORBA::ULong>(size);
  blob.data.replace(length, length, static_cast<CORBA::Octet *>(const_cast<void *>(data)), false);
  return written(blob_writer->write(blob, DDS::HANDLE_NIL));
}

void wait_acknowledged(int64_t timeout_ns) {
  const DDS::Duration_t timeout = {static_cast<CORBA::Long>(timeout_ns / 1000000000),
                                   static_cast<CORBA::ULong>(timeout_ns % 1000000000)};
  writer->wait_for_acknowledgments(timeout);
}

template <typename Sequence, typename Reader, typename View>
void take_all(const Reader &from, agent_handler handler, void *context, View view) {
  Sequence samples;
  DDS::SampleInfoSeq infos;
  while (from->take(samples, infos, DDS::LENGTH_UNLIMITED, DDS::ANY_SAMPLE_STATE,
                    DDS::ANY_VIEW_STATE, DDS::ANY_INSTANCE_STATE) == DDS::RETCODE_OK) {
    for (CORBA::ULong at = 0; at < samples.length(); at++) {
      if (!infos[at].valid_data) continue;
      agent_message message{};
      view(message, samples[at]);
      handler(context, &message);
    }
    from->return_loan(samples, infos);
  }
}

void take(agent_handler handler, void *context) {
  if (options->type == AGENT_COMPLEX)
    take_all<ComplexSeq>(complex_reader, handler, context,
                         [](agent_message &message, const Complex &sample) {
                           message.complex_sample = &sample;
                           if (sample.groups.length() && sample.groups[0].items.length())
                             message.number = sample.groups[0].items[0].number;
                         });
  else
    take_all<BlobSeq>(blob_reader, handler, context, [](agent_message &message, const Blob &blob) {
      message.data = blob.data.get_buffer();
      message.size = blob.data.length();
    });
}

void receive(agent_handler handler, void *context, int64_t timeout_ns) {
  DDS::ConditionSeq active;
  const DDS::Duration_t timeout = {static_cast<CORBA::Long>(timeout_ns / 1000000000),
                                   static_cast<CORBA::ULong>(timeout_ns % 1000000000)};
  if (!timeout_ns || waitset->wait(active, timeout) == DDS::RETCODE_OK) take(handler, context);
}

class Listener : public virtual OpenDDS::DCPS::LocalObject<DDS::DataReaderListener> {
 public:
  agent_handler handler = nullptr;
  void *context = nullptr;
  void on_data_available(DDS::DataReader_ptr) override { take(handler, context); }
  void on_requested_deadline_missed(DDS::DataReader_ptr,
                                    const DDS::RequestedDeadlineMissedStatus &) override {}
  void on_requested_incompatible_qos(DDS::DataReader_ptr,
                                     const DDS::RequestedIncompatibleQosStatus &) override {}
  void on_sample_rejected(DDS::DataReader_ptr, const DDS::SampleRejectedStatus &) override {}
  void on_liveliness_changed(DDS::DataReader_ptr, const DDS::LivelinessChangedStatus &) override {}
  void on_subscription_matched(DDS::DataReader_ptr,
                               const DDS::SubscriptionMatchedStatus &) override {}
  void on_sample_lost(DDS::DataReader_ptr, const DDS::SampleLostStatus &) override {}
};

const char *listen_to(agent_handler handler, void *context) {
  auto *made = new Listener;
  made->handler = handler;
  made->context = context;
  DDS::DataReaderListener_var listener = made;
  return reader->set_listener(listener, DDS::DATA_AVAILABLE_STATUS) == DDS::RETCODE_OK
             ? nullptr
             : "DataReader::set_listener fails";
}

void *complex_new(const agent_complex *shape) {
  auto *sample = new Complex;
  const CORBA::ULong of_group = shape->items_of_group;
  sample->groups.length((shape->items + of_group - 1) / of_group);
  std::string name(shape->name_length, ' ');
  for (CORBA::ULong at = 0; at < shape->items; at++) {
    Items &items = sample->groups[at / of_group].items;
    items.length(at % of_group + 1);
    agent_item_name(name.data(), at, shape->name_length);
    items[at % of_group].name = name.c_str();
    items[at % of_group].number = static_cast<CORBA::Long>(at);
  }
  return sample;
}

void complex_set_number(void *sample, int32_t number) {
  static_cast<Complex *>(sample)->groups[0].items[0].number = number;
}

agent_write complex_write(const void *sample) {
  return written(complex_writer->write(*static_cast<const Complex *>(sample), DDS::HANDLE_NIL));
}

}  // namespace

int main(int argc, char **argv) {
  agent_adapter adapter{};
  adapter.peer = "opendds";
  adapter.version = VERSION;
  adapter.transports = "default,tcp,rtps,shm";
  adapter.notifies = "listener,waitset,poll";
  adapter.types = "octets,complex";
  adapter.deliveries = "unicast,multicast";
  adapter.check = check;
  adapter.open = open_endpoints;
  adapter.close = close_all;
  adapter.matched_readers = matched_readers;
  adapter.matched_writers = matched_writers;
  adapter.write = write_sample;
  adapter.wait_acknowledged = wait_acknowledged;
  adapter.receive = receive;
  adapter.listen = listen_to;
  adapter.complex_new = complex_new;
  adapter.complex_set_number = complex_set_number;
  adapter.complex_write = complex_write;
  return agent_main(argc, argv, &adapter);
}
