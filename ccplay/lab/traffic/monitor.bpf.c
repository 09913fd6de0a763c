/* SPDX-License-Identifier: MIT
 *
 * Measures the one-way delay of each packet of a flow, from IP in one host to IP in the other.
 *
 * Two programs at netfilter hooks. LOCAL_OUT, in the sending host, is passed when TCP or UDP hands a packet
 * to IP: before the host's queue, segmentation offload and fragmentation. LOCAL_IN, in the receiving host,
 * is passed after all delays and reassembly, when IP delivers the packet:
 *	delay = time at LOCAL_IN - time at LOCAL_OUT
 * Both hosts are namespaces of one kernel and share its clock.
 *
 * The IP identification distinguishes the packets of a connection: Linux increments it per connected
 * socket by 1 for each packet, or for each segment of a packet to be segmented. So a retransmission is
 * another packet, and the delay is that of the copy that arrived. The 16-bit number recurs after 65,536
 * packets; no lab has so many packets of one flow in flight.
 *
 * Packets also have a serial number. A packet is lost if a later one has arrived and it has not; packets in
 * flight are neither lost nor received.
 */
#define BPF_NO_PRESERVE_ACCESS_INDEX /* built for the running kernel */
#include "vmlinux.h"

#define SEC(name) __attribute__((section(name), used))
#define inline inline __attribute__((always_inline))

/* Required by the kernel for the use of its functions. */
char _license[] SEC("license") = "Dual MIT/GPL";

#define LET_ON 1 /* NF_ACCEPT */
#define LEAST_PAYLOAD 16 /* bytes; handshakes and acknowledgements have less */
#define MOST_FLOWS 1024
#define MOST_UNDER_WAY (1 << 17) /* 1 Gbit/s of full frames for 1.5 s */

static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*ktime_get_ns)(void) = (void *)5;
static long (*probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*loop)(u32 times, void *step, void *context, u64 flags) = (void *)181;

struct flow {
	u16 sport, dport; /* in network byte order */
	u32 protocol;
};

struct account {
	u64 sent; /* packets on the wire: each segment counts */
	u64 reached; /* the greatest serial number that arrived */
	u64 received; /* packets */
	u64 bytes; /* of their payload */
	u64 timed; /* packets whose delay is known */
	u64 delays; /* sum of their delays in us */
	u64 least;
	u64 greatest;
};

/* The lab adds a flow before its first packet, and reads the counters. */
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	struct flow *key;
	struct account *value;
	int (*max_entries)[MOST_FLOWS];
	int (*map_flags)[BPF_F_NO_PREALLOC];
} accounts SEC(".maps");

struct packet {
	struct flow flow;
	u32 id;
};

struct departure {
	u64 at_us;
	u64 serial; /* from 1 */
};

/* Lost packets stay until their place is needed (LRU). */
struct {
	int (*type)[BPF_MAP_TYPE_LRU_HASH];
	struct packet *key;
	struct departure *value;
	int (*max_entries)[MOST_UNDER_WAY];
} under_way SEC(".maps");

/* A packet at a hook. */
struct passing {
	struct account *account;
	struct packet packet; /* its first segment */
	struct departure departure;
	u64 now_us;
	u32 segments;
	u32 payload;
};

static inline int is_watched(struct sk_buff *skb, struct passing *passing)
{
	unsigned char *head = skb->head, *network = head + skb->network_header, *transport;
	u32 headers = sizeof(struct udphdr);
	struct flow *flow = &passing->packet.flow;
	u16 segments = 0;
	struct iphdr ip;
	u8 offset = 0;

	probe_read_kernel(&ip, sizeof(ip), network);
	transport = network + ip.ihl * 4;
	probe_read_kernel(flow, 2 * sizeof(u16), transport);
	flow->protocol = ip.protocol;
	passing->account = map_lookup_elem(&accounts, flow);
	if (!passing->account)
		return 0;
	if (ip.protocol == IPPROTO_TCP) {
		probe_read_kernel(&offset, sizeof(offset), transport + 12);
		headers = (offset >> 4) * 4;
	}
	headers += ip.ihl * 4;
	if (skb->len < headers + LEAST_PAYLOAD)
		return 0;
	probe_read_kernel(&segments, sizeof(segments),
			  head + skb->end + __builtin_offsetof(struct skb_shared_info, gso_segs));
	passing->packet.id = __builtin_bswap16(ip.id);
	passing->segments = segments ? segments : 1;
	passing->payload = skb->len - headers;
	passing->now_us = ktime_get_ns() / 1000;
	return 1;
}

static long depart(u32 number, void *context)
{
	struct passing *passing = context;

	map_update_elem(&under_way, &passing->packet, &passing->departure, BPF_ANY);
	passing->packet.id = (passing->packet.id + 1) & 0xffff;
	passing->departure.serial++;
	return 0;
}

SEC("netfilter/out")
int sent(struct bpf_nf_ctx *context)
{
	struct passing passing = {};

	if (!is_watched(context->skb, &passing))
		return LET_ON;
	passing.departure.at_us = passing.now_us;
	passing.departure.serial = 1 + __sync_fetch_and_add(&passing.account->sent, passing.segments);
	loop(passing.segments, depart, &passing, 0);
	return LET_ON;
}

static long arrive(u32 number, void *context)
{
	struct passing *passing = context;
	struct account *account = passing->account;
	struct departure *departure = map_lookup_elem(&under_way, &passing->packet);
	u64 delay, serial;

	if (departure && account) {
		delay = passing->now_us - departure->at_us;
		serial = departure->serial;
		map_delete_elem(&under_way, &passing->packet);
		if (!account->timed || delay < account->least)
			account->least = delay;
		if (delay > account->greatest)
			account->greatest = delay;
		if (serial > account->reached)
			account->reached = serial;
		account->delays += delay;
		account->timed++;
	}
	passing->packet.id = (passing->packet.id + 1) & 0xffff;
	return 0;
}

SEC("netfilter/in")
int received(struct bpf_nf_ctx *context)
{
	struct passing passing = {};

	if (!is_watched(context->skb, &passing))
		return LET_ON;
	/* The packets of a flow arrive in sequence, so this needs no atomic operation. */
	passing.account->received += passing.segments;
	passing.account->bytes += passing.payload;
	loop(passing.segments, arrive, &passing, 0);
	return LET_ON;
}
