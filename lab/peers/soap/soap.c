/* Agent `soap`: gSOAP over HTTP. A round trip is one call: `pong` serves, the reply is the response.
 * A publisher makes one-way calls to one server a subscriber. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "bench.nsmap"
#include "soapH.h"

#define PORTS_OF_DOMAIN 16
#define MAX_READERS (PORTS_OF_DOMAIN - 2) /* of `Data` */
#define PROBE_NS UINT64_C(10000000)
#define BACKLOG 64

struct target {
  struct soap *soap;
  char endpoint[48];
};

static const struct agent_options *options;
static bool tuned;
/* The client: what is written goes to these. */
static struct target targets[MAX_READERS];
static int target_count, wanted_targets, written_port, written_ports;
static uint64_t probed_ns;
/* The response to the last call waits here until it is taken. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool replied;
static struct agent_message reply;
/* The server: what is read comes here. */
static struct soap *listening, *serving;
static agent_handler handler;
static void *handler_context;
static struct agent_message answer; /* what the handler wrote */
static bool in_handler;

static int port_of(const char *topic, int id) {
  const int at = !strcmp(topic, "Ping") ? 0 : !strcmp(topic, "Pong") ? 1 : 2 + id;
  return 16000 + options->domain * PORTS_OF_DOMAIN + at;
}

static struct soap *new_soap(void) {
  /* Without keep-alive, gSOAP connects for each call. */
  const soap_mode mode = tuned ? SOAP_IO_KEEPALIVE | SOAP_ENC_MTOM : SOAP_IO_DEFAULT;
  struct soap *soap = soap_new1(mode);
  if (!soap) agent_fail("soap_new1 fails");
  soap->bind_flags = SO_REUSEADDR;
  soap->connect_timeout = soap->send_timeout = 10;
  soap->recv_timeout = strcmp(options->role, "ping") ? 10 : 1; /* a later pong is lost */
  if (tuned) soap->max_keep_alive = 0;                         /* no limit */
  return soap;
}

static const char *check(const struct agent_options *given) {
  const bool sub = !strcmp(given->role, "sub"), pub = !strcmp(given->role, "pub");
  if (!given->reliable) return "rel=besteffort: SOAP calls go over TCP, which is reliable";
  if (given->depth && (pub || sub || given->period_ns))
    return "hist: calls have no history; a depth is for closed loops alone";
  if ((sub && given->id >= MAX_READERS) || (pub && given->n > MAX_READERS))
    return agent_text("there are ports for %d readers, of id=0 to id=%d", MAX_READERS,
                      MAX_READERS - 1);
  return NULL;
}

static const char *open_soap(const struct agent_options *given, const char *writes,
                             const char *reads) {
  options = given;
  tuned = !strcmp(options->transport, "tuned");
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &monotonic);
  const bool calls = strcmp(options->role, "pong"), serves = strcmp(options->role, "ping");
  if (writes && calls) {
    written_port = port_of(writes, 0);
    written_ports = strcmp(writes, "Data") ? 1 : MAX_READERS;
    wanted_targets = strcmp(writes, "Data") ? 1 : options->n;
  }
  if (reads && serves) {
    listening = new_soap();
    const int port = port_of(reads, strcmp(reads, "Data") ? 0 : options->id);
    if (!soap_valid_socket(soap_bind(listening, options->addr, port, BACKLOG)))
      return agent_text("cannot listen on %s:%d", options->addr, port);
  }
  return NULL;
}

static bool accepts(const char *address, int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, address, &to.sin_addr);
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool accepted = !connect(probe, (struct sockaddr *)&to, sizeof to);
  close(probe);
  return accepted;
}

static int matched_readers(void) {
  const uint64_t now_ns = agent_now_ns();
  if (target_count >= wanted_targets || now_ns < probed_ns + PROBE_NS) return target_count;
  probed_ns = now_ns;
  const char *address = options->peer ? options->peer : options->addr;
  target_count = 0;
  for (int at = 0; at < written_ports && target_count < wanted_targets; at++) {
    if (!accepts(address, written_port + at)) continue;
    struct target *target = &targets[target_count++];
    if (!target->soap) target->soap = new_soap();
    snprintf(target->endpoint, sizeof target->endpoint, "http://%s:%d", address,
             written_port + at);
  }
  return target_count;
}

/* A client knows no more than that the server answers. */
static int matched_writers(void) { return written_port ? matched_readers() : 1; }

