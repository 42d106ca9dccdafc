/* Agent for Eclipse CycloneDDS, C API.
 *
 * One source for two libraries: Debian's libddsc 0.10, and, with CYCLONE_11 defined, libddsc 11 of
 * the PyPI wheel. The wheel has no headers. What is used here is alike in both, except that 11
 * appended a member to the topic descriptor. It must read zero. */
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"
#include "bench.h"
#include "dds/dds.h"
#include "dds/ddsc/dds_loan_api.h"
#include "roudi.h"

#ifdef CYCLONE_11
#define VERSION "11.0.1"
#define TRANSPORTS "default,tuned"
void dds_qset_writer_batching(dds_qos_t *qos, bool batching);
#else
#define VERSION "0.10.2"
#define TRANSPORTS "default,tuned,shm"
#endif
#define TAKE_MAX 64
/* The largest chunk of RouDi's built-in configuration, less headers. */
#define MAX_SHARED ((size_t)4194240)

static const struct agent_options *options;
static bool shared_memory;
static dds_entity_t writer, reader, waitset;
static dds_entity_t crowd[AGENT_MAX_PARTICIPANTS], *found_by;
static int crowd_size, reader_count;
static agent_handler listener_handler;
static void *listener_context;

static bool is_shared(const struct agent_options *given) {
  return !strcmp(given->transport, "shm");
}
static bool always(const struct agent_options *given) {
  (void)given;
  return true;
}

/* In a listener a blocked write cannot see acknowledgments: the same thread receives them. */
static enum agent_notify fastest(const struct agent_options *given) {
  return given->reliable && !given->depth ? AGENT_WAITSET : AGENT_LISTENER;
}

static bool interface_has_multicast(const char *name) {
  struct ifreq request = {0};
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  const int failed = ioctl(any, SIOCGIFFLAGS, &request);
  close(any);
  return !failed && (request.ifr_flags & IFF_MULTICAST);
}

static const char *check(const struct agent_options *given) {
  if (!if_nametoindex(given->iface))
    return agent_text("iface=%s: no such interface", given->iface);
  if (given->delivery == AGENT_MULTICAST && !interface_has_multicast(given->iface))
    return agent_text("delivery=multicast: iface=%s has no multicast", given->iface);
  if (is_shared(given) && !given->depth)
    return "transport=shm with hist=all: CycloneDDS 0.10 shares memory with KEEP_LAST alone";
  if (is_shared(given) && given->depth > 16)
    return "transport=shm with a history above 16: iceoryx does not keep as many";
  if (is_shared(given) && given->max_size > MAX_SHARED)
    return agent_text("transport=shm with size=%zu: RouDi's chunks hold %zu octets",
                      given->max_size, MAX_SHARED);
  if (is_shared(given) && given->type == AGENT_COMPLEX)
    return "transport=shm and type=complex: CycloneDDS 0.10 shares types of fixed size alone";
  if (is_shared(given) && given->delivery == AGENT_MULTICAST)
    return "transport=shm has no delivery=multicast";
  if (given->loan && !is_shared(given)) return "loan=1 needs transport=shm";
  if (is_shared(given) && (!strcmp(given->role, "crowd") || !strcmp(given->role, "seek") || !strcmp(given->role, "mesh")))
    return "transport=shm: a crowd has none";
  if (is_shared(given) && given->security) return "transport=shm has no security";
  return NULL;
}

#ifdef SECURITY_LIBRARIES
#define PLUGIN(file, name)                                            \
  "<Library path=\"" SECURITY_LIBRARIES "/libdds_security_" file     \
  ".so\" initFunction=\"init_" name "\" finalizeFunction=\"finalize_" name "\"/>"
#define FILE_OF(element, file) "<" element ">file:%1$s/" file "</" element ">"
/* The plugins are in files of their own. */
static const char security_form[] =
    "<Security><Authentication>" PLUGIN("auth", "authentication")
    FILE_OF("IdentityCA", "identity_ca.cert.pem") FILE_OF("IdentityCertificate", "cert.pem")
    FILE_OF("PrivateKey", "key.pem") "</Authentication><AccessControl>"
    PLUGIN("ac", "access_control") FILE_OF("PermissionsCA", "permissions_ca.cert.pem")
    FILE_OF("Governance", "governance.p7s") FILE_OF("Permissions", "permissions.p7s")
    "</AccessControl><Cryptographic>" PLUGIN("crypto", "crypto") "</Cryptographic></Security>";
