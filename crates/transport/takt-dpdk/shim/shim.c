/*
 * What Takt uses of DPDK, as functions that a linker can find: many of the originals are inline. Only plain C types cross this
 * border; results below zero are errors of errno's numbers, negated. Rust's side is src/ffi.rs; both change together.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <rte_version.h>

#include "memif.h"

struct takt_port_info {
    uint8_t mac[6];
    uint16_t mtu;
    /* Octets of the longest frame that arrives in one piece. */
    uint32_t frame_len_max;
    char driver[32];
};

struct takt_port_stats {
    uint64_t dropped_in;
    uint64_t malformed_in;
    uint64_t refused_out;
};

struct takt_part {
    uint8_t *bytes;
    uint32_t len;
    uint32_t room;
    uint32_t whole_len;
    uint32_t parts;
};

static int failure(int rc) {
    if (rc < 0 && rc != -1)
        return rc;
    return rte_errno != 0 ? -rte_errno : -EIO;
}

/* The version in words, and where the drivers are. May be asked before the start. */
const char *takt_dpdk_version(void) {
    return rte_version();
}

const char *takt_dpdk_drivers(void) {
    return RTE_EAL_PMD_PATH;
}

/*
 * On a thread of its own, whose threads have its scheduling. In real time it would wait for ever: DPDK sleeps a microsecond at
 * a time until its first thread runs, which never has its turn on the same processor.
 */
int takt_dpdk_init(int argc, char **argv) {
    struct sched_param ordinary = {0};
    int rc = pthread_setschedparam(pthread_self(), SCHED_OTHER, &ordinary);
    if (rc != 0)
        return -rc;
    return rte_eal_init(argc, argv) < 0 ? failure(-1) : 0;
}

/* Ports of net_memif that were started. */
static uint8_t is_memif[RTE_MAX_ETHPORTS];

static int attach(const char *device, const char *name, uint16_t *port, int *probed) {
    *probed = 0;
    rte_errno = 0;
    if (rte_eth_dev_get_port_by_name(name, port) == 0)
        return 0;
    int rc = rte_dev_probe(device);
    if (rc < 0)
        return failure(rc);
    *probed = 1;
    if (rte_eth_dev_get_port_by_name(name, port) == 0)
        return 0;
    return -ENODEV;
}

/* The number of a port by its device's name; probed first if need be, which `*probed` says. */
int takt_dpdk_attach(const char *device, const char *name, uint16_t *port, int *probed) {
    if (strncmp(name, "net_memif", strlen("net_memif")) != 0)
        return attach(device, name, port, probed);
    int rc = takt_memif_open();
    if (rc < 0)
        return rc;
    rc = attach(device, name, port, probed);
    takt_memif_leave();
    takt_memif_closed();
    return rc;
}

