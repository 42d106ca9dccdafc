/* The peer program for eProsima Fast DDS 2.9. Debian packages no code generator for it, so the TopicDataType is written
 * by hand. INTEROP(Fast DDS 2.9.1): it never announces PID_DATA_REPRESENTATION, so every remote endpoint takes its own for
 * XCDR1 ones; it has no XCDR2 encoder either (Fast CDR 1.x). But it carries whatever bytes the type produces, with their
 * encapsulation header: XCDR2 is encoded here by hand, and a reader that goes by the header can take it. */
#include "peer.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/ContentFilteredTopic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/types/DynamicTypeBuilder.h>
#include <fastrtps/types/DynamicTypeBuilderFactory.h>
#include <fastrtps/types/TypeObjectFactory.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/utils/md5.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::types::ReturnCode_t;
using namespace eprosima::fastrtps::rtps;

extern "C" {
const char *const adapter_name = "fastdds";
const char *const adapter_version = "2.9";
}

namespace {

constexpr uint32_t kEncapsulationLen = 4;
constexpr uint32_t kReceiveBuffer = 4u << 20;
constexpr uint32_t kUsualSample = 256; /* what histories allocate at first; larger ones grow */
enum : uint8_t { kCdrLe = 0x01, kCdr2Le = 0x07, kDelimitedCdr2Le = 0x09 };

/* One sample on its way through Fast DDS: what is written points into the caller's memory, what is read owns it. */
struct Sample {
  struct sample view {};
  bool xcdr2 = false;
  std::string name;
  std::vector<uint8_t> payload;
};

/* Writes little-endian CDR; with no buffer it only counts. */
class Encoder {
 public:
  Encoder(uint8_t *buffer, bool xcdr2) : buffer_(buffer), max_alignment_(xcdr2 ? 4 : 8) {}
  uint32_t position() const { return at_; }
  void u32(uint32_t value) { put(&value, sizeof value, 4); }
  void u64(uint64_t value) { put(&value, sizeof value, 8); }
  void bytes(const void *from, uint32_t len) { put(from, len, 1); }

 private:
  void put(const void *from, uint32_t len, uint32_t alignment) {
    if (alignment > max_alignment_) alignment = max_alignment_;
    for (; at_ % alignment; at_++)
      if (buffer_) buffer_[at_] = 0;
    if (buffer_) memcpy(buffer_ + at_, from, len);
    at_ += len;
  }
  uint8_t *buffer_;
  uint32_t max_alignment_, at_ = 0;
};

class Decoder {
 public:
  Decoder(const uint8_t *buffer, uint32_t len, bool xcdr2) : buffer_(buffer), len_(len), max_alignment_(xcdr2 ? 4 : 8) {}
  bool u32(uint32_t *value) { return get(value, sizeof *value, 4); }
  bool u64(uint64_t *value) { return get(value, sizeof *value, 8); }
  bool bytes(const uint8_t **from, uint32_t len) {
    if (len > len_ - at_) return false;
    *from = buffer_ + at_;
    at_ += len;
    return true;
  }

 private:
  bool get(void *to, uint32_t len, uint32_t alignment) {
    if (alignment > max_alignment_) alignment = max_alignment_;
    uint32_t from = (at_ + alignment - 1) / alignment * alignment;
    if (from > len_ || len > len_ - from) return false;
    memcpy(to, buffer_ + from, len);
    at_ = from + len;
    return true;
  }
  const uint8_t *buffer_;
  uint32_t len_, max_alignment_, at_ = 0;
};

class Type : public TopicDataType {
 public:
  Type(enum kind kind, bool appendable) : kind_(kind), appendable_(appendable) {
    setName(type_name(kind, appendable).c_str());
    m_typeSize = kUsualSample;
    m_isGetKeyDefined = kind != UNKEYED;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }

  static std::string type_name(enum kind kind, bool appendable) {
    static const char *const stems[] = {"Unkeyed", "Key", "NameKey"};
    return std::string("interop::") + stems[kind] + (appendable ? "Appendable" : "Final");
  }

