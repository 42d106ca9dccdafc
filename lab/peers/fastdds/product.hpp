// What differs between Fast DDS 2 and 3 (FASTDDS_3 defined): headers, names and the type plugin.
#ifndef TAKT_FASTDDS_PRODUCT_HPP
#define TAKT_FASTDDS_PRODUCT_HPP

#include <memory>

#include <fastcdr/Cdr.h>
#include <fastdds/dds/domain/qos/DomainParticipantQos.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>

#ifdef FASTDDS_3
#include <fastdds/rtps/attributes/BuiltinTransports.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.hpp>
#include <fastdds/utils/IPLocator.hpp>
#else
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>
#endif

using namespace eprosima::fastdds::dds;
using eprosima::fastdds::rtps::SharedMemTransportDescriptor;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;

#ifdef FASTDDS_3
using namespace eprosima::fastdds::rtps;
using Duration = eprosima::fastdds::dds::Duration_t;
constexpr ReturnCode_t kOk = RETCODE_OK;
constexpr const char *kVersion = "3.2.3";
constexpr const char *kTransports = "default,udp,tuned,udp-tuned,datasharing,large-data";
#else
using namespace eprosima::fastrtps::rtps;
using Duration = eprosima::fastrtps::Duration_t;
const ReturnCode_t kOk = ReturnCode_t::RETCODE_OK;
constexpr const char *kVersion = "2.9.1";
constexpr const char *kTransports = "default,udp,tuned,udp-tuned,datasharing";
#endif
using Payload = SerializedPayload_t;

#ifdef FASTDDS_3
inline eprosima::fastcdr::Cdr make_cdr(eprosima::fastcdr::FastBuffer &buffer) {
  using eprosima::fastcdr::Cdr;
  return Cdr(buffer, Cdr::LITTLE_ENDIANNESS, eprosima::fastcdr::CdrVersion::XCDRv1);
}
inline void put_octets(eprosima::fastcdr::Cdr &cdr, const uint8_t *octets, size_t count) {
  cdr.serialize_array(octets, count);
}
inline void get_octets(eprosima::fastcdr::Cdr &cdr, uint8_t *octets, size_t count) {
  cdr.deserialize_array(octets, count);
}
inline uint32_t encoded_length(const eprosima::fastcdr::Cdr &cdr) {
  return static_cast<uint32_t>(cdr.get_serialized_data_length());
}
inline bool is_written(ReturnCode_t code) { return code == kOk; }
#else
inline eprosima::fastcdr::Cdr make_cdr(eprosima::fastcdr::FastBuffer &buffer) {
  using eprosima::fastcdr::Cdr;
  return Cdr(buffer, Cdr::LITTLE_ENDIANNESS, Cdr::DDS_CDR);
}
inline void put_octets(eprosima::fastcdr::Cdr &cdr, const uint8_t *octets, size_t count) {
  cdr.serializeArray(octets, count);
}
inline void get_octets(eprosima::fastcdr::Cdr &cdr, uint8_t *octets, size_t count) {
  cdr.deserializeArray(octets, count);
}
inline uint32_t encoded_length(const eprosima::fastcdr::Cdr &cdr) {
  return static_cast<uint32_t>(cdr.getSerializedDataLength());
}
inline bool is_written(bool accepted) { return accepted; }
#endif

// A type without keys.
class TypeBase : public TopicDataType {
 protected:
  virtual bool encode_into(const void *data, Payload &payload) = 0;
  virtual bool decode_from(Payload &payload, void *data) = 0;
  virtual uint32_t size_of(const void *data) = 0;
  virtual void *make() = 0;
  virtual void destroy(void *data) = 0;
  virtual bool plain() const { return false; }

 public:
#ifdef FASTDDS_3
  TypeBase(const char *name, uint32_t size) {
    set_name(name);
    max_serialized_type_size = size;
    is_compute_key_provided = false;
  }
  bool serialize(const void *const data, Payload &payload, DataRepresentationId_t) override {
    return encode_into(data, payload);
  }
  bool deserialize(Payload &payload, void *data) override { return decode_from(payload, data); }
  uint32_t calculate_serialized_size(const void *const data, DataRepresentationId_t) override {
    return size_of(data);
  }
  void *create_data() override { return make(); }
  void delete_data(void *data) override { destroy(data); }
  bool compute_key(Payload &, InstanceHandle_t &, bool) override { return false; }
  bool compute_key(const void *const, InstanceHandle_t &, bool) override { return false; }
  bool is_plain(DataRepresentationId_t) const override { return plain(); }
#else
  TypeBase(const char *name, uint32_t size) {
    setName(name);
    m_typeSize = size;
    m_isGetKeyDefined = false;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void *data, Payload *payload) override { return encode_into(data, *payload); }
  bool deserialize(Payload *payload, void *data) override { return decode_from(*payload, data); }
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    return [this, data] { return size_of(data); };
  }
  void *createData() override { return make(); }
  void deleteData(void *data) override { destroy(data); }
  bool getKey(void *, InstanceHandle_t *, bool) override { return false; }
  bool is_plain() const override { return plain(); }
#endif
};

inline void set_heartbeat_period(DataWriterQos &qos, const Duration &period) {
#ifdef FASTDDS_3
  qos.reliable_writer_qos().times.heartbeat_period = period;
#else
  qos.reliable_writer_qos().times.heartbeatPeriod = period;
#endif
}

inline void use_large_data(DomainParticipantQos &qos) {
#ifdef FASTDDS_3
  qos.setup_transports(BuiltinTransports::LARGE_DATA);
#else
  (void)qos;
#endif
}

#endif