#define SECURES true
#else
static const char security_form[] = "%1$s";
#define SECURES false
#endif

/* What the interface and the contract require, and for `tuned` what the manual advises. */
static void configure(void) {
  const bool tuned = !strcmp(options->transport, "tuned");
  const bool has_multicast = interface_has_multicast(options->iface);
  char peers[224] = "", security[4096] = "", uri[6144];
  if (!has_multicast || options->peer)
    snprintf(peers, sizeof peers,
             "<ParticipantIndex>auto</ParticipantIndex>"
             "<MaxAutoParticipantIndex>%d</MaxAutoParticipantIndex>"
             "<Peers><Peer address=\"%s\"/><Peer address=\"%s\"/></Peers>",
             options->n > 8 ? options->n + 1 : 9, /* by default as many as 9 */
             options->addr, options->peer ? options->peer : options->addr);
  if (options->security &&
      snprintf(security, sizeof security, security_form, options->security) >=
          (int)sizeof security)
    agent_fail("security=%s: the path is too long", options->security);
  snprintf(uri, sizeof uri,
           "<CycloneDDS><Domain><General>"
           "<Interfaces><NetworkInterface name=\"%s\"/></Interfaces>"
           "<AllowMulticast>%s</AllowMulticast>%s</General>"
           "<Discovery>%s</Discovery>%s%s%s</Domain></CycloneDDS>",
           options->iface,
           options->delivery == AGENT_MULTICAST ? "true" : has_multicast ? "spdp" : "false",
           tuned ? "<MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65000B</FragmentSize>"
                 : "",
           peers,
           tuned ? "<Internal><SocketReceiveBufferSize min=\"default\" max=\"10MB\"/>"
                   "<SocketSendBufferSize min=\"default\" max=\"10MB\"/>"
                   "<Watermarks><WhcHigh>4MB</WhcHigh></Watermarks></Internal>"
                 : "",
           is_shared(options)
               ? "<SharedMemory><Enable>true</Enable><LogLevel>off</LogLevel></SharedMemory>"
               : "",
           security);
  setenv("CYCLONEDDS_URI", uri, 1);
}

/* octet[size]: only types of fixed size are shared. */
static void array_descriptor(void *to, uint32_t size) {
  static uint32_t operations[] = {DDS_OP_ADR | DDS_OP_TYPE_ARR | DDS_OP_SUBTYPE_1BY, 0, 0,
                                  DDS_OP_RTS};
  operations[2] = size;
  const dds_topic_descriptor_t descriptor = {.m_size = size,
                                             .m_align = 1,
                                             .m_flagset = DDS_TOPIC_FIXED_SIZE,
                                             .m_typename = "Octets",
                                             .m_nops = 2,
                                             .m_ops = operations,
                                             .m_meta = ""};
  memcpy(to, &descriptor, sizeof descriptor);
}

static dds_entity_t create_topic(dds_entity_t participant, const char *name) {
  static struct {
    char descriptor[sizeof(dds_topic_descriptor_t)];
    uint64_t appended[8];
  } padded;
  if (shared_memory)
    array_descriptor(padded.descriptor, (uint32_t)options->max_size);
  else
    memcpy(padded.descriptor, options->type == AGENT_COMPLEX ? &Complex_desc : &Blob_desc,
           sizeof padded.descriptor);
  const dds_entity_t topic = dds_create_topic(
      participant, (const dds_topic_descriptor_t *)(const void *)&padded, name, NULL, NULL);
  if (topic < 0) agent_fail("dds_create_topic: %s", dds_strretcode(-topic));
  return topic;
}

