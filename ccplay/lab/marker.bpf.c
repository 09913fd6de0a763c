/* SPDX-License-Identifier: MIT
 *
 * Marks packets with CE (ECN) while the queue of the link is at or above a threshold.
 *
 * This is what DCTCP requires of a switch (Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010,
 * section 3.1; RFC 8257, section 3.1): one threshold K, compared with the queue at the arrival of a packet,
 * without averages
 *	queue >= K	mark the packet if it is ECN-capable (ECT, RFC 3168)
 *	queue <  K	leave it unchanged
 * It never drops a packet; a full queue drops as usual.
 *
 * K is in bytes. With segmentation offloads one packet in a queue stands for up to 64 KB on the wire, so a
 * count of packets would be meaningless. Such a packet is marked as a whole, by the queue that its last
 * segment finds, its own segments included; otherwise senders of the largest bursts would notice the least
 * of their own queue. It counts as many marks as it has segments: the receiver sees each of them marked.
 */
#include "vmlinux.h"

#define SEC(name) __attribute__((section(name), used))

/* Required by the kernel for the use of its functions. */
char _license[] SEC("license") = "Dual MIT/GPL";

#define LET_ON (-1) /* TCX_NEXT: continue to the queue */
#define TOS 1 /* offset of the type of service in an IPv4 header */
#define ECN 3 /* its ECN bits */
#define ECT_1 1
#define ECT_0 2
#define FROM_NETWORK_HEADER 1 /* BPF_HDR_START_NET */

static long (*skb_ecn_set_ce)(struct __sk_buff *skb) = (void *)97;
static long (*skb_load_bytes_relative)(const void *skb, u32 offset, void *to, u32 length,
				       u32 from) = (void *)68;
extern void *bpf_cast_to_kern_ctx(void *context) __attribute__((section(".ksyms")));

/* The lab writes the threshold and reads the marks. */
struct {
	u64 marks; /* segments marked so far */
	u64 threshold; /* bytes */
} marker;

SEC("tc")
int mark(struct __sk_buff *context)
{
	struct sk_buff *skb = bpf_cast_to_kern_ctx(context);
	u32 segments = context->gso_segs ? context->gso_segs : 1;
	u64 queue;
	u8 tos = 0;

	/* The backlog of all classes of the link, at the root of its queues, */
	queue = skb->dev->qdisc->qstats.backlog;
	/* plus this packet's segments before the last. */
	queue += context->wire_len - context->wire_len / segments;
	if (queue < marker.threshold)
		return LET_ON;
	if (skb_load_bytes_relative(context, TOS, &tos, sizeof(tos), FROM_NETWORK_HEADER))
		return LET_ON;
	/* A packet that is already marked does not count. */
	if ((tos & ECN) != ECT_0 && (tos & ECN) != ECT_1)
		return LET_ON;
	if (skb_ecn_set_ce(context))
		__sync_fetch_and_add(&marker.marks, segments);
	return LET_ON;
}