/* A ring for `size` frames (a power of two); NULL on failure. */
struct rte_ring *takt_dpdk_ring(const char *name, uint32_t size) {
    return rte_ring_create(name, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

/* Nobody may use the ring any more. */
void takt_dpdk_ring_free(struct rte_ring *ring) {
    void *frame;
    while (rte_ring_dequeue(ring, &frame) == 0)
        rte_pktmbuf_free(frame);
    rte_ring_free(ring);
}

/* A port that receives from one ring and sends into the other. */
int takt_dpdk_ring_port(const char *name, struct rte_ring *from, struct rte_ring *to, uint16_t *port) {
    int rc = rte_eth_from_rings(name, &from, 1, &to, 1, 0);
    if (rc < 0)
        return failure(rc);
    *port = (uint16_t)rc;
    return 0;
}

static int start(uint16_t port, const struct rte_eth_dev_info *info, struct rte_mempool *pool, uint16_t rx, uint16_t tx,
                 uint16_t mtu, struct takt_port_info *own) {
    struct rte_eth_conf conf;
    struct rte_ether_addr mac;
    memset(&conf, 0, sizeof conf);
    if (mtu != 0)
        conf.rxmode.mtu = mtu;
    /* Frames longer than an mbuf arrive as chains, from devices that can do that. */
    conf.rxmode.offloads = info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
    int rc = rte_eth_dev_configure(port, 1, 1, &conf);
    if (rc < 0)
        return failure(rc);
    rc = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
    if (rc < 0)
        return failure(rc);
    rc = rte_eth_rx_queue_setup(port, 0, rx, SOCKET_ID_ANY, NULL, pool);
    if (rc < 0)
        return failure(rc);
    rc = rte_eth_tx_queue_setup(port, 0, tx, SOCKET_ID_ANY, NULL);
    if (rc < 0)
        return failure(rc);
    if (mtu != 0) {
        /* Devices without a wire know no MTU; then what was asked for holds all the same. */
        rc = rte_eth_dev_set_mtu(port, mtu);
        if (rc < 0 && rc != -ENOTSUP)
            return failure(rc);
    }
    rc = rte_eth_dev_start(port);
    if (rc < 0)
        return failure(rc);
    rc = rte_eth_macaddr_get(port, &mac);
    if (rc < 0)
        return failure(rc);
    memcpy(own->mac, mac.addr_bytes, sizeof own->mac);
    if (mtu != 0 || rte_eth_dev_get_mtu(port, &own->mtu) < 0)
        own->mtu = mtu;
    own->frame_len_max = info->max_rx_pktlen;
    snprintf(own->driver, sizeof own->driver, "%s", info->driver_name != NULL ? info->driver_name : "");
    return 0;
}

/* Configures and starts a port with one queue each way. `mtu` 0 leaves the device's. */
int takt_dpdk_start(uint16_t port, struct rte_mempool *pool, uint16_t rx, uint16_t tx, uint16_t mtu,
                    struct takt_port_info *own) {
    struct rte_eth_dev_info info;
    int rc = rte_eth_dev_info_get(port, &info);
    if (rc < 0)
        return failure(rc);
    if (info.driver_name == NULL || strcmp(info.driver_name, "net_memif") != 0)
        return start(port, &info, pool, rx, tx, mtu, own);
    rc = takt_memif_open();
    if (rc < 0)
        return rc;
    is_memif[port] = 1;
    rc = start(port, &info, pool, rx, tx, mtu, own);
    takt_memif_leave();
    return rc;
}

/* Stops and closes a port, and lets its device go if `remove`. One of net_memif stays if nobody else lets us in. */
void takt_dpdk_close(uint16_t port, int remove) {
    struct rte_eth_dev_info info;
    memset(&info, 0, sizeof info);
    int is_known = rte_eth_dev_info_get(port, &info) == 0;
    if (is_memif[port] && takt_memif_enter_alone() != 0)
        return;
    rte_eth_dev_stop(port);
    rte_eth_dev_close(port);
    if (remove && is_known)
        rte_dev_remove(info.device);
    if (is_memif[port]) {
        is_memif[port] = 0;
        takt_memif_leave();
        takt_memif_closed();
    }
}

int takt_dpdk_promiscuous(uint16_t port) {
    return rte_eth_promiscuous_enable(port);
}

/* Has the device take frames to these groups: exactly, or to all groups, or all frames. Which: 0, 1, 2; 3 if it knows neither. */
int takt_dpdk_groups(uint16_t port, const uint8_t (*groups)[6], uint32_t count) {
    if (rte_eth_dev_set_mc_addr_list(port, (struct rte_ether_addr *)(uintptr_t)groups, count) == 0)
        return 0;
    if (rte_eth_allmulticast_enable(port) == 0)
        return 1;
    return rte_eth_promiscuous_enable(port) == 0 ? 2 : 3;
}

int takt_dpdk_link_is_up(uint16_t port) {
    struct rte_eth_link link;
    if (is_memif[port])
        takt_memif_turn();
    memset(&link, 0, sizeof link);
    return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

void takt_dpdk_stats(uint16_t port, struct takt_port_stats *own) {
    struct rte_eth_stats stats;
    memset(&stats, 0, sizeof stats);
    if (rte_eth_stats_get(port, &stats) == 0) {
        own->dropped_in = stats.imissed + stats.rx_nombuf;
        own->malformed_in = stats.ierrors;
        own->refused_out = stats.oerrors;
    }
}

/*
 * As rte_pktmbuf_pool_create does it, but for one thing: without hugepages no device reads memory by physical addresses, so
 * frames may cross the small pages. net_af_xdp relies on frames that lie close together.
 */
struct rte_mempool *takt_dpdk_pool(const char *name, uint32_t frames, uint16_t room) {
    struct rte_pktmbuf_pool_private own;
    memset(&own, 0, sizeof own);
    own.mbuf_data_room_size = room;
    unsigned flags = rte_eal_has_hugepages() ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG;
    struct rte_mempool *pool = rte_mempool_create_empty(name, frames, sizeof(struct rte_mbuf) + room, 0, sizeof own,
                                                        SOCKET_ID_ANY, flags);
    if (pool == NULL)
        return NULL;
    if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL) != 0)
        goto failed;
    rte_pktmbuf_pool_init(pool, &own);
    if (rte_mempool_populate_default(pool) < 0)
        goto failed;
    rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
    return pool;
failed:
    rte_mempool_free(pool);
    return NULL;
}

int takt_dpdk_pool_is_whole(const struct rte_mempool *pool) {
    return rte_mempool_full(pool);
}

struct rte_mbuf *takt_dpdk_alloc(struct rte_mempool *pool) {
    return rte_pktmbuf_alloc(pool);
}

void takt_dpdk_free(struct rte_mbuf *frame) {
    rte_pktmbuf_free(frame);
}

/* The first part of a frame; `room` is what it can hold from its first octet on. */
void takt_dpdk_part(const struct rte_mbuf *frame, struct takt_part *part) {
    part->bytes = rte_pktmbuf_mtod(frame, uint8_t *);
    part->len = rte_pktmbuf_data_len(frame);
    part->room = part->len + rte_pktmbuf_tailroom(frame);
    part->whole_len = rte_pktmbuf_pkt_len(frame);
    part->parts = frame->nb_segs;
}

/* For a frame of one part. */
void takt_dpdk_set_len(struct rte_mbuf *frame, uint16_t len) {
    frame->data_len = len;
    frame->pkt_len = len;
}

/* Copies a frame, all its parts, at most `room` octets; how many. */
uint32_t takt_dpdk_gather(const struct rte_mbuf *frame, uint8_t *into, uint32_t room) {
    uint32_t len = 0;
    for (; frame != NULL; frame = frame->next) {
        uint32_t part = rte_pktmbuf_data_len(frame);
        if (part > room - len)
            part = room - len;
        memcpy(into + len, rte_pktmbuf_mtod(frame, const uint8_t *), part);
        len += part;
    }
    return len;
}

uint16_t takt_dpdk_rx_burst(uint16_t port, struct rte_mbuf **frames, uint16_t count) {
    if (!is_memif[port])
        return rte_eth_rx_burst(port, 0, frames, count);
    if (!takt_memif_enter())
        return 0;
    count = rte_eth_rx_burst(port, 0, frames, count);
    takt_memif_leave();
    return count;
}

uint16_t takt_dpdk_tx_burst(uint16_t port, struct rte_mbuf **frames, uint16_t count) {
    if (!is_memif[port])
        return rte_eth_tx_burst(port, 0, frames, count);
    if (!takt_memif_enter())
        return 0;
    count = rte_eth_tx_burst(port, 0, frames, count);
    takt_memif_leave();
    return count;
}
