/* Round trips over UDP with blocking sockets and nothing else, for bias.py:
 *   pingpong pong PORT
 *   pingpong ping PORT SIZE WARMUP COUNT FILE
 * `ping` writes the round trips to FILE: ns, u64, little endian. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Of what is sent and of what is received: a sender's payload is not what it received. */
static char payload[65507], octets[65507];

static uint64_t now_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static void require(int is_true, const char *what) {
  if (is_true) return;
  perror(what);
  exit(1);
}

static void answer(int to) {
  struct sockaddr_in from;
  socklen_t length = sizeof from;
  require(recvfrom(to, octets, 1, MSG_PEEK, (struct sockaddr *)&from, &length) >= 0, "recvfrom");
  require(!connect(to, (struct sockaddr *)&from, length), "connect");
  for (;;) {
    const ssize_t size = recv(to, octets, sizeof octets, 0);
    require(size >= 0 && send(to, octets, (size_t)size, 0) == size, "recv and send");
  }
}

int main(int argc, char **argv) {
  const int is_ping = argc == 7 && !strcmp(argv[1], "ping");
  if (!is_ping && (argc != 3 || strcmp(argv[1], "pong"))) {
    fprintf(stderr, "pingpong pong PORT | ping PORT SIZE WARMUP COUNT FILE\n");
    return 2;
  }
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int to = socket(AF_INET, SOCK_DGRAM, 0);
  if (!is_ping) {
    require(!bind(to, (struct sockaddr *)&at, sizeof at), "bind");
    answer(to);
  }
  require(!connect(to, (struct sockaddr *)&at, sizeof at), "connect");
  const size_t size = strtoul(argv[3], NULL, 10), warmup = strtoul(argv[4], NULL, 10);
  const size_t count = strtoul(argv[5], NULL, 10);
  uint64_t *times = malloc((count + 1) * sizeof *times);
  FILE *out = fopen(argv[6], "wb");
  require(out && times && size <= sizeof octets, "arguments");
  memset(times, 1, count * sizeof *times);
  memset(payload, 1, sizeof payload);
  for (size_t trip = 0; trip < warmup + count; trip++) {
    const uint64_t sent_ns = now_ns();
    require(send(to, payload, size, 0) == (ssize_t)size, "send");
    require(recv(to, octets, sizeof octets, 0) == (ssize_t)size, "recv");
    const uint64_t received_ns = now_ns();
    if (trip >= warmup) times[trip - warmup] = received_ns - sent_ns;
  }
  require(fwrite(times, sizeof *times, count, out) == count && !fclose(out), "write");
}
