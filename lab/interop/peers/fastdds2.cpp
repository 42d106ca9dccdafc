/* The peer program for eProsima Fast DDS 2.9. Debian packages no code generator for it, so the TopicDataType is written
 * by hand. INTEROP(Fast DDS 2.9.1): it never announces PID_DATA_REPRESENTATION, so every remote endpoint takes its own for
 * XCDR1 ones; it has no XCDR2 encoder either (Fast CDR 1.x). But it carries whatever bytes the type produces, with their
 * encapsulation header: XCDR2 is encoded here by hand, and a reader that goes by the header can take it. */
#include "peer.h"

#include <cstring>
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
using namespace eprosima::fastrtps::rtps;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using eprosima::fastrtps::types::ReturnCode_t;
using Duration = eprosima::fastrtps::Duration_t;

extern "C" {
const char *const adapter_name = "fastdds";
const char *const adapter_version = "2.9";
}

/* One sample on its way through Fast DDS: what is written points into the caller's memory, what is read owns it. */
struct Sample {
  struct sample view {};
  bool xcdr2 = false;
  std::string name;
  std::vector<uint8_t> payload;
};

namespace {

const ReturnCode_t OK = ReturnCode_t::RETCODE_OK;
constexpr uint32_t kEncapsulationLen = 4;
constexpr uint32_t kReceiveBuffer = 4u << 20;
constexpr uint32_t kUsualSample = 256; /* what histories allocate at first; larger ones grow */
enum : uint8_t { kCdrLe = 0x01, kCdr2Le = 0x07, kDelimitedCdr2Le = 0x09 };

/* Writes little-endian CDR; with no buffer it only counts. */
class Encoder {
 public:
  Encoder(uint8_t *buffer, bool xcdr2) : buffer_(buffer), max_alignment_(xcdr2 ? 4 : 8) {}
  uint32_t position() const { return at_; }
  void u8(uint8_t value) { put(&value, sizeof value, 1); }
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
  bool u8(uint8_t *value) { return get(value, sizeof *value, 1); }
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

std::string type_name(enum kind kind, bool appendable) {
  static const char *const stems[KINDS] = {"Unkeyed", "Key", "NameKey", "WideKey", "OctetKey", "SequenceKey"};
  return std::string("interop::") + stems[kind] + (appendable ? "Appendable" : "Final");
}

class Type : public TopicDataType {
 public:
  Type(enum kind kind, bool appendable) : kind_(kind), appendable_(appendable) {
    setName(type_name(kind, appendable).c_str());
    m_typeSize = kUsualSample;
    m_isGetKeyDefined = kind != UNKEYED;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
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
    if (!decode_key(&decoder, &sample.view.key)) return false;
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
    append_numbers(&key, sample.key);
    if (kind_ == NAME_KEY || kind_ == SEQUENCE_KEY || force_md5) {
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

  /* In XCDR1, as the code that the product's generator makes. */
  static void append_wide(std::vector<uint8_t> *to, uint64_t value) {
    to->resize((to->size() + 7) / 8 * 8);
    append_big_endian(to, static_cast<uint32_t>(value >> 32));
    append_big_endian(to, static_cast<uint32_t>(value));
  }

  void append_numbers(std::vector<uint8_t> *to, uint32_t key) const {
    if (kind_ == KEY || kind_ == NAME_KEY || kind_ == WIDE_KEY) append_big_endian(to, key);
    if (kind_ == OCTET_KEY) to->push_back(static_cast<uint8_t>(key));
    if (kind_ == WIDE_KEY || kind_ == OCTET_KEY) append_wide(to, wide_key(key));
    if (kind_ != SEQUENCE_KEY) return;
    append_big_endian(to, sequence_key_len(key));
    for (uint32_t i = 0; i < sequence_key_len(key); i++) append_wide(to, wide_key(key) + i);
  }

  void encode_key(Encoder *encoder, uint32_t key) const {
    if (kind_ == KEY || kind_ == NAME_KEY || kind_ == WIDE_KEY) encoder->u32(key);
    if (kind_ == OCTET_KEY) encoder->u8(static_cast<uint8_t>(key));
    if (kind_ == WIDE_KEY || kind_ == OCTET_KEY) encoder->u64(wide_key(key));
    if (kind_ != SEQUENCE_KEY) return;
    encoder->u32(sequence_key_len(key));
    for (uint32_t i = 0; i < sequence_key_len(key); i++) encoder->u64(wide_key(key) + i);
  }

  bool decode_key(Decoder *decoder, uint32_t *key) const {
    uint8_t small = 0;
    uint32_t len = 0;
    uint64_t wide = 0;
    bool fits = true;
    switch (kind_) {
      case UNKEYED: return true;
      case KEY:
      case NAME_KEY: return decoder->u32(key);
      case WIDE_KEY:
        if (!decoder->u32(key) || !decoder->u64(&wide)) return false;
        fits = wide == wide_key(*key);
        break;
      case OCTET_KEY:
        if (!decoder->u8(&small) || !decoder->u64(&wide)) return false;
        *key = small;
        fits = wide == wide_key(*key);
        break;
      case SEQUENCE_KEY:
        if (!decoder->u32(&len)) return false;
        for (uint32_t i = 0; i < len; i++) {
          if (!decoder->u64(&wide)) return false;
          if (i == 0) *key = static_cast<uint32_t>(wide / wide_key(1));
          fits = fits && wide == wide_key(*key) + i;
        }
        fits = fits && len == sequence_key_len(*key);
        break;
    }
    if (!fits) *key = WRONG_KEY;
    return true;
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
    encode_key(&encoder, sample.view.key);
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

TypeSupport make_type(enum kind kind, bool appendable) { return TypeSupport(new Type(kind, appendable)); }

}  // namespace

/* One sample in the form of Fast DDS: of a writer what is written next, of a reader what came last. */
class Data {
 public:
  explicit Data(const endpoint_spec &spec) { sample_.xcdr2 = spec.representation == XCDR2; }
  void *get() { return &sample_; }
  const struct sample &view() { return sample_.view; }
  void set(const struct sample &from) { sample_.view = from; }
  void set_key(const struct sample &from) { sample_.view = from; }

 private:
  Sample sample_;
};

namespace {

bool is_written(bool written) { return written; }

void offer(DataWriterQos *qos, const std::vector<DataRepresentationId_t> &these) { qos->representation().m_value = these; }
void accept(DataReaderQos *qos, const std::vector<DataRepresentationId_t> &these) {
  qos->type_consistency().representation.m_value = these;
}

/* Registers the members of the type, which filters need. */
void prepare_filter(enum kind kind, bool appendable) {
  using namespace eprosima::fastrtps::types;
  auto *types = DynamicTypeBuilderFactory::get_instance();
  const std::string name = type_name(kind, appendable);
  if (TypeObjectFactory::get_instance()->get_type_object(name, true)) return;
  DynamicTypeBuilder *structure = types->create_struct_builder();
  structure->set_name(name);
  MemberId next = 0;
  if (kind == NAME_KEY) structure->add_member(next++, "name", types->create_string_type());
  if (kind == KEY || kind == NAME_KEY) structure->add_member(next++, "id", types->create_uint32_type());
  structure->add_member(next++, "seq", types->create_uint64_type());
  structure->add_member(next++, "stamp_ns", types->create_int64_type());
  structure->add_member(next++, "payload", types->create_sequence_builder(types->create_byte_type(), BOUND_UNLIMITED)->build());
  TypeObject object;
  types->build_type_object(structure->build(), object, true, true);
  TypeIdentifier identifier;
  identifier._d(EK_COMPLETE);
  TypeObjectFactory::get_instance()->add_type_object(name, &identifier, &object);
}

}  // namespace

#include "fastdds.hpp"
