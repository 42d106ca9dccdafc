/* Agent for ZeroMQ (libzmq): PUB/SUB and PAIR over TCP and ipc.
 *
 * A writer binds, its readers connect. ZMQ_XPUB_NODROP makes a reliable PUB wait where it otherwise
 * drops. A monitor of each socket counts the connections. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "agent.h"

#define RECEIVE_MAX 64

struct channel {
  void *socket, *monitor;
  int connected;
};

static const struct agent_options *options;
static void *context_of_all;
static struct channel writer, reader;
static zmq_msg_t loaned;

static bool is_pair(const struct agent_options *given) {
  return !strncmp(given->transport, "pair", 4);
}

static const char *check(const struct agent_options *given) {
  if (given->depth) return "ZeroMQ queues samples in order: hist=all alone";
  if (is_pair(given) && given->n > 1)
    return agent_text("transport=%s has one reader", given->transport);
  return NULL;
}

static void name_of(char *name, size_t size, const char *host, const char *topic) {
  const int number = !strcmp(topic, "Ping") ? 0 : !strcmp(topic, "Pong") ? 1 : 2;
  if (strstr(options->transport, "ipc"))
    snprintf(name, size, "ipc://@takt-agent-%d-%s", options->domain, topic);
  else
    snprintf(name, size, "tcp://%s:%d", host, 22000 + options->domain * 4 + number);
}

static void set(void *socket, int option, int value) {
  if (zmq_setsockopt(socket, option, &value, sizeof value))
    agent_fail("ZeroMQ option %d: %s", option, zmq_strerror(zmq_errno()));
}

static const char *open_channel(struct channel *channel, const char *topic, bool writes) {
  char name[64], monitor[32];
  const int kind = is_pair(options) ? ZMQ_PAIR : writes ? ZMQ_PUB : ZMQ_SUB;
  channel->socket = zmq_socket(context_of_all, kind);
  if (!channel->socket) return agent_text("zmq_socket: %s", zmq_strerror(zmq_errno()));
  snprintf(monitor, sizeof monitor, "inproc://%s", topic);
  zmq_socket_monitor(channel->socket, monitor, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
  channel->monitor = zmq_socket(context_of_all, ZMQ_PAIR);
  zmq_connect(channel->monitor, monitor);
  set(channel->socket, ZMQ_LINGER, 1000);
  set(channel->socket, ZMQ_SNDTIMEO, (int)(AGENT_BLOCKING_NS / 1000000));
  set(channel->socket, ZMQ_RCVTIMEO, 100);
  if (kind == ZMQ_SUB) zmq_setsockopt(channel->socket, ZMQ_SUBSCRIBE, "", 0);
  if (kind == ZMQ_PUB) set(channel->socket, ZMQ_XPUB_NODROP, options->reliable);
  const char *host = writes || !options->peer ? options->addr : options->peer;
  name_of(name, sizeof name, host, topic);
  if (writes ? zmq_bind(channel->socket, name) : zmq_connect(channel->socket, name))
    return agent_text("%s: %s", name, zmq_strerror(zmq_errno()));
  return NULL;
}

static const char *open_all(const struct agent_options *given, const char *writes,
                            const char *reads) {
  options = given;
  context_of_all = zmq_ctx_new();
  const char *why = writes ? open_channel(&writer, writes, true) : NULL;
  return why || !reads ? why : open_channel(&reader, reads, false);
}

static void close_channel(struct channel *channel) {
  if (!channel->socket) return;
  zmq_close(channel->monitor);
  zmq_close(channel->socket);
}

static void close_all(void) {
  close_channel(&writer);
  close_channel(&reader);
  zmq_ctx_term(context_of_all);
}

static int connected(struct channel *channel) {
  char event[6], address[128];
  while (zmq_recv(channel->monitor, event, sizeof event, ZMQ_DONTWAIT) >= 0) {
    zmq_recv(channel->monitor, address, sizeof address, ZMQ_DONTWAIT);
    channel->connected++;
  }
  return channel->connected;
}

static int matched_readers(void) { return connected(&writer); }
static int matched_writers(void) { return connected(&reader); }

static enum agent_write sent(int result) {
  if (result >= 0) return AGENT_WRITTEN;
  if (zmq_errno() == EAGAIN || zmq_errno() == EINTR) return AGENT_REFUSED;
  agent_fail("zmq_send: %s", zmq_strerror(zmq_errno()));
}

static int send_flags(void) { return options->reliable ? 0 : ZMQ_DONTWAIT; }

static enum agent_write write_sample(const void *data, size_t size) {
  return sent(zmq_send(writer.socket, data, size, send_flags()));
}

static void *loan(size_t size) {
  return zmq_msg_init_size(&loaned, size) ? NULL : zmq_msg_data(&loaned);
}

static enum agent_write write_loan(void *sample, size_t size) {
  (void)sample;
  (void)size;
  const enum agent_write result = sent(zmq_msg_send(&loaned, writer.socket, send_flags()));
  if (result == AGENT_REFUSED) zmq_msg_close(&loaned);
  return result;
}

static void receive(agent_handler handler, void *context, int64_t timeout_ns) {
  int flags = timeout_ns ? 0 : ZMQ_DONTWAIT; /* otherwise the 100 ms of ZMQ_RCVTIMEO */
  for (int count = 0; count < RECEIVE_MAX; count++) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    const int size = zmq_msg_recv(&message, reader.socket, flags);
    if (size >= 0)
      handler(context, &(struct agent_message){.data = zmq_msg_data(&message),
                                               .size = (size_t)size});
    zmq_msg_close(&message);
    if (size < 0) return;
    flags = ZMQ_DONTWAIT;
  }
}

int main(int argc, char **argv) {
  static char version[32];
  int major, minor, patch;
  zmq_version(&major, &minor, &patch);
  snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
  const struct agent_adapter adapter = {
      .peer = "zeromq",
      .version = version,
      .transports = "default,tcp,ipc,pair-tcp,pair-ipc",
      .notifies = "waitset,poll",
      .types = "octets",
      .deliveries = "unicast",
      .check = check,
      .open = open_all,
      .close = close_all,
      .matched_readers = matched_readers,
      .matched_writers = matched_writers,
      .write = write_sample,
      .loan = loan,
      .write_loan = write_loan,
      .receive = receive,
  };
  return agent_main(argc, argv, &adapter);
}
