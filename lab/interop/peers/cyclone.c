/* The peer program for Eclipse Cyclone DDS (C API). Built twice from one source: against Debian's libddsc 0.10, and,
 * with CYCLONE_11 defined, against the libddsc 11 that the PyPI wheel `cyclonedds` carries without headers; what is
 * used here has not changed between the two, except that 11 appended a member to the topic descriptor, which must
 * read zero: hence the padding in `struct descriptor`. */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"
#include "interop.h"

const char *const adapter_name = "cyclonedds";
#ifdef CYCLONE_11
const char *const adapter_version = "11.0.1";
#else
const char *const adapter_version = "0.10";
#endif

#define TAKE_MAX 16
#define ABSENT SIZE_MAX

/* Where the members of one of the structures are. */
struct layout {
  const dds_topic_descriptor_t *descriptor;
  size_t name, id, small, wide, seq, stamp_ns, payload;
};
#define TAIL(T) offsetof(T, seq), offsetof(T, stamp_ns), offsetof(T, payload)
#define UNKEYED_LAYOUT(T) {&T##_desc, ABSENT, ABSENT, ABSENT, ABSENT, TAIL(T)}
#define KEY_LAYOUT(T) {&T##_desc, ABSENT, offsetof(T, id), ABSENT, ABSENT, TAIL(T)}
#define NAME_KEY_LAYOUT(T) {&T##_desc, offsetof(T, name), offsetof(T, id), ABSENT, ABSENT, TAIL(T)}
#define WIDE_KEY_LAYOUT(T) {&T##_desc, ABSENT, offsetof(T, id), ABSENT, offsetof(T, wide), TAIL(T)}
#define OCTET_KEY_LAYOUT(T) {&T##_desc, ABSENT, ABSENT, offsetof(T, small), offsetof(T, wide), TAIL(T)}
/* INTEROP(CycloneDDS 0.10.2): its compiler refuses a sequence in a key. */
static const struct layout layouts[KINDS][2] = {
    [UNKEYED] = {UNKEYED_LAYOUT(interop_UnkeyedFinal), UNKEYED_LAYOUT(interop_UnkeyedAppendable)},
    [KEY] = {KEY_LAYOUT(interop_KeyFinal), KEY_LAYOUT(interop_KeyAppendable)},
    [NAME_KEY] = {NAME_KEY_LAYOUT(interop_NameKeyFinal), NAME_KEY_LAYOUT(interop_NameKeyAppendable)},
    [WIDE_KEY] = {WIDE_KEY_LAYOUT(interop_WideKeyFinal)},
    [OCTET_KEY] = {OCTET_KEY_LAYOUT(interop_OctetKeyFinal)},
};
union any_sample {
  interop_UnkeyedFinal unkeyed;
  interop_KeyFinal key;
  interop_NameKeyFinal name_key;
  interop_WideKeyFinal wide_key;
  interop_OctetKeyFinal octet_key;
};

struct endpoint {
  const char *id;
  const struct layout *layout;
  dds_entity_t topic, entity;
};

static dds_entity_t participant;

static void *member(void *sample, size_t offset) { return offset == ABSENT ? NULL : (char *)sample + offset; }

static uint32_t key_of(void *sample, const struct layout *layout) {
  const uint32_t *id = member(sample, layout->id);
  const uint8_t *small = member(sample, layout->small);
  const uint64_t *wide = member(sample, layout->wide);
  const uint32_t key = id ? *id : small ? *small : 0;
  return wide && *wide != wide_key(key) ? WRONG_KEY : key;
}

/* ---- listeners ------------------------------------------------------------------------------------------------- */

