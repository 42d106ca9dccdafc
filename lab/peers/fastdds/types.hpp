// The types of the agent contract for Fast DDS 2 and 3. Neither comes with its generator as a
// package, so the plugins are written by hand, with the encoder of the product (Fast CDR).
#ifndef TAKT_FASTDDS_TYPES_HPP
#define TAKT_FASTDDS_TYPES_HPP

#include <cstring>
#include <string>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastcdr/exceptions/BadParamException.h>
#include <fastdds/dds/topic/TopicDataType.hpp>

#include "product.hpp"

// A sequence of octets: the writer points to the payload, the reader owns what it received.
struct Blob {
  const uint8_t *data = nullptr;
  uint32_t size = 0;
  std::vector<uint8_t> storage;
};

struct Item {
  std::string name;
  int32_t number = 0;
};
struct Group {
  std::vector<Item> items;
};
struct Complex {
  std::vector<Group> groups;
};

using Cdr = eprosima::fastcdr::Cdr;

constexpr uint32_t kEncapsulation = 4;

inline uint32_t encoded_size(const Blob &blob) { return kEncapsulation + 4 + blob.size; }

inline uint32_t encoded_size(const Complex &sample) {
  uint32_t size = kEncapsulation + 4;
  for (const Group &group : sample.groups) {
    size += 4;
    for (const Item &item : group.items)
      size += 4 + (static_cast<uint32_t>(item.name.size()) + 1 + 3) / 4 * 4 + 4;
  }
  return size;
}

inline void encode(Cdr &cdr, const Blob &blob) {
  cdr << blob.size;
  put_octets(cdr, blob.data, blob.size);
}

inline void decode(Cdr &cdr, Blob &blob, uint32_t limit) {
  cdr >> blob.size;
  if (blob.size > limit) throw eprosima::fastcdr::exception::BadParamException("length");
  if (blob.storage.size() < blob.size) blob.storage.resize(blob.size);
  get_octets(cdr, blob.storage.data(), blob.size);
  blob.data = blob.storage.data();
}

inline void encode(Cdr &cdr, const Complex &sample) {
  cdr << static_cast<uint32_t>(sample.groups.size());
  for (const Group &group : sample.groups) {
    cdr << static_cast<uint32_t>(group.items.size());
    for (const Item &item : group.items) cdr << item.name << item.number;
  }
}

inline uint32_t decode_count(Cdr &cdr, uint32_t limit) {
  uint32_t count = 0;
  cdr >> count;
  if (count > limit) throw eprosima::fastcdr::exception::BadParamException("length");
  return count;
}

inline void decode(Cdr &cdr, Complex &sample, uint32_t limit) {
  sample.groups.resize(decode_count(cdr, limit));
  for (Group &group : sample.groups) {
    group.items.resize(decode_count(cdr, limit));
    for (Item &item : group.items) cdr >> item.name >> item.number;
  }
}

// What differs between the products is in TypeBase; these functions are alike.
template <typename Sample>
class StructType : public TypeBase {
 public:
  StructType(const char *name, uint32_t size) : TypeBase(name, size) {}

 protected:
  bool encode_into(const void *data, Payload &payload) override {
    const Sample &sample = *static_cast<const Sample *>(data);
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(payload.data), payload.max_size);
    try {
      auto cdr = make_cdr(buffer);
      cdr.serialize_encapsulation();
      encode(cdr, sample);
      payload.encapsulation = CDR_LE;
      payload.length = encoded_length(cdr);
      return true;
    } catch (const eprosima::fastcdr::exception::Exception &) {
      return false;
    }
  }
  bool decode_from(Payload &payload, void *data) override {
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(payload.data), payload.length);
    try {
      auto cdr = make_cdr(buffer);
      cdr.read_encapsulation();
      decode(cdr, *static_cast<Sample *>(data), payload.length);
      return true;
    } catch (const eprosima::fastcdr::exception::Exception &) {
      return false;
    }
  }
  uint32_t size_of(const void *data) override {
    return encoded_size(*static_cast<const Sample *>(data));
  }
  void *make() override { return new Sample; }
  void destroy(void *data) override { delete static_cast<Sample *>(data); }
};

// octet[size]: its memory is its encoding, so that data sharing and loans apply.
class ArrayType : public TypeBase {
 public:
  explicit ArrayType(uint32_t size) : TypeBase("Octets", size + kEncapsulation), size_(size) {}
  bool is_bounded() const override { return true; }
  bool construct_sample(void *) const override { return true; }

 protected:
  bool encode_into(const void *data, Payload &payload) override {
    const uint8_t header[kEncapsulation] = {0, 1, 0, 0};
    if (payload.max_size < size_ + kEncapsulation) return false;
    std::memcpy(payload.data, header, sizeof header);
    std::memcpy(payload.data + kEncapsulation, data, size_);
    payload.encapsulation = CDR_LE;
    payload.length = size_ + kEncapsulation;
    return true;
  }
  bool decode_from(Payload &payload, void *data) override {
    if (payload.length < size_ + kEncapsulation) return false;
    std::memcpy(data, payload.data + kEncapsulation, size_);
    return true;
  }
  uint32_t size_of(const void *) override { return size_ + kEncapsulation; }
  void *make() override { return new uint8_t[size_]; }
  void destroy(void *data) override { delete[] static_cast<uint8_t *>(data); }
  bool plain() const override { return true; }

 private:
  uint32_t size_;
};

#endif