static struct ns__Attached attach(const void *data, size_t size) {
  struct ns__Attached attached = {
      {(unsigned char *)data, (int)size, NULL, "application/octet-stream", NULL}};
  return attached;
}

static struct xsd__base64Binary base64(const void *data, size_t size) {
  struct xsd__base64Binary binary = {(unsigned char *)data, (int)size};
  return binary;
}

static int publish(struct target *to, const void *data, size_t size) {
  int code = tuned
                 ? soap_send_ns__publishAttached(to->soap, to->endpoint, "", attach(data, size))
                 : soap_send_ns__publish(to->soap, to->endpoint, "", base64(data, size));
  if (!code) code = soap_recv_empty_response(to->soap);
  return code;
}

static int call_octets(struct target *to, const void *data, size_t size) {
  if (tuned) {
    struct ns__attachedResponse response;
    const int code = soap_call_ns__attached(to->soap, to->endpoint, "", attach(data, size),
                                            &response);
    const struct _xop__Include *include = &response.data.xop__Include;
    if (!code) reply = (struct agent_message){include->__ptr, (size_t)include->__size, NULL, 0};
    return code;
  }
  struct ns__octetsResponse response;
  const int code = soap_call_ns__octets(to->soap, to->endpoint, "", base64(data, size), &response);
  if (!code)
    reply = (struct agent_message){response.data.__ptr, (size_t)response.data.__size, NULL, 0};
  return code;
}

static bool is_whole(const struct ns__Complex *sample) {
  return sample->__sizegroup > 0 && sample->group[0].__sizeitem > 0;
}

static int call_complex(struct target *to, const struct ns__Complex *sample) {
  static struct ns__complexResponse response;
  const int code = soap_call_ns__complex(to->soap, to->endpoint, "", *sample, &response);
  if (code || !is_whole(&response.data)) return code;
  reply = (struct agent_message){NULL, 0, &response.data, response.data.group[0].item[0].number};
  return SOAP_OK;
}

/* After a call: keeps the response, or fails if the server is gone. A late response is lost. */
static enum agent_write finish(struct target *to, int code, bool has_reply) {
  if (!code) {
    pthread_mutex_lock(&lock);
    replied = has_reply;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  } else if (code != SOAP_EOF && !agent_stopping) {
    char text[256] = "";
    soap_sprint_fault(to->soap, text, sizeof text);
    agent_fail("call of %s: %s", to->endpoint, text);
  }
  return AGENT_WRITTEN;
}

/* One call at a time: the response to the last one must be taken first. */
static struct target *begin_call(void) {
  pthread_mutex_lock(&lock);
  while (replied && !agent_stopping) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  soap_end(targets[0].soap);
  return &targets[0];
}

static enum agent_write write_octets_of(const void *data, size_t size) {
  if (in_handler) {
    answer = (struct agent_message){data, size, NULL, 0};
    return AGENT_WRITTEN;
  }
  if (strcmp(options->role, "pub")) {
    struct target *to = begin_call();
    return finish(to, call_octets(to, data, size), true);
  }
  for (int at = 0; at < target_count; at++) {
    soap_end(targets[at].soap);
    finish(&targets[at], publish(&targets[at], data, size), false);
  }
  return AGENT_WRITTEN;
}

static enum agent_write write_complex(const void *sample) {
  if (in_handler) {
    answer = (struct agent_message){NULL, 0, sample, 0};
    return AGENT_WRITTEN;
  }
  struct target *to = begin_call();
  return finish(to, call_complex(to, sample), true);
}

static struct timespec after(int64_t ns) {
  const uint64_t at_ns = agent_now_ns() + (uint64_t)ns;
  return (struct timespec){(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)};
}