static void on_publication_matched(dds_entity_t writer, const dds_publication_matched_status_t status, void *arg) {
  (void)writer;
  report_matched(((struct endpoint *)arg)->id, (int)status.current_count, (int)status.total_count);
}
static void on_subscription_matched(dds_entity_t reader, const dds_subscription_matched_status_t status, void *arg) {
  (void)reader;
  report_matched(((struct endpoint *)arg)->id, (int)status.current_count, (int)status.total_count);
}
static void on_offered_incompatible(dds_entity_t writer, const dds_offered_incompatible_qos_status_t status, void *arg) {
  (void)writer;
  report_incompatible(((struct endpoint *)arg)->id, (int)status.last_policy_id, (int)status.total_count);
}
static void on_requested_incompatible(dds_entity_t reader, const dds_requested_incompatible_qos_status_t status, void *arg) {
  (void)reader;
  report_incompatible(((struct endpoint *)arg)->id, (int)status.last_policy_id, (int)status.total_count);
}
static void on_offered_deadline_missed(dds_entity_t writer, const dds_offered_deadline_missed_status_t status, void *arg) {
  (void)writer;
  report_deadline_missed(((struct endpoint *)arg)->id, (int)status.total_count);
}
static void on_requested_deadline_missed(dds_entity_t reader, const dds_requested_deadline_missed_status_t status, void *arg) {
  (void)reader;
  report_deadline_missed(((struct endpoint *)arg)->id, (int)status.total_count);
}
static void on_sample_lost(dds_entity_t reader, const dds_sample_lost_status_t status, void *arg) {
  (void)reader;
  report_lost(((struct endpoint *)arg)->id, (int)status.total_count);
}
static void on_sample_rejected(dds_entity_t reader, const dds_sample_rejected_status_t status, void *arg) {
  (void)reader;
  report_rejected(((struct endpoint *)arg)->id, (int)status.total_count);
}
static void on_data_available(dds_entity_t reader, void *arg) {
  const struct endpoint *endpoint = arg;
  const struct layout *layout = endpoint->layout;
  void *data[TAKE_MAX];
  dds_sample_info_t info[TAKE_MAX];
  int taken;
  do {
    data[0] = NULL;
    taken = dds_take(reader, data, info, TAKE_MAX, TAKE_MAX);
    for (int i = 0; i < taken; i++) {
      char **name = member(data[i], layout->name);
      const dds_sequence_octet *payload = member(data[i], layout->payload);
      const struct sample sample = {
          .key = key_of(data[i], layout),
          .name = name ? *name : NULL,
          .seq = *(uint64_t *)member(data[i], layout->seq),
          .stamp_ns = *(int64_t *)member(data[i], layout->stamp_ns),
          .payload = payload->_buffer,
          .payload_len = payload->_length,
      };
      const enum instance_state state = info[i].instance_state == DDS_ALIVE_INSTANCE_STATE                ? INSTANCE_ALIVE
                                        : info[i].instance_state == DDS_NOT_ALIVE_DISPOSED_INSTANCE_STATE ? INSTANCE_DISPOSED
                                                                                                          : INSTANCE_NO_WRITERS;
      report_sample(endpoint->id, &sample, info[i].valid_data, true, state, info[i].source_timestamp);
    }
    if (taken > 0) dds_return_loan(reader, data, taken);
  } while (taken == TAKE_MAX);
}

/* ---- entities -------------------------------------------------------------------------------------------------- */

/* The configuration of DDS Security; the plugins are beside the library. */
static const char *secure(const char *enclave, char *text, size_t size) {
#ifdef SECURITY_LIBRARIES
#define LIBRARY(plugin, name) "<Library path=\"" SECURITY_LIBRARIES "/libdds_security_" plugin ".so\" initFunction=\"init_" name "\" finalizeFunction=\"finalize_" name "\"/>"
  const char *form = "<Security><Authentication>" LIBRARY("auth", "authentication")
                     "<IdentityCA>file:%1$s/identity_ca.cert.pem</IdentityCA><IdentityCertificate>file:%1$s/cert.pem</IdentityCertificate>"
                     "<PrivateKey>file:%1$s/key.pem</PrivateKey></Authentication><AccessControl>" LIBRARY("ac", "access_control")
                     "<PermissionsCA>file:%1$s/permissions_ca.cert.pem</PermissionsCA><Governance>file:%1$s/governance.p7s</Governance>"
                     "<Permissions>file:%1$s/permissions.p7s</Permissions></AccessControl><Cryptographic>" LIBRARY("crypto", "crypto")
                     "</Cryptographic></Security>";
  return snprintf(text, size, form, enclave) < (int)size ? NULL : "enclave is too long";
#else
  (void)enclave, (void)text, (void)size;
  return "built without DDS Security";
#endif
}

