/* SPDX-License-Identifier: MIT
 *
 * Marks packets with ECN's CE while a threshold or more waits in front of the link.
 *
 * It is what DCTCP asks of a switch (Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section
 * 3.1; RFC 8257, section 3.1): one threshold K, the queue as it stands when a packet comes, no averages
 *	queue >= K	mark the packet, where its sender can use that (ECT, RFC 3168)
 *	queue <  K	leave it as it is
 * and nothing is ever dropped for it: what the queue has no room for is dropped as always.
 *
 * K is kept in bytes. With segmentation offloads one packet in a queue stands for up to 64 KB of the
 * wire, so that a number of packets would say nothing. Such a packet is marked as a whole, for what its
 * last segment finds, its own segments included: else those who send in the largest bursts would see
 * the least of the queue that they make. It counts as the segments in it, each of which the receiver
 * will see marked.
 */
#include "vmlinux.h"

#define SEC(name) __attribute__((section(name), used))

/* As the kernel asks before it lends its functions. */
char _license[] SEC("license") = "Dual MIT/GPL";

#define LET_ON (-1) /* TCX_NEXT: on to the queue */
#define TOS 1 /* where an IPv4 header has the type of service, */
#define ECN 3 /* and the bits of ECN in it: */
#define ECT_1 1
#define ECT_0 2
#define FROM_NETWORK_HEADER 1 /* BPF_HDR_START_NET */

static long (*skb_ecn_set_ce)(struct __sk_buff *skb) = (void *)97;
static long (*skb_load_bytes_relative)(const void *skb, u32 offset, void *to, u32 length,
				       u32 from) = (void *)68;
extern void *bpf_cast_to_kern_ctx(void *context) __attribute__((section(".ksyms")));

/* The lab writes the one and reads the other. */
struct {
	u64 marks; /* segments, since the beginning */
	u64 threshold; /* bytes */
} marker;

SEC("tc")
int mark(struct __sk_buff *context)
{
	struct sk_buff *skb = bpf_cast_to_kern_ctx(context);
	u32 segments = context->gso_segs ? context->gso_segs : 1;
	u64 queue;
	u8 tos = 0;

	/* At the root of the link's queues, so of all its classes together, */
	queue = skb->dev->qdisc->qstats.backlog;
	/* and in front of the last segment. */
	queue += context->wire_len - context->wire_len / segments;
	if (queue < marker.threshold)
		return LET_ON;
	if (skb_load_bytes_relative(context, TOS, &tos, sizeof(tos), FROM_NETWORK_HEADER))
		return LET_ON;
	/* One that has a mark already is not ours to count. */
	if ((tos & ECN) != ECT_0 && (tos & ECN) != ECT_1)
		return LET_ON;
	if (skb_ecn_set_ce(context))
		__sync_fetch_and_add(&marker.marks, segments);
	return LET_ON;
}
