/* The peer program for eProsima Fast DDS 3, as its own documentation would have it: the types are made at run time, so that the
 * product itself encodes, computes keys and announces types. Built-in transports, type propagation and the size of
 * datagrams are the product's defaults. */
#include "peer.h"

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
#include <fastdds/dds/xtypes/dynamic_types/DynamicData.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicDataFactory.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicPubSubType.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicTypeBuilder.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicTypeBuilderFactory.hpp>
#include <fastdds/dds/xtypes/dynamic_types/MemberDescriptor.hpp>
#include <fastdds/dds/xtypes/dynamic_types/TypeDescriptor.hpp>
#include <fastdds/dds/xtypes/type_representation/ITypeObjectRegistry.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/utils/IPLocator.hpp>

using namespace eprosima::fastdds::dds;
using namespace eprosima::fastdds::rtps;
using Duration = eprosima::fastdds::dds::Duration_t;

extern "C" {
const char *const adapter_name = "fastdds";
const char *const adapter_version = "3.2";
}

namespace {

const ReturnCode_t OK = RETCODE_OK;
constexpr uint32_t kReceiveBuffer = 4u << 20;

std::string type_name(enum kind kind, bool appendable) {
  static const char *const stems[KINDS] = {"Unkeyed", "Key", "NameKey", "WideKey", "OctetKey", "SequenceKey"};
  return std::string("interop::") + stems[kind] + (appendable ? "Appendable" : "Final");
}

/* Adds members in the order of their declaration; the id of a member is its index. */
class Structure {
 public:
  explicit Structure(const std::string &name, bool appendable) {
    auto description = traits<TypeDescriptor>::make_shared();
    description->kind(TK_STRUCTURE);
    description->name(name);
    description->extensibility_kind(appendable ? ExtensibilityKind::APPENDABLE : ExtensibilityKind::FINAL);
    builder_ = factory()->create_type(description);
  }
  static traits<DynamicTypeBuilderFactory>::ref_type factory() { return DynamicTypeBuilderFactory::get_instance(); }
  void add(const char *name, traits<DynamicType>::ref_type type, bool is_key = false) {
    auto member = traits<MemberDescriptor>::make_shared();
    member->name(name);
    member->type(type);
    member->is_key(is_key);
    builder_->add_member(member);
  }
  void add(const char *name, TypeKind kind, bool is_key = false) { add(name, factory()->get_primitive_type(kind), is_key); }
  traits<DynamicType>::ref_type build() { return builder_->build(); }

 private:
  traits<DynamicTypeBuilder>::ref_type builder_;
};

traits<DynamicType>::ref_type dynamic_type(enum kind kind, bool appendable) {
  constexpr auto kUnbounded = static_cast<uint32_t>(LENGTH_UNLIMITED);
  Structure structure(type_name(kind, appendable), appendable);
  if (kind == NAME_KEY) structure.add("name", Structure::factory()->create_string_type(kUnbounded)->build(), true);
  if (kind == KEY || kind == NAME_KEY || kind == WIDE_KEY) structure.add("id", TK_UINT32, true);
  if (kind == OCTET_KEY) structure.add("small", TK_BYTE, true);
  if (kind == WIDE_KEY) structure.add("wide", TK_UINT64, true);
  if (kind == OCTET_KEY) structure.add("wide", TK_INT64, true);
  if (kind == SEQUENCE_KEY) {
    const auto element = Structure::factory()->get_primitive_type(TK_UINT64);
    structure.add("parts", Structure::factory()->create_sequence_type(element, kUnbounded)->build(), true);
  }
  structure.add("seq", TK_UINT64);
  structure.add("stamp_ns", TK_INT64);
  const auto octet = Structure::factory()->get_primitive_type(TK_BYTE);
  structure.add("payload", Structure::factory()->create_sequence_type(octet, kUnbounded)->build());
  return structure.build();
}

TypeSupport make_type(enum kind kind, bool appendable) {
  return TypeSupport(new DynamicPubSubType(dynamic_type(kind, appendable)));
}

}  // namespace

/* One sample in the form of Fast DDS: of a writer what is written next, of a reader what came last. */
class Data {
 public:
  explicit Data(const endpoint_spec &spec)
      : kind_(spec.kind), data_(DynamicDataFactory::get_instance()->create_data(dynamic_type(spec.kind, spec.appendable))) {}
  ~Data() { DynamicDataFactory::get_instance()->delete_data(data_); }
  Data(const Data &) = delete;
  Data &operator=(const Data &) = delete;