const char *adapter_open(const struct options *options) {
  char interface[128] = "", discovery[256] = "", size[64] = "", tcp[64] = "", security[4096] = "", configuration[6144];
  const char *why = *options->enclave ? secure(options->enclave, security, sizeof security) : NULL;
  if (why) return why;
  if (*options->interface_name)
    snprintf(interface, sizeof interface, "<Interfaces><NetworkInterface name=\"%s\"/></Interfaces>", options->interface_name);
  if (options->max_message_bytes)
    snprintf(size, sizeof size, "<MaxMessageSize>%uB</MaxMessageSize>", options->max_message_bytes);
  if (*options->peer)
    snprintf(discovery, sizeof discovery,
             "<Discovery><ParticipantIndex>auto</ParticipantIndex><Peers><Peer address=\"%s\"/></Peers></Discovery>", options->peer);
  else if (options->own_ports)
    snprintf(discovery, sizeof discovery, "<Discovery><ParticipantIndex>auto</ParticipantIndex></Discovery>");
  const char *transport = *options->peer ? "<AllowMulticast>false</AllowMulticast>" : "";
  if (options->tcp_listen || *options->tcp_connect) {
    transport = "<Transport>tcp</Transport>";
    snprintf(tcp, sizeof tcp, "<TCP><Port>%d</Port></TCP>", options->tcp_listen ? (int)options->tcp_listen : -1);
  }
  if (*options->tcp_connect)
    snprintf(discovery, sizeof discovery, "<Discovery><Peers><Peer address=\"%s\"/></Peers></Discovery>", options->tcp_connect);
  /* A sample of 4 MiB fits into it whole: nothing is lost while other tests keep this process from the processor. */
  const char *receives = "<Internal><SocketReceiveBufferSize min=\"default\" max=\"8MiB\"/></Internal>";
  snprintf(configuration, sizeof configuration, "<General>%s%s%s</General>%s%s%s%s", interface, size, transport, discovery, tcp, receives,
           security);
  dds_entity_t domain = dds_create_domain(options->domain, configuration);
  if (domain < 0) return dds_strretcode(-domain);
  participant = dds_create_participant(options->domain, NULL, NULL);
  return participant < 0 ? dds_strretcode(-participant) : NULL;
}

void adapter_close(void) { dds_delete(DDS_CYCLONEDDS_HANDLE); }

static dds_qos_t *qos_of(const struct endpoint_spec *spec) {
  static const dds_data_representation_id_t both[] = {DDS_DATA_REPRESENTATION_XCDR1, DDS_DATA_REPRESENTATION_XCDR2};
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, spec->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_MSECS(spec->block_ms));
  dds_qset_durability(qos, spec->durability == DURABILITY_TRANSIENT         ? DDS_DURABILITY_TRANSIENT
                           : spec->durability == DURABILITY_TRANSIENT_LOCAL ? DDS_DURABILITY_TRANSIENT_LOCAL
                                                                 : DDS_DURABILITY_VOLATILE);
  dds_qset_history(qos, spec->history_depth ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL, spec->history_depth);
  /* what a late joiner gets is bounded by this, not by HISTORY */
  dds_qset_durability_service(qos, 0, spec->history_depth ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL, spec->history_depth,
                              DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  dds_qset_data_representation(qos, spec->representation == ANY_REPRESENTATION ? 2 : 1,
                               spec->representation == XCDR2 ? &both[1] : &both[0]);
  dds_qset_writer_data_lifecycle(qos, spec->autodispose);
  if (spec->lifespan_ms) dds_qset_lifespan(qos, DDS_MSECS(spec->lifespan_ms));
  if (spec->by_source) dds_qset_destination_order(qos, DDS_DESTINATIONORDER_BY_SOURCE_TIMESTAMP);
  if (spec->deadline_ms) dds_qset_deadline(qos, DDS_MSECS(spec->deadline_ms));
  if (spec->lease_ms) dds_qset_liveliness(qos, DDS_LIVELINESS_AUTOMATIC, DDS_MSECS(spec->lease_ms));
  if (spec->strength >= 0) {
    dds_qset_ownership(qos, DDS_OWNERSHIP_EXCLUSIVE);
    dds_qset_ownership_strength(qos, spec->strength);
  }
  return qos;
}