  bool serialize(void *data, SerializedPayload_t *out) override {
    const Sample &sample = *static_cast<Sample *>(data);
    const uint32_t len = encode(sample, nullptr), padding = (4 - len % 4) % 4;
    if (out->max_size < kEncapsulationLen + len + padding) return false;
    const bool delimited = sample.xcdr2 && appendable_;
    out->encapsulation = CDR_LE;
    out->data[0] = 0;
    out->data[1] = delimited ? kDelimitedCdr2Le : sample.xcdr2 ? kCdr2Le : kCdrLe;
    out->data[2] = 0;
    out->data[3] = static_cast<uint8_t>(padding);
    encode(sample, out->data + kEncapsulationLen);
    memset(out->data + kEncapsulationLen + len, 0, padding);
    out->length = kEncapsulationLen + len + padding;
    return true;
  }

  bool deserialize(SerializedPayload_t *in, void *data) override {
    Sample &sample = *static_cast<Sample *>(data);
    if (in->length < kEncapsulationLen || in->data[0] != 0) return false;
    const uint8_t encapsulation = in->data[1];
    if (encapsulation != kCdrLe && encapsulation != kCdr2Le && encapsulation != kDelimitedCdr2Le) return false;
    sample.xcdr2 = encapsulation != kCdrLe;
    Decoder decoder(in->data + kEncapsulationLen, in->length - kEncapsulationLen, sample.xcdr2);
    uint32_t delimiter = 0, len = 0;
    uint64_t stamp = 0;
    const uint8_t *bytes = nullptr;
    if (encapsulation == kDelimitedCdr2Le && !decoder.u32(&delimiter)) return false;
    if (kind_ == NAME_KEY) {
      if (!decoder.u32(&len) || len == 0 || !decoder.bytes(&bytes, len)) return false;
      sample.name.assign(reinterpret_cast<const char *>(bytes), len - 1);
      sample.view.name = sample.name.c_str();
    }
    if (kind_ != UNKEYED && !decoder.u32(&sample.view.key)) return false;
    if (!decoder.u64(&sample.view.seq) || !decoder.u64(&stamp) || !decoder.u32(&len) || !decoder.bytes(&bytes, len)) return false;
    sample.view.stamp_ns = static_cast<int64_t>(stamp);
    sample.payload.assign(bytes, bytes + len);
    sample.view.payload = sample.payload.data();
    sample.view.payload_len = len;
    return true;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    return [this, data] { return (kEncapsulationLen + encode(*static_cast<Sample *>(data), nullptr) + 3) / 4 * 4; };
  }
  void *createData() override { return new Sample; }
  void deleteData(void *data) override { delete static_cast<Sample *>(data); }

  /* The members of the key, big-endian; MD5 of them when the longest possible key exceeds 16 bytes. */
  bool getKey(void *data, InstanceHandle_t *handle, bool force_md5) override {
    if (kind_ == UNKEYED) return false;
    const struct sample &sample = static_cast<Sample *>(data)->view;
    std::vector<uint8_t> key;
    if (kind_ == NAME_KEY) {
      const size_t len = strlen(sample.name) + 1;
      append_big_endian(&key, static_cast<uint32_t>(len));
      key.insert(key.end(), sample.name, sample.name + len);
      key.resize((key.size() + 3) / 4 * 4);
    }
    append_big_endian(&key, sample.key);
    if (kind_ == NAME_KEY || force_md5) {
      MD5 md5;
      md5.init();
      md5.update(key.data(), static_cast<unsigned int>(key.size()));
      md5.finalize();
      key.assign(md5.digest, md5.digest + 16);
    }
    key.resize(16);
    for (size_t i = 0; i < 16; i++) handle->value[i] = key[i];
    return true;
  }

 private:
  static void append_big_endian(std::vector<uint8_t> *to, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) to->push_back(static_cast<uint8_t>(value >> shift));
  }

