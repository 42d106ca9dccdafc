/* UDP: one datagram a sample, sendmmsg, and segmentation offload (GSO on send, GRO on receive).
 *
 * A reader sends its port to the port of the writer until the writer confirms it. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "limit.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif
#define MAX_DATAGRAM 65507
#define MAX_SEGMENTS 64 /* of one send, before Linux 6.9 */
#define BUFFER_BYTES (4 << 20)

enum mode { DATAGRAM, MMSG, GSO };
struct greeting {
  char magic[6];
  uint16_t port; /* host byte order: both hosts are little-endian */
};
static const char MAGIC[6] = "takt-a";

static enum mode mode;
static const struct agent_options *options;
static int writer_control = -1, reader_control = -1, data = -1;
static struct sockaddr_in writer_address; /* of the matched writer */
static struct greeting own;
static atomic_int readers, writers;
static struct sockaddr_in known[LIMIT_MAX_READERS];
static int destinations[LIMIT_MAX_READERS]; /* connected sockets */
static atomic_int destination_count;
static unsigned char *queue; /* of a batch */
static size_t queued, queued_size;

static struct sockaddr_in address(const char *text, uint16_t port) {
  struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, text, &result.sin_addr);
  return result;
}

static int bound_socket(struct sockaddr_in at) {
  const int on = 1, bytes = BUFFER_BYTES, opened = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const char *where = inet_ntoa(at.sin_addr);
  if (opened < 0) agent_fail("UDP socket: %s", strerror(errno));
  if (options->delivery != AGENT_UNICAST)
    setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(opened, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  setsockopt(opened, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  if (bind(opened, (struct sockaddr *)&at, sizeof at))
    agent_fail("bind to %s UDP port %d: %s", where, ntohs(at.sin_port), strerror(errno));
  return opened;
}

static struct sockaddr_in group_of(const char *topic) {
  const uint16_t port = (uint16_t)(limit_port(options, topic) + 1000);
  char group[32];
  snprintf(group, sizeof group, "239.255.84.%d", 1 + limit_topic(topic));
  if (options->delivery == AGENT_MULTICAST) return address(group, port);
  struct ifreq request = {0};
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", options->iface);
  if (ioctl(writer_control >= 0 ? writer_control : reader_control, SIOCGIFNETMASK, &request))
    agent_fail("netmask of iface=%s: %s", options->iface, strerror(errno));
  const struct sockaddr_in *mask = (const struct sockaddr_in *)(const void *)&request.ifr_netmask;
  struct sockaddr_in result = address(options->addr, port);
  result.sin_addr.s_addr |= ~mask->sin_addr.s_addr;
  return result;
}

static void add_destination(struct sockaddr_in to) {
  const int at = destination_count, on = 1;
  const int out = bound_socket(address(options->addr, 0));
  const struct in_addr interface = address(options->addr, 0).sin_addr;
  setsockopt(out, SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
  setsockopt(out, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface);
  if (connect(out, (struct sockaddr *)&to, sizeof to))
    agent_fail("connect to %s: %s", inet_ntoa(to.sin_addr), strerror(errno));
  destinations[at] = out;
  destination_count = at + 1;
}

static void open_reader(const char *topic) {
  const struct timeval timeout = {.tv_usec = 100000};
  const int on = 1;
  reader_control = bound_socket(address(options->addr, 0));
  writer_address = address(options->peer ? options->peer : options->addr,
                           limit_port(options, topic));
  if (options->delivery == AGENT_UNICAST) {
    data = bound_socket(address(options->addr, 0));
  } else {
    const struct sockaddr_in group = group_of(topic);
    data = bound_socket(group);
    const struct ip_mreq join = {group.sin_addr, address(options->addr, 0).sin_addr};
    if (options->delivery == AGENT_MULTICAST &&
        setsockopt(data, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join))
      agent_fail("join %s at %s: %s", inet_ntoa(group.sin_addr), options->addr, strerror(errno));
  }
  setsockopt(data, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  if (mode == GSO && setsockopt(data, IPPROTO_UDP, UDP_GRO, &on, sizeof on))
    agent_fail("UDP_GRO: %s", strerror(errno));
  struct sockaddr_in bound;
  socklen_t length = sizeof bound;
  getsockname(data, (struct sockaddr *)&bound, &length);
  memcpy(own.magic, MAGIC, sizeof own.magic);
  own.port = ntohs(bound.sin_port);
}

static const char *udp_check(const struct agent_options *given) {
  if (given->reliable) return "UDP does not repeat lost datagrams: rel=reliable is not possible";
  if (given->max_size > MAX_DATAGRAM)
    return agent_text("size=%zu is above %d octets of a UDP datagram", given->max_size,
                      MAX_DATAGRAM);
  return NULL;
}

static const char *udp_open(const struct agent_options *given, const char *writes,
                            const char *reads) {
  options = given;
  mode = !strcmp(options->transport, "udp-gso")    ? GSO
         : !strcmp(options->transport, "udp-mmsg") ? MMSG
                                                   : DATAGRAM;
  queue = malloc((size_t)options->batch * options->max_size + MAX_DATAGRAM);
  if (!queue) return "no memory for a batch";
  if (writes) {
    writer_control = bound_socket(address(options->addr, limit_port(options, writes)));
    if (options->delivery != AGENT_UNICAST) add_destination(group_of(writes));
  }
  if (reads) open_reader(reads);
  return NULL;
}

static void greet(const struct sockaddr_in *from, const struct greeting *greeting) {
  struct sockaddr_in reader = *from;
  reader.sin_port = htons(greeting->port);
  const int count = readers;
  bool is_new = count < LIMIT_MAX_READERS;
  /* Readers of one multicast port have one address: the control port tells them apart. */
  for (int at = 0; at < count; at++)
    if (known[at].sin_port == from->sin_port &&
        known[at].sin_addr.s_addr == from->sin_addr.s_addr)
      is_new = false;
  if (is_new) {
    if (options->delivery == AGENT_UNICAST) add_destination(reader);
    known[count] = *from;
    readers = count + 1;
  }
  sendto(writer_control, greeting, sizeof *greeting, 0, (const struct sockaddr *)from,
         sizeof *from);
}

static bool udp_find_peers(void) {
  const bool greets = reader_control >= 0 && !writers;
  if (greets)
    sendto(reader_control, &own, sizeof own, 0, (struct sockaddr *)&writer_address,
           sizeof writer_address);
  struct pollfd waits[2] = {{.fd = writer_control, .events = POLLIN},
                            {.fd = reader_control, .events = POLLIN}};
  if (poll(waits, 2, greets ? 10 : -1) <= 0) return true;
  for (int at = 0; at < 2; at++) {
    struct greeting greeting;
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    if (!(waits[at].revents & (POLLIN | POLLERR))) continue;
    if (recvfrom(waits[at].fd, &greeting, sizeof greeting, MSG_DONTWAIT, (struct sockaddr *)&from,
                 &length) != sizeof greeting ||
        memcmp(greeting.magic, MAGIC, sizeof MAGIC))
      continue;
    if (at == 0) greet(&from, &greeting);
    else writers = 1;
  }
  return true;
}

static int udp_readers(void) { return readers; }
static int udp_writers(void) { return writers; }

static enum agent_write send_to_all(const void *octets, size_t size) {
  for (int at = 0; at < destination_count; at++) {
    ssize_t sent = send(destinations[at], octets, size, 0);
    /* The error of an earlier datagram: its reader has gone. */
    if (sent < 0 && errno == ECONNREFUSED) sent = send(destinations[at], octets, size, 0);
    if (sent >= 0 || errno == ECONNREFUSED) continue;
    if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) return AGENT_REFUSED;
    agent_fail("send %zu octets: %s", size, strerror(errno));
  }
  return AGENT_WRITTEN;
}

static void send_mmsg(void) {
  static struct mmsghdr headers[AGENT_MAX_BATCH];
  static struct iovec parts[AGENT_MAX_BATCH];
  for (size_t at = 0; at < queued; at++) {
    parts[at] = (struct iovec){queue + at * queued_size, queued_size};
    headers[at].msg_hdr = (struct msghdr){.msg_iov = &parts[at], .msg_iovlen = 1};
  }
  for (int to = 0; to < destination_count; to++)
    for (size_t done = 0; done < queued;) {
      const int sent =
          sendmmsg(destinations[to], headers + done, (unsigned)(queued - done), 0);
      if (sent < 0 && errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
        agent_fail("sendmmsg: %s", strerror(errno));
      done += sent > 0 ? (size_t)sent : 1;
    }
}

static void send_segments(const unsigned char *from, size_t samples) {
  union {
    struct cmsghdr align;
    char octets[CMSG_SPACE(sizeof(uint16_t))];
  } control = {0};
  struct iovec part = {(void *)from, samples * queued_size};
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                          .msg_controllen = sizeof control};
  struct cmsghdr *segment = CMSG_FIRSTHDR(&header);
  const uint16_t size = (uint16_t)queued_size;
  segment->cmsg_level = IPPROTO_UDP;
  segment->cmsg_type = UDP_SEGMENT;
  segment->cmsg_len = CMSG_LEN(sizeof size);
  memcpy(CMSG_DATA(segment), &size, sizeof size);
  for (int to = 0; to < destination_count; to++)
    if (sendmsg(destinations[to], &header, 0) < 0 && errno != ECONNREFUSED && errno != EAGAIN)
      agent_fail("send with UDP_SEGMENT=%d: %s; segments must fit the MTU", size,
                 strerror(errno));
}

static void udp_flush(void) {
  if (!queued) return;
  if (mode == MMSG) {
    send_mmsg();
  } else {
    const size_t fit = MAX_DATAGRAM / queued_size;
    const size_t most = fit < MAX_SEGMENTS ? fit : MAX_SEGMENTS;
    for (size_t done = 0; done < queued; done += most)
      send_segments(queue + done * queued_size, queued - done < most ? queued - done : most);
  }
  queued = 0;
}

static enum agent_write udp_write(const void *octets, size_t size) {
  if (mode == DATAGRAM || options->batch == 1) return send_to_all(octets, size);
  if (queued && queued_size != size) udp_flush();
  queued_size = size;
  memcpy(queue + queued++ * size, octets, size);
  if (queued == (size_t)options->batch) udp_flush();
  return AGENT_WRITTEN;
}

static void receive_mmsg(agent_handler handler, void *context, int flags) {
  enum { AT_ONCE = 32 };
  static unsigned char buffers[AT_ONCE][MAX_DATAGRAM];
  static struct mmsghdr headers[AT_ONCE];
  static struct iovec parts[AT_ONCE];
  for (int at = 0; at < AT_ONCE; at++) {
    parts[at] = (struct iovec){buffers[at], MAX_DATAGRAM};
    headers[at].msg_hdr = (struct msghdr){.msg_iov = &parts[at], .msg_iovlen = 1};
  }
  const int received = recvmmsg(data, headers, AT_ONCE, flags | MSG_WAITFORONE, NULL);
  for (int at = 0; at < received; at++)
    handler(context, &(struct agent_message){.data = buffers[at], .size = headers[at].msg_len});
}

static void receive_segments(agent_handler handler, void *context, int flags) {
  static unsigned char buffer[1 << 16];
  union {
    struct cmsghdr align;
    char octets[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec part = {buffer, sizeof buffer};
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                          .msg_controllen = sizeof control};
  const ssize_t received = recvmsg(data, &header, flags);
  if (received <= 0) return;
  const struct cmsghdr *found = CMSG_FIRSTHDR(&header);
  int segment = (int)received;
  if (found && found->cmsg_level == IPPROTO_UDP && found->cmsg_type == UDP_GRO)
    memcpy(&segment, CMSG_DATA(found), sizeof segment);
  for (ssize_t at = 0; at < received; at += segment) {
    const ssize_t rest = received - at;
    handler(context, &(struct agent_message){.data = buffer + at,
                                             .size = (size_t)(rest < segment ? rest : segment)});
  }
}

static void udp_receive(agent_handler handler, void *context, int64_t timeout_ns) {
  static unsigned char buffer[1 << 16];
  const int flags = timeout_ns ? 0 : MSG_DONTWAIT; /* otherwise the 100 ms of SO_RCVTIMEO */
  if (mode == MMSG) {
    receive_mmsg(handler, context, flags);
  } else if (mode == GSO) {
    receive_segments(handler, context, flags);
  } else {
    const ssize_t size = recv(data, buffer, sizeof buffer, flags);
    if (size >= 0)
      handler(context, &(struct agent_message){.data = buffer, .size = (size_t)size});
  }
}

static void udp_close(void) {}

const struct limit_transport limit_udp = {
    .check = udp_check,
    .open = udp_open,
    .find_peers = udp_find_peers,
    .matched_readers = udp_readers,
    .matched_writers = udp_writers,
    .write = udp_write,
    .flush = udp_flush,
    .receive = udp_receive,
    .close = udp_close,
};