  void *get() { return &data_; }
  const struct sample &view() {
    if (kind_ == NAME_KEY) data_->get_string_value(name_, id("name"));
    view_.key = key();
    data_->get_uint64_value(view_.seq, id("seq"));
    data_->get_int64_value(view_.stamp_ns, id("stamp_ns"));
    payload_.clear();
    data_->get_byte_values(payload_, id("payload"));
    view_.name = kind_ == NAME_KEY ? name_.c_str() : nullptr;
    view_.payload = payload_.data();
    view_.payload_len = static_cast<uint32_t>(payload_.size());
    return view_;
  }
  void set(const struct sample &from) {
    set_key(from);
    data_->set_uint64_value(id("seq"), from.seq);
    data_->set_int64_value(id("stamp_ns"), from.stamp_ns);
    payload_.assign(from.payload, from.payload + from.payload_len);
    data_->set_byte_values(id("payload"), payload_);
  }
  void set_key(const struct sample &from) {
    if (kind_ == NAME_KEY) data_->set_string_value(id("name"), from.name);
    if (kind_ == KEY || kind_ == NAME_KEY || kind_ == WIDE_KEY) data_->set_uint32_value(id("id"), from.key);
    if (kind_ == OCTET_KEY) data_->set_byte_value(id("small"), static_cast<uint8_t>(from.key));
    if (kind_ == WIDE_KEY) data_->set_uint64_value(id("wide"), wide_key(from.key));
    if (kind_ == OCTET_KEY) data_->set_int64_value(id("wide"), static_cast<int64_t>(wide_key(from.key)));
    if (kind_ == SEQUENCE_KEY) data_->set_uint64_values(id("parts"), sequence_key(from.key));
  }

 private:
  uint32_t key() {
    uint32_t key = 0;
    uint64_t wide = 0;
    int64_t signed_wide = 0;
    uint8_t small = 0;
    UInt64Seq parts;
    switch (kind_) {
      case UNKEYED: return 0;
      case KEY:
      case NAME_KEY: data_->get_uint32_value(key, id("id")); return key;
      case WIDE_KEY:
        data_->get_uint32_value(key, id("id"));
        data_->get_uint64_value(wide, id("wide"));
        return wide == wide_key(key) ? key : WRONG_KEY;
      case OCTET_KEY:
        data_->get_byte_value(small, id("small"));
        data_->get_int64_value(signed_wide, id("wide"));
        return static_cast<uint64_t>(signed_wide) == wide_key(small) ? small : WRONG_KEY;
      case SEQUENCE_KEY:
        data_->get_uint64_values(parts, id("parts"));
        key = parts.empty() ? WRONG_KEY : static_cast<uint32_t>(parts[0] / wide_key(1));
        return parts == sequence_key(key) ? key : WRONG_KEY;
    }
    return WRONG_KEY;
  }
  static UInt64Seq sequence_key(uint32_t key) {
    UInt64Seq parts;
    for (uint32_t i = 0; i < sequence_key_len(key); i++) parts.push_back(wide_key(key) + i);
    return parts;
  }
  MemberId id(const char *name) { return data_->get_member_id_by_name(name); }

  enum kind kind_;
  traits<DynamicData>::ref_type data_;
  struct sample view_ {};
  std::string name_;
  ByteSeq payload_;
};

namespace {

bool is_written(ReturnCode_t code) { return code == OK; }

void offer(DataWriterQos *qos, const std::vector<DataRepresentationId_t> &these) { qos->representation().m_value = these; }
void accept(DataReaderQos *qos, const std::vector<DataRepresentationId_t> &these) { qos->representation().m_value = these; }

/* INTEROP(Fast DDS 3.2.2): a filter looks its type up by name, and the registry has no names of types made at run time. */
void prepare_filter(enum kind kind, bool appendable) {
  auto &registry = DomainParticipantFactory::get_instance()->type_object_registry();
  const std::string name = type_name(kind, appendable);
  TypeSupport type = make_type(kind, appendable);
  type->register_type_object_representation();
  xtypes::TypeIdentifierPair identifiers = type->type_identifiers(), named;
  for (const auto &identifier : {identifiers.type_identifier1(), identifiers.type_identifier2()}) {
    xtypes::TypeObject object;
    const bool complete = identifier._d() == xtypes::EK_COMPLETE;
    if (complete && registry.get_type_object(identifier, object) == OK) registry.register_type_object(name, object.complete(), named);
  }
}

}  // namespace

#include "fastdds.hpp"
