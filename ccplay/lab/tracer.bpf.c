/* SPDX-License-Identifier: MIT
 *
 * Records the state of chosen connections at each segment that their sender receives.
 *
 * It runs at two of the kernel's tracepoints (include/trace/events/tcp.h):
 *	tcp_probe		a segment arrived at an established connection and is not yet processed
 *	tcp_cong_state_set	the congestion state changes, by an ACK or a timer
 * The kernel processes the segments of a connection in sequence, so its records are in order of time.
 *
 * Each record has the kernel's count of segments, so that missing records can be counted.
 *
 * perf_event_open(2) offers the same tracepoints. But some kernels report nothing to it from an idle CPU,
 * where most ACKs of a light load arrive.
 */
#include "vmlinux.h"

#define SEC(name) __attribute__((section(name), used))

/* Required by the kernel for the use of its functions. */
char _license[] SEC("license") = "Dual MIT/GPL";

static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*ktime_get_ns)(void) = (void *)5;
static u64 (*get_socket_cookie)(void *sk) = (void *)46;
static long (*probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static void *(*ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *record, u64 flags) = (void *)132;
static struct tcp_sock *(*skc_to_tcp_sock)(void *sk) = (void *)137;

#define WAKE_NOBODY 1 /* BPF_RB_NO_WAKEUP: the lab reads the ring at every sweep */

/* A traced sender: a port of a network namespace. The lab writes these. */
struct sender {
	u32 namespace; /* inode number of /proc/PID/ns/net */
	u32 port;
};

struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	int (*map_flags)[BPF_F_NO_PREALLOC];
	int (*max_entries)[65536];
	struct sender *key;
	u8 *value;
} senders SEC(".maps");

struct record {
	u64 ns; /* of CLOCK_MONOTONIC */
	u64 cookie; /* of the socket */
	u32 cwnd;
	u32 ssthresh;
	u32 snd_wnd;
	u32 srtt_us;
	u32 segs_in; /* all segments received, also those in the backlog, where ACKs may be merged */
	u16 segments; /* segments merged into this one; 0 for a change of state */
	u8 ca_state;
};

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 20];
} ring SEC(".maps");

/* Segments as counted by tcp_segs_in() of include/net/tcp.h. */
static inline __attribute__((always_inline)) u16 segments_in(struct sk_buff *skb)
{
	struct skb_shared_info *shared = (void *)skb->head + skb->end;
	u16 segments = 0;

	probe_read_kernel(&segments, sizeof(segments), &shared->gso_segs);
	return segments ? segments : 1;
}

static inline __attribute__((always_inline)) void keep(struct sock *sk, struct sk_buff *skb, u8 ca_state)
{
	struct sender sender = {
		.namespace = sk->__sk_common.skc_net.net->ns.inum,
		.port = sk->__sk_common.skc_num,
	};
	struct tcp_sock *tp;
	struct record *record;

	/* tcp_probe does not run once either side has closed: then skip both. */
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED || !map_lookup_elem(&senders, &sender))
		return;
	tp = skc_to_tcp_sock(sk);
	if (!tp)
		return;
	record = ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record)
		return;
	record->ns = ktime_get_ns();
	record->cookie = get_socket_cookie(sk);
	record->cwnd = tp->snd_cwnd;
	record->ssthresh = tp->snd_ssthresh;
	record->snd_wnd = tp->snd_wnd;
	record->srtt_us = tp->srtt_us >> 3;
	record->segs_in = tp->segs_in;
	record->segments = skb ? segments_in(skb) : 0;
	record->ca_state = skb ? tp->inet_conn.icsk_ca_state : ca_state;
	ringbuf_submit(record, WAKE_NOBODY);
}

/* The kernel passes arguments as an array of 64-bit words. */
SEC("tp_btf/tcp_probe")
int tcp_probe(u64 *words)
{
	keep((struct sock *)words[0], (struct sk_buff *)words[1], 0);
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int tcp_cong_state_set(u64 *words)
{
	keep((struct sock *)words[0], 0, words[1]);
	return 0;
}