  uint32_t encode(const Sample &sample, uint8_t *buffer) const {
    Encoder encoder(buffer, sample.xcdr2);
    const bool delimited = sample.xcdr2 && appendable_;
    if (delimited) encoder.u32(0);
    if (kind_ == NAME_KEY) {
      const uint32_t len = static_cast<uint32_t>(strlen(sample.view.name)) + 1;
      encoder.u32(len);
      encoder.bytes(sample.view.name, len);
    }
    if (kind_ != UNKEYED) encoder.u32(sample.view.key);
    encoder.u64(sample.view.seq);
    encoder.u64(static_cast<uint64_t>(sample.view.stamp_ns));
    encoder.u32(sample.view.payload_len);
    encoder.bytes(sample.view.payload, sample.view.payload_len);
    if (delimited && buffer) {
      const uint32_t body = encoder.position() - 4;
      memcpy(buffer, &body, sizeof body);
    }
    return encoder.position();
  }

  enum kind kind_;
  bool appendable_;
};

DomainParticipant *participant;
Publisher *publisher;
Subscriber *subscriber;

}  // namespace

struct endpoint : public DataWriterListener, public DataReaderListener {
  std::string id;
  bool xcdr2 = false;
  bool on_demand = false;
  Topic *topic = nullptr;
  ContentFilteredTopic *filtered = nullptr;
  DataWriter *writer = nullptr;
  DataReader *reader = nullptr;
  std::mutex mutex; /* guards what follows: on_data_available may run in two threads at once */
  Sample incoming;
  std::map<InstanceHandle_t, std::pair<uint32_t, std::string>> keys; /* an invalid sample brings its handle only */

  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &status) override {
    report_matched(id.c_str(), status.current_count, status.total_count);
  }
  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &status) override {
    report_matched(id.c_str(), status.current_count, status.total_count);
  }
  void on_offered_incompatible_qos(DataWriter *, const OfferedIncompatibleQosStatus &status) override {
    report_incompatible(id.c_str(), static_cast<int>(status.last_policy_id), static_cast<int>(status.total_count));
  }
  void on_requested_incompatible_qos(DataReader *, const RequestedIncompatibleQosStatus &status) override {
    report_incompatible(id.c_str(), static_cast<int>(status.last_policy_id), static_cast<int>(status.total_count));
  }
  void on_offered_deadline_missed(DataWriter *, const OfferedDeadlineMissedStatus &status) override {
    report_deadline_missed(id.c_str(), static_cast<int>(status.total_count));
  }
  void on_requested_deadline_missed(DataReader *, const RequestedDeadlineMissedStatus &status) override {
    report_deadline_missed(id.c_str(), static_cast<int>(status.total_count));
  }
  void on_sample_lost(DataReader *, const SampleLostStatus &status) override { report_lost(id.c_str(), status.total_count); }
  void on_sample_rejected(DataReader *, const SampleRejectedStatus &status) override {
    report_rejected(id.c_str(), static_cast<int>(status.total_count));
  }

  void on_data_available(DataReader *from) override {
    if (!on_demand) take(from);
  }

  void take(DataReader *from) {
    std::lock_guard<std::mutex> guard(mutex);
    SampleInfo info;
    while (from->take_next_sample(&incoming, &info) == ReturnCode_t::RETCODE_OK) {
      const enum instance_state state = info.instance_state == ALIVE_INSTANCE_STATE                ? INSTANCE_ALIVE
                                        : info.instance_state == NOT_ALIVE_DISPOSED_INSTANCE_STATE ? INSTANCE_DISPOSED
                                                                                                   : INSTANCE_NO_WRITERS;
      const int64_t source_ns = info.source_timestamp.to_ns();
      if (info.valid_data) {
        keys[info.instance_handle] = {incoming.view.key, incoming.name};
        report_sample(id.c_str(), &incoming.view, true, true, state, source_ns);
      } else {
        const auto known = keys.find(info.instance_handle);
        struct sample key {};
        if (known != keys.end()) {
          key.key = known->second.first;
          key.name = known->second.second.empty() ? nullptr : known->second.second.c_str();
        }
        report_sample(id.c_str(), &key, false, known != keys.end(), state, source_ns);
      }
    }
  }
};

