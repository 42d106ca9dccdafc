/* Agent `limit`: UDP, TCP, AF_UNIX and a ring in shared memory, without a middleware. */
#include <pthread.h>
#include <string.h>
#include <sys/utsname.h>

#include "limit.h"

static const struct limit_transport *transport;

int limit_topic(const char *topic) {
  return !strcmp(topic, "Ping") ? 0 : !strcmp(topic, "Pong") ? 1 : 2;
}

int limit_expected_readers(const struct agent_options *options) {
  return strcmp(options->role, "pub") || options->n < 1 ? 1 : options->n;
}

uint16_t limit_port(const struct agent_options *options, const char *topic) {
  return (uint16_t)(20000 + options->domain * 4 + limit_topic(topic));
}

static const struct limit_transport *transport_of(const struct agent_options *options) {
  if (!strcmp(options->transport, "tcp") || !strcmp(options->transport, "unix"))
    return &limit_stream;
  return strcmp(options->transport, "shm") ? &limit_udp : &limit_ring;
}

static bool batches(const struct agent_options *options) {
  return strcmp(options->transport, "udp") && strcmp(options->transport, "default");
}

static const char *check(const struct agent_options *options) {
  transport = transport_of(options);
  if (options->depth) return "the operating system keeps no history: hist=all alone";
  if (options->loan && !transport->loan)
    return agent_text("transport=%s has no loans", options->transport);
  if (options->delivery != AGENT_UNICAST && transport != &limit_udp)
    return agent_text("transport=%s is for unicast alone", options->transport);
  if (options->peer && transport == &limit_ring)
    return "transport=shm does not leave the host";
  if (limit_expected_readers(options) > LIMIT_MAX_READERS)
    return agent_text("n is above %d readers", LIMIT_MAX_READERS);
  return transport->check(options);
}

static void *find_peers(void *unused) {
  (void)unused;
  while (!agent_stopping && transport->find_peers()) {
  }
  return NULL;
}

static const char *open_transport(const struct agent_options *options, const char *writes,
                                  const char *reads) {
  const char *why = transport->open(options, writes, reads);
  if (why) return why;
  pthread_t thread;
  if (pthread_create(&thread, NULL, find_peers, NULL)) return "no thread that finds peers";
  pthread_detach(thread);
  return NULL;
}

static int matched_readers(void) { return transport->matched_readers(); }
static int matched_writers(void) { return transport->matched_writers(); }
static enum agent_write write_sample(const void *data, size_t size) {
  return transport->write(data, size);
}
static void flush(void) {
  if (transport->flush) transport->flush();
}
static void *loan(size_t size) { return transport->loan(size); }
static enum agent_write write_loan(void *sample, size_t size) {
  return transport->write_loan(sample, size);
}
static void receive(agent_handler handler, void *context, int64_t timeout_ns) {
  transport->receive(handler, context, timeout_ns);
}
static void close_transport(void) { transport->close(); }

int main(int argc, char **argv) {
  static struct utsname kernel;
  uname(&kernel);
  const struct agent_adapter adapter = {
      .peer = "limit",
      .version = kernel.release,
      .transports = "default,udp,udp-mmsg,udp-gso,tcp,unix,shm",
      .notifies = "waitset,poll",
      .types = "octets",
      .deliveries = "unicast,multicast,broadcast",
      .batches = batches,
      .check = check,
      .open = open_transport,
      .close = close_transport,
      .matched_readers = matched_readers,
      .matched_writers = matched_writers,
      .write = write_sample,
      .flush = flush,
      .loan = loan,
      .write_loan = write_loan,
      .receive = receive,
  };
  return agent_main(argc, argv, &adapter);
}
