/* TCP with TCP_NODELAY and AF_UNIX: a stream of samples, each after its length (u32). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "limit.h"

#define RECEIVE_BYTES ((size_t)256 << 10)

struct name {
  union {
    struct sockaddr any;
    struct sockaddr_in tcp;
    struct sockaddr_un local;
  };
  socklen_t length;
};

static const struct agent_options *options;
static bool tcp;
static int listener = -1;
static _Atomic int incoming = -1; /* connection to the writer */
static struct name writer_name;
static bool connects;
static int connections[LIMIT_MAX_READERS];
static atomic_int connection_count;
static unsigned char *queue, *received;
static size_t queued, queue_bytes, received_bytes, received_capacity;

static struct name name_of(const char *host, const char *topic) {
  struct name name = {0};
  if (tcp) {
    name.tcp.sin_family = AF_INET;
    name.tcp.sin_port = htons(limit_port(options, topic));
    inet_pton(AF_INET, host, &name.tcp.sin_addr);
    name.length = sizeof name.tcp;
  } else {
    /* An abstract name: it ends with its socket and belongs to the network namespace. */
    name.local.sun_family = AF_UNIX;
    const int length = snprintf(name.local.sun_path + 1, sizeof name.local.sun_path - 1,
                                "takt-agent-%d-%s", options->domain, topic);
    name.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  }
  return name;
}

static int stream_socket(void) {
  const int on = 1;
  const int opened = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (opened < 0) agent_fail("stream socket: %s", strerror(errno));
  if (tcp) setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return opened;
}

static void configure(int connection) {
  const int on = 1;
  const struct timeval receive = {.tv_usec = 100000}, send = {.tv_sec = 10};
  if (tcp) setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &receive, sizeof receive);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &send, sizeof send);
}

static const char *stream_check(const struct agent_options *given) {
  (void)given;
  return NULL;
}

static const char *stream_open(const struct agent_options *given, const char *writes,
                               const char *reads) {
  options = given;
  tcp = !strcmp(options->transport, "tcp");
  queue_bytes = (size_t)options->batch * (options->max_size + 4);
  received_capacity = RECEIVE_BYTES + options->max_size + 4;
  queue = malloc(queue_bytes);
  received = malloc(received_capacity);
  if (!queue || !received) return "no memory for buffers";
  if (writes) {
    const struct name name = name_of(options->addr, writes);
    listener = stream_socket();
    if (bind(listener, &name.any, name.length) || listen(listener, LIMIT_MAX_READERS))
      return agent_text("listen as writer of %s in domain %d: %s", writes, options->domain,
                        strerror(errno));
  }
  if (reads) {
    writer_name = name_of(options->peer ? options->peer : options->addr, reads);
    connects = true;
  }
  return NULL;
}

static void connect_to_writer(void) {
  const int connection = stream_socket();
  if (connect(connection, &writer_name.any, writer_name.length)) {
    close(connection);
    return;
  }
  configure(connection);
  incoming = connection;
}

static bool stream_find_peers(void) {
  const bool searching = connects && incoming < 0;
  if (searching) connect_to_writer();
  struct pollfd wait = {.fd = listener, .events = POLLIN};
  if (poll(&wait, 1, searching ? 10 : listener < 0 ? 0 : -1) > 0) {
    const int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    const int count = connection_count;
    if (connection >= 0 && count < LIMIT_MAX_READERS) {
      configure(connection);
      connections[count] = connection;
      connection_count = count + 1;
    } else if (connection >= 0) {
      close(connection);
    }
  }
  return listener >= 0 || (connects && incoming < 0);
}

static int stream_readers(void) { return connection_count; }
static int stream_writers(void) { return incoming >= 0; }

/* A reader that has gone gets nothing more. */
static void send_all(int connection, struct iovec *parts, int count) {
  struct msghdr header = {.msg_iov = parts, .msg_iovlen = (size_t)count};
  while (header.msg_iovlen) {
    ssize_t sent = sendmsg(connection, &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return;
    if (sent < 0) agent_fail("send over a stream: %s", strerror(errno));
    while (header.msg_iovlen && (size_t)sent >= header.msg_iov->iov_len) {
      sent -= (ssize_t)header.msg_iov->iov_len;
      header.msg_iov++;
      header.msg_iovlen--;
    }
    if (header.msg_iovlen) {
      header.msg_iov->iov_base = (char *)header.msg_iov->iov_base + sent;
      header.msg_iov->iov_len -= (size_t)sent;
    }
  }
}

static void stream_flush(void) {
  for (int at = 0; queued && at < connection_count; at++)
    send_all(connections[at], &(struct iovec){queue, queued}, 1);
  queued = 0;
}

static enum agent_write stream_write(const void *octets, size_t size) {
  uint32_t length = (uint32_t)size;
  if (options->batch > 1) {
    if (queued + size + sizeof length > queue_bytes) stream_flush();
    memcpy(queue + queued, &length, sizeof length);
    memcpy(queue + queued + sizeof length, octets, size);
    queued += size + sizeof length;
    return AGENT_WRITTEN;
  }
  for (int at = 0; at < connection_count; at++)
    send_all(connections[at],
             (struct iovec[]){{&length, sizeof length}, {(void *)octets, size}}, 2);
  return AGENT_WRITTEN;
}

static void stream_receive(agent_handler handler, void *context, int64_t timeout_ns) {
  if (incoming < 0) {
    agent_sleep_ns(timeout_ns ? 1000000 : 0);
    return;
  }
  const ssize_t size = recv(incoming, received + received_bytes, received_capacity - received_bytes,
                            timeout_ns ? 0 : MSG_DONTWAIT);
  if (size == 0 && timeout_ns) agent_sleep_ns((uint64_t)timeout_ns); /* the writer has gone */
  if (size <= 0) return;
  received_bytes += (size_t)size;
  size_t at = 0;
  for (uint32_t length; received_bytes - at >= sizeof length; at += sizeof length + length) {
    memcpy(&length, received + at, sizeof length);
    if (length + sizeof length > received_capacity)
      agent_fail("a sample of %u octets is above size=%zu", length, options->max_size);
    if (received_bytes - at < sizeof length + length) break;
    handler(context, &(struct agent_message){.data = received + at + sizeof length,
                                             .size = length});
  }
  received_bytes -= at;
  memmove(received, received + at, received_bytes);
}

static void stream_close(void) { stream_flush(); }

const struct limit_transport limit_stream = {
    .check = stream_check,
    .open = stream_open,
    .find_peers = stream_find_peers,
    .matched_readers = stream_readers,
    .matched_writers = stream_writers,
    .write = stream_write,
    .flush = stream_flush,
    .receive = stream_receive,
    .close = stream_close,
};