namespace {

/* The settings that DataWriterQos and DataReaderQos have in common. */
template <typename Qos>
void common_qos(Qos *qos, const endpoint_spec *spec) {
  qos->reliability().kind = spec->reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  qos->durability().kind = spec->durability == DURABILITY_TRANSIENT         ? TRANSIENT_DURABILITY_QOS
                           : spec->durability == DURABILITY_TRANSIENT_LOCAL ? TRANSIENT_LOCAL_DURABILITY_QOS
                                                                 : VOLATILE_DURABILITY_QOS;
  qos->history().kind = spec->history_depth ? KEEP_LAST_HISTORY_QOS : KEEP_ALL_HISTORY_QOS;
  if (spec->history_depth) qos->history().depth = spec->history_depth;
  qos->resource_limits().max_samples = 0; /* no limit; the default is 5000 of at most 10 instances */
  qos->resource_limits().max_instances = 0;
  qos->resource_limits().max_samples_per_instance = 0;
  if (spec->deadline_ms) qos->deadline().period = Duration_t(spec->deadline_ms / 1000.0);
  if (spec->lease_ms) qos->liveliness().lease_duration = Duration_t(spec->lease_ms / 1000.0);
  if (spec->strength >= 0) qos->ownership().kind = EXCLUSIVE_OWNERSHIP_QOS;
}

std::vector<DataRepresentationId_t> representations(const endpoint_spec *spec) {
  switch (spec->representation) {
    case XCDR1: return {XCDR_DATA_REPRESENTATION};
    case XCDR2: return {XCDR2_DATA_REPRESENTATION};
    default: return {XCDR_DATA_REPRESENTATION, XCDR2_DATA_REPRESENTATION};
  }
}

const char *create_writer(const endpoint_spec *spec, endpoint *endpoint) {
  DataWriterQos qos = publisher->get_default_datawriter_qos();
  common_qos(&qos, spec);
  qos.reliability().max_blocking_time = Duration_t(spec->block_ms / 1000.0);
  qos.representation().m_value = representations(spec);
  qos.writer_data_lifecycle().autodispose_unregistered_instances = spec->autodispose;
  if (spec->lifespan_ms) qos.lifespan().duration = Duration_t(spec->lifespan_ms / 1000.0);
  if (spec->lease_ms) qos.liveliness().announcement_period = Duration_t(spec->lease_ms / 3000.0);
  if (spec->strength >= 0) qos.ownership_strength().value = static_cast<uint32_t>(spec->strength);
  qos.publish_mode().kind = ASYNCHRONOUS_PUBLISH_MODE; /* fragments are refused otherwise */
  endpoint->writer = publisher->create_datawriter(endpoint->topic, qos, endpoint, StatusMask::all());
  return endpoint->writer ? nullptr : "create_datawriter failed";
}

/* Has Fast DDS know the members, which its filters need. */
void describe(enum kind kind, bool appendable) {
  using namespace eprosima::fastrtps::types;
  auto *types = DynamicTypeBuilderFactory::get_instance();
  const std::string name = Type::type_name(kind, appendable);
  if (TypeObjectFactory::get_instance()->get_type_object(name, true)) return;
  DynamicTypeBuilder *structure = types->create_struct_builder();
  structure->set_name(name);
  MemberId next = 0;
  if (kind == NAME_KEY) structure->add_member(next++, "name", types->create_string_type());
  if (kind != UNKEYED) structure->add_member(next++, "id", types->create_uint32_type());
  structure->add_member(next++, "seq", types->create_uint64_type());
  structure->add_member(next++, "stamp_ns", types->create_int64_type());
  structure->add_member(next++, "payload", types->create_sequence_builder(types->create_byte_type(), BOUND_UNLIMITED)->build());
  TypeObject object;
  types->build_type_object(structure->build(), object, true, true);
  TypeIdentifier identifier;
  identifier._d(EK_COMPLETE);
  TypeObjectFactory::get_instance()->add_type_object(name, &identifier, &object);
}

const char *create_reader(const endpoint_spec *spec, endpoint *endpoint) {
  DataReaderQos qos = subscriber->get_default_datareader_qos();
  common_qos(&qos, spec);
  qos.type_consistency().representation.m_value = representations(spec);
  TopicDescription *topic = endpoint->topic;
  if (spec->filter_below) {
    describe(spec->kind, spec->appendable);
    endpoint->filtered = participant->create_contentfilteredtopic(std::string(spec->id) + "_filtered", endpoint->topic, "seq < %0",
                                                                  {std::to_string(spec->filter_below)});
    if (!endpoint->filtered) return "create_contentfilteredtopic failed";
    topic = endpoint->filtered;
  }
  endpoint->reader = subscriber->create_datareader(topic, qos, endpoint, StatusMask::all());
  return endpoint->reader ? nullptr : "create_datareader failed";
}

const char *end_instance(endpoint *endpoint, const struct sample *key, bool dispose) {
  Sample sample;
  sample.view = *key;
  sample.xcdr2 = endpoint->xcdr2;
  const ReturnCode_t code = dispose ? endpoint->writer->dispose(&sample, HANDLE_NIL)
                                    : endpoint->writer->unregister_instance(&sample, HANDLE_NIL);
  return code == ReturnCode_t::RETCODE_OK ? nullptr : dispose ? "dispose failed" : "unregister_instance failed";
}

}  // namespace