static dds_listener_t *listener_of(struct endpoint *endpoint, bool on_demand) {
  dds_listener_t *listener = dds_create_listener(endpoint);
  dds_lset_publication_matched(listener, on_publication_matched);
  dds_lset_subscription_matched(listener, on_subscription_matched);
  dds_lset_offered_incompatible_qos(listener, on_offered_incompatible);
  dds_lset_requested_incompatible_qos(listener, on_requested_incompatible);
  dds_lset_sample_lost(listener, on_sample_lost);
  dds_lset_sample_rejected(listener, on_sample_rejected);
  dds_lset_offered_deadline_missed(listener, on_offered_deadline_missed);
  dds_lset_requested_deadline_missed(listener, on_requested_deadline_missed);
  if (!on_demand) dds_lset_data_available(listener, on_data_available);
  return listener;
}

static dds_entity_t create_topic(const struct layout *layout, const char *name) {
  struct {
    char descriptor[sizeof(dds_topic_descriptor_t)];
    uint64_t appended[8];
  } padded = {{0}, {0}};
  memcpy(padded.descriptor, layout->descriptor, sizeof padded.descriptor);
  return dds_create_topic(participant, (const dds_topic_descriptor_t *)(const void *)&padded, name, NULL, NULL);
}

const char *adapter_create(bool writer, const struct endpoint_spec *spec, struct endpoint **created) {
  /* INTEROP(CycloneDDS 0.10.2, 11.0.1): has no content-filtered topics, only functions that filter what has arrived. */
  if (spec->filter_below) return "no content filter";
  struct endpoint *endpoint = calloc(1, sizeof *endpoint);
  if (!endpoint) return "out of memory";
  endpoint->id = spec->id;
  endpoint->layout = &layouts[spec->kind][spec->appendable];
  if (!endpoint->layout->descriptor) {
    free(endpoint);
    return "no such type";
  }
  endpoint->topic = create_topic(endpoint->layout, spec->topic);
  if (endpoint->topic < 0) return dds_strretcode(-endpoint->topic);
  dds_qos_t *qos = qos_of(spec);
  dds_listener_t *listener = listener_of(endpoint, spec->on_demand);
  endpoint->entity = writer ? dds_create_writer(participant, endpoint->topic, qos, listener)
                            : dds_create_reader(participant, endpoint->topic, qos, listener);
  dds_delete_listener(listener);
  dds_delete_qos(qos);
  if (endpoint->entity < 0) return dds_strretcode(-endpoint->entity);
  *created = endpoint;
  return NULL;
}

void adapter_take(struct endpoint *reader) { on_data_available(reader->entity, reader); }

void adapter_delete(struct endpoint *endpoint) {
  dds_delete(endpoint->entity);
  dds_delete(endpoint->topic);
  free(endpoint);
}

static void *to_dds(const struct endpoint *endpoint, const struct sample *from, union any_sample *to) {
  const struct layout *layout = endpoint->layout;
  char **name = member(to, layout->name);
  uint32_t *id = member(to, layout->id);
  if (name) *name = (char *)(uintptr_t)from->name;
  uint8_t *small = member(to, layout->small);
  uint64_t *wide = member(to, layout->wide);
  if (id) *id = from->key;
  if (small) *small = (uint8_t)from->key;
  if (wide) *wide = wide_key(from->key);
  *(uint64_t *)member(to, layout->seq) = from->seq;
  *(int64_t *)member(to, layout->stamp_ns) = from->stamp_ns;
  *(dds_sequence_octet *)member(to, layout->payload) = (dds_sequence_octet){
      ._maximum = from->payload_len, ._length = from->payload_len, ._buffer = (uint8_t *)(uintptr_t)from->payload, ._release = false};
  return to;
}

static const char *outcome(dds_return_t code) { return code < 0 ? dds_strretcode(-code) : NULL; }

const char *adapter_write(struct endpoint *endpoint, const struct sample *sample) {
  union any_sample data;
  return outcome(dds_write(endpoint->entity, to_dds(endpoint, sample, &data)));
}
const char *adapter_dispose(struct endpoint *endpoint, const struct sample *key) {
  union any_sample data;
  return outcome(dds_dispose(endpoint->entity, to_dds(endpoint, key, &data)));
}
const char *adapter_unregister(struct endpoint *endpoint, const struct sample *key) {
  union any_sample data;
  return outcome(dds_unregister_instance(endpoint->entity, to_dds(endpoint, key, &data)));
}
const char *adapter_wait_acknowledged(struct endpoint *endpoint, int timeout_ms) {
  return outcome(dds_wait_for_acks(endpoint->entity, DDS_MSECS(timeout_ms)));
}