static void take_reply(agent_handler to, void *context, int64_t timeout_ns) {
  const struct timespec end = after(timeout_ns);
  pthread_mutex_lock(&lock);
  while (!replied && !agent_stopping)
    if (pthread_cond_timedwait(&changed, &lock, &end)) break;
  if (replied) {
    to(context, &reply);
    replied = false;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
}

static bool is_readable(SOAP_SOCKET socket_fd, int64_t timeout_ns) {
  struct pollfd wait = {.fd = socket_fd, .events = POLLIN};
  const struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  return ppoll(&wait, 1, &timeout, NULL) > 0;
}

/* Serves one request of the connection that is open, or of the next one. */
static void receive(agent_handler to, void *context, int64_t timeout_ns) {
  if (!listening) {
    take_reply(to, context, timeout_ns);
    return;
  }
  handler = to;
  handler_context = context;
  if (!serving) {
    if (!is_readable(listening->master, timeout_ns)) return;
    if (!soap_valid_socket(soap_accept(listening))) return;
    serving = listening;
    serving->keep_alive = 1;
  }
  if (!is_readable(serving->socket, timeout_ns)) return;
  if (soap_begin_serve(serving)) serving->keep_alive = 0;
  else if (soap_serve_request(serving) && serving->error < SOAP_STOP) soap_send_fault(serving);
  if (!serving->keep_alive) {
    soap_force_closesock(serving);
    serving = NULL;
  }
  soap_end(listening);
}

static void handle(const struct agent_message *message) {
  answer = *message;
  in_handler = true;
  if (handler) handler(handler_context, message);
  in_handler = false;
}

int ns__octets(struct soap *soap, struct xsd__base64Binary data,
               struct ns__octetsResponse *response) {
  (void)soap;
  const struct agent_message message = {data.__ptr, (size_t)data.__size, NULL, 0};
  handle(&message);
  response->data = base64(answer.data, answer.size);
  return SOAP_OK;
}

int ns__attached(struct soap *soap, struct ns__Attached data,
                 struct ns__attachedResponse *response) {
  (void)soap;
  const struct _xop__Include *include = &data.xop__Include;
  const struct agent_message message = {include->__ptr, (size_t)include->__size, NULL, 0};
  handle(&message);
  response->data = attach(answer.data, answer.size);
  return SOAP_OK;
}

int ns__complex(struct soap *soap, struct ns__Complex data, struct ns__complexResponse *response) {
  if (!is_whole(&data)) return soap_sender_fault(soap, "a sample has no item", NULL);
  const struct agent_message message = {NULL, 0, &data, data.group[0].item[0].number};
  handle(&message);
  response->data = *(const struct ns__Complex *)answer.complex_sample;
  return SOAP_OK;
}

int ns__publish(struct soap *soap, struct xsd__base64Binary data) {
  const struct agent_message message = {data.__ptr, (size_t)data.__size, NULL, 0};
  handle(&message);
  return soap_send_empty_response(soap, SOAP_OK);
}

int ns__publishAttached(struct soap *soap, struct ns__Attached data) {
  const struct _xop__Include *include = &data.xop__Include;
  const struct agent_message message = {include->__ptr, (size_t)include->__size, NULL, 0};
  handle(&message);
  return soap_send_empty_response(soap, SOAP_OK);
}

static void *complex_new(const struct agent_complex *shape) {
  const uint32_t of_group = shape->items_of_group;
  const uint32_t groups = (shape->items + of_group - 1) / of_group;
  struct ns__Complex *sample = calloc(1, sizeof *sample);
  sample->__sizegroup = (int)groups;
  sample->group = calloc(groups, sizeof *sample->group);
  for (uint32_t at = 0; at < shape->items; at++) {
    struct ns__Group *group = &sample->group[at / of_group];
    if (!group->item) group->item = calloc(of_group, sizeof *group->item);
    struct ns__Item *item = &group->item[group->__sizeitem++];
    item->name = malloc(shape->name_length + 1);
    agent_item_name(item->name, at, shape->name_length);
    item->number = (int)at;
  }
  return sample;
}

static void complex_set_number(void *sample, int32_t number) {
  ((struct ns__Complex *)sample)->group[0].item[0].number = number;
}

static void close_soap(void) {
  for (int at = 0; at < MAX_READERS; at++)
    if (targets[at].soap) soap_closesock(targets[at].soap);
  if (listening) soap_done(listening);
}

int main(int argc, char **argv) {
  static char version[24];
  snprintf(version, sizeof version, "%d.%d.%d", GSOAP_VERSION / 100000,
           GSOAP_VERSION / 1000 % 100, GSOAP_VERSION % 1000);
  const struct agent_adapter adapter = {
      .peer = "soap",
      .version = version,
      .transports = "default,tuned",
      .notifies = "waitset,poll",
      .types = "octets,complex",
      .deliveries = "unicast",
      .check = check,
      .open = open_soap,
      .close = close_soap,
      .matched_readers = matched_readers,
      .matched_writers = matched_writers,
      .write = write_octets_of,
      .receive = receive,
      .complex_new = complex_new,
      .complex_set_number = complex_set_number,
      .complex_write = write_complex,
  };
  return agent_main(argc, argv, &adapter);
}