extern "C" {

const char *adapter_open(const struct options *options) {
  auto log = std::make_unique<StdoutErrConsumer>(); /* standard output belongs to the line protocol */
  log->stderr_threshold(Log::Kind::Info);
  Log::ClearConsumers();
  Log::RegisterConsumer(std::move(log));
  DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
  qos.name("takt-interop");
  /* As much as the kernel allows: best-effort samples of 4 MB are lost in what it gives by default. */
  qos.transport().listen_socket_buffer_size = kReceiveBuffer;
  if (*options->peer || options->max_message_bytes) {
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    if (*options->address) udp->interfaceWhiteList.push_back(options->address);
    if (options->max_message_bytes) udp->maxMessageSize = options->max_message_bytes;
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(udp);
  }
  if (*options->peer) {
    Locator_t peer;
    IPLocator::setIPv4(peer, options->peer);
    qos.wire_protocol().builtin.initialPeersList.push_back(peer);
  }
  participant = DomainParticipantFactory::get_instance()->create_participant(options->domain, qos);
  if (!participant) return "create_participant failed";
  publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  for (enum kind kind : {UNKEYED, KEY, NAME_KEY})
    for (bool appendable : {false, true}) TypeSupport(new Type(kind, appendable)).register_type(participant);
  return publisher && subscriber ? nullptr : "create_publisher or create_subscriber failed";
}

void adapter_close(void) {
  participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant);
}

const char *adapter_create(bool writer, const struct endpoint_spec *spec, struct endpoint **created) {
  auto made = std::make_unique<endpoint>();
  made->id = spec->id;
  made->on_demand = spec->on_demand;
  made->xcdr2 = spec->representation == XCDR2;
  made->topic = participant->create_topic(spec->topic, Type::type_name(spec->kind, spec->appendable), TOPIC_QOS_DEFAULT);
  if (!made->topic) return "create_topic failed";
  const char *why = writer ? create_writer(spec, made.get()) : create_reader(spec, made.get());
  if (!why) *created = made.release();
  return why;
}

void adapter_take(struct endpoint *endpoint) { endpoint->take(endpoint->reader); }

void adapter_delete(struct endpoint *endpoint) {
  if (endpoint->writer) publisher->delete_datawriter(endpoint->writer);
  if (endpoint->reader) subscriber->delete_datareader(endpoint->reader);
  if (endpoint->filtered) participant->delete_contentfilteredtopic(endpoint->filtered);
  participant->delete_topic(endpoint->topic);
  delete endpoint;
}

const char *adapter_write(struct endpoint *endpoint, const struct sample *from) {
  Sample sample;
  sample.view = *from;
  sample.xcdr2 = endpoint->xcdr2;
  return endpoint->writer->write(&sample) ? nullptr : "write failed";
}
const char *adapter_dispose(struct endpoint *endpoint, const struct sample *key) { return end_instance(endpoint, key, true); }
const char *adapter_unregister(struct endpoint *endpoint, const struct sample *key) { return end_instance(endpoint, key, false); }

const char *adapter_wait_acknowledged(struct endpoint *endpoint, int timeout_ms) {
  const ReturnCode_t code = endpoint->writer->wait_for_acknowledgments(Duration_t(timeout_ms / 1000.0));
  return code == ReturnCode_t::RETCODE_OK ? nullptr : "not acknowledged in time";
}
}