static dds_qos_t *create_qos(void) {
  dds_qos_t *qos = dds_create_qos();
  dds_qset_durability(
      qos, options->transient_local ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  /* What a writer keeps for readers that come later. */
  if (options->transient_local)
    dds_qset_durability_service(qos, 0, DDS_HISTORY_KEEP_LAST, options->depth,
                                DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  dds_qset_reliability(qos,
                       options->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                       AGENT_BLOCKING_NS);
  dds_qset_history(qos, options->depth ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL,
                   options->depth);
  if (options->batch > 1) {
#ifdef CYCLONE_11
    dds_qset_writer_batching(qos, true);
#else
    dds_write_set_batch(true);
#endif
  }
  return qos;
}

static const char *open_endpoints_of(const struct agent_options *given, const char *writes,
                                     const char *reads) {
  options = given;
  shared_memory = is_shared(given);
  const char *why = shared_memory ? roudi_start() : NULL;
  if (why) return why;
  configure();
  const dds_entity_t participant =
      dds_create_participant((dds_domainid_t)options->domain, NULL, NULL);
  if (participant < 0)
    return agent_text("dds_create_participant: %s", dds_strretcode(-participant));
  dds_qos_t *qos = create_qos();
  if (writes) writer = dds_create_writer(participant, create_topic(participant, writes), qos, NULL);
  if (writer < 0) return agent_text("dds_create_writer: %s", dds_strretcode(-writer));
  if (reads) reader = dds_create_reader(participant, create_topic(participant, reads), qos, NULL);
  if (reader < 0) return agent_text("dds_create_reader: %s", dds_strretcode(-reader));
  dds_delete_qos(qos);
  if (writes && shared_memory && !dds_is_loan_available(writer))
    return "CycloneDDS does not share memory: is another RouDi in the way?";
  if (!reads) return NULL;
  waitset = dds_create_waitset(participant);
  dds_waitset_attach(waitset, dds_create_readcondition(reader, DDS_ANY_STATE), 0);
  return NULL;
}

static const char *join(const struct agent_options *given) {
  options = given;
  if (!crowd_size) configure();
  const dds_entity_t participant =
      dds_create_participant((dds_domainid_t)options->domain, NULL, NULL);
  if (participant < 0)
    return agent_text("dds_create_participant: %s", dds_strretcode(-participant));
  crowd[crowd_size++] = participant;
  return NULL;
}

static const char *add_writer(int participant, const char *topic) {
  dds_qos_t *qos = create_qos();
  const dds_entity_t made = dds_create_writer(
      crowd[participant], create_topic(crowd[participant], topic), qos, NULL);
  dds_delete_qos(qos);
  return made < 0 ? agent_text("dds_create_writer: %s", dds_strretcode(-made)) : NULL;
}

static const char *add_reader(int participant, const char *topic) {
  dds_qos_t *qos = create_qos();
  const dds_entity_t made =
      dds_create_reader(crowd[participant], create_topic(crowd[participant], topic), qos, NULL);
  dds_delete_qos(qos);
  if (made < 0) return agent_text("dds_create_reader: %s", dds_strretcode(-made));
  found_by = realloc(found_by, (size_t)(reader_count + 1) * sizeof *found_by);
  found_by[reader_count++] = made;
  return NULL;
}

static int found_writers(void) {
  int found = 0;
  dds_subscription_matched_status_t status;
  for (int at = 0; at < reader_count; at++)
    if (!dds_get_subscription_matched_status(found_by[at], &status))
      found += (int)status.current_count;
  return found;
}

static void close_all(void) { dds_delete(DDS_CYCLONEDDS_HANDLE); }

static int matched_readers(void) {
  dds_publication_matched_status_t status;
  return dds_get_publication_matched_status(writer, &status) ? 0 : (int)status.current_count;
}

static int matched_writers(void) {
  dds_subscription_matched_status_t status;
  return dds_get_subscription_matched_status(reader, &status) ? 0 : (int)status.current_count;
}

static enum agent_write written(dds_return_t code) {
  if (code == DDS_RETCODE_OK) return AGENT_WRITTEN;
  if (code == DDS_RETCODE_TIMEOUT || code == DDS_RETCODE_OUT_OF_RESOURCES) return AGENT_REFUSED;
  agent_fail("dds_write: %s", dds_strretcode(-code));
}

static enum agent_write write_sample(const void *data, size_t size) {
  if (shared_memory) return written(dds_write(writer, data));
  const Blob blob = {{._maximum = (uint32_t)size,
                      ._length = (uint32_t)size,
                      ._buffer = (uint8_t *)data,
                      ._release = false}};
  return written(dds_write(writer, &blob));
}

static void *loan(size_t size) {
  (void)size;
  void *sample = NULL;
  return dds_loan_sample(writer, &sample) == DDS_RETCODE_OK ? sample : NULL;
}

static enum agent_write write_loan(void *sample, size_t size) {
  (void)size;
  return written(dds_write(writer, sample));
}

static void flush(void) { dds_write_flush(writer); }
static void wait_acknowledged(int64_t timeout_ns) { dds_wait_for_acks(writer, timeout_ns); }

static void hand_over(void *sample, agent_handler handler, void *context) {
  struct agent_message message = {0};
  if (shared_memory) {
    message.data = sample;
    message.size = options->max_size;
  } else if (options->type == AGENT_COMPLEX) {
    const Complex *tree = sample;
    message.complex_sample = sample;
    if (tree->groups._length && tree->groups._buffer[0].items._length)
      message.number = tree->groups._buffer[0].items._buffer[0].number;
  } else {
    const Blob *blob = sample;
    message.data = blob->data._buffer;
    message.size = blob->data._length;
  }
  handler(context, &message);
}

static void take_all(agent_handler handler, void *context) {
  void *samples[TAKE_MAX];
  dds_sample_info_t infos[TAKE_MAX];
  int count;
  do {
    samples[0] = NULL; /* the library lends its own */
    count = dds_take(reader, samples, infos, TAKE_MAX, TAKE_MAX);
    if (count < 0) agent_fail("dds_take: %s", dds_strretcode(-count));
    for (int at = 0; at < count; at++)
      if (infos[at].valid_data) hand_over(samples[at], handler, context);
    if (count > 0) dds_return_loan(reader, samples, count);
  } while (count == TAKE_MAX);
}

static void receive(agent_handler handler, void *context, int64_t timeout_ns) {
  dds_attach_t triggered;
  if (!timeout_ns || dds_waitset_wait(waitset, &triggered, 1, timeout_ns) > 0)
    take_all(handler, context);
}

static void on_data_available(dds_entity_t unused, void *argument) {
  (void)unused;
  (void)argument;
  take_all(listener_handler, listener_context);
}

static const char *listen_to(agent_handler handler, void *context) {
  listener_handler = handler;
  listener_context = context;
  dds_listener_t *listener = dds_create_listener(NULL);
  dds_lset_data_available(listener, on_data_available);
  const dds_return_t code = dds_set_listener(reader, listener);
  dds_delete_listener(listener);
  return code ? agent_text("dds_set_listener: %s", dds_strretcode(-code)) : NULL;
}

static void *complex_new(const struct agent_complex *shape) {
  Complex *tree = calloc(1, sizeof *tree);
  const uint32_t groups = (shape->items + shape->items_of_group - 1) / shape->items_of_group;
  tree->groups._length = tree->groups._maximum = groups;
  tree->groups._buffer = calloc(groups, sizeof(Group));
  for (uint32_t at = 0; at < shape->items; at++) {
    Group *group = &tree->groups._buffer[at / shape->items_of_group];
    if (!group->items._buffer) group->items._buffer = calloc(shape->items_of_group, sizeof(Item));
    Item *item = &group->items._buffer[group->items._length++];
    group->items._maximum = group->items._length;
    item->name = malloc(shape->name_length + 1);
    agent_item_name(item->name, at, shape->name_length);
    item->number = (int32_t)at;
  }
  return tree;
}

static void complex_set_number(void *sample, int32_t number) {
  ((Complex *)sample)->groups._buffer[0].items._buffer[0].number = number;
}

static enum agent_write complex_write(const void *sample) {
  return written(dds_write(writer, sample));
}

int main(int argc, char **argv) {
  const struct agent_adapter adapter = {
      .peer = "cyclonedds",
      .version = VERSION,
      .transports = TRANSPORTS,
      .notifies = "listener,waitset,poll",
      .types = "octets,complex",
      .deliveries = "unicast,multicast",
      .fixed_size = is_shared,
      .durable = true,
      .secures = SECURES,
      .batches = always,
      .check = check,
      .fastest = fastest,
      .open = open_endpoints_of,
      .close = close_all,
      .matched_readers = matched_readers,
      .matched_writers = matched_writers,
      .write = write_sample,
      .flush = flush,
      .wait_acknowledged = wait_acknowledged,
      .loan = loan,
      .write_loan = write_loan,
      .receive = receive,
      .listen = listen_to,
      .join = join,
      .add_writer = add_writer,
      .add_reader = add_reader,
      .found_writers = found_writers,
      .complex_new = complex_new,
      .complex_set_number = complex_set_number,
      .complex_write = complex_write,
  };
  return agent_main(argc, argv, &adapter);
}
