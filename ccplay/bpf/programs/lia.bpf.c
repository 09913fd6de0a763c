/* SPDX-License-Identifier: MIT
 *
 * LIA: couples the subflows of an MPTCP connection: together they take what one TCP flow would.
 *
 * RFC 6356, Coupled Congestion Control for Multipath Transport Protocols, section 3. Slow start and what
 * a loss does are Reno's. In congestion avoidance each segment acknowledged on subflow i grows cwnd_i by
 *	min(alpha / cwnd_total, 1 / cwnd_i)
 *	alpha = cwnd_total * max(cwnd_k / rtt_k^2) / (sum of cwnd_k / rtt_k)^2
 * so cwnd_i grows by one for every max(w, cwnd_i) segments, with
 *	w = (sum of cwnd_k / rtt_k)^2 / max(cwnd_k / rtt_k^2)
 * Over n subflows of one RTT and one cwnd each, w is n^2 cwnd_i: all n grow as fast as one Reno does
 * over n times the window. On a connection without subflows w is cwnd, and it is Reno.
 *
 * What the subflows of a connection have stands in a map, by the connection's address in the kernel. One
 * that has had nothing acknowledged for two seconds does not count: its path is down, or it has ended.
 */
#include "ccplay_cc.h"

#define SUBFLOWS 8
#define FRESH_US 2000000
#define ONE 256 /* what counts as 1 of fractions */
#define LARGEST_SUM 0xffffffffULL /* whose square has 64 bits */

struct subflow {
	u32 cwnd, rtt_us;
	u64 seen_us;
};

struct connection {
	struct subflow subflows[SUBFLOWS];
};

struct {
	int (*type)[BPF_MAP_TYPE_LRU_HASH];
	int (*max_entries)[1024];
	u64 *key;
	struct connection *value;
} connections SEC(".maps");

static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;

SHOWN("lia_needed_segments lia_total_segments");

/* The MPTCP connection that a socket is a subflow of, and which of its subflows; 0 for plain TCP. */
static __always_inline u64 connection_of(const struct sock *sk, u32 *place)
{
	const struct mptcp_subflow_context *context = inet_csk(sk)->icsk_ulp_data;
	u64 connection = 0;
	u32 number = 0;

	if (!tcp_sk(sk)->is_mptcp || !context)
		return 0;
	if (bpf_probe_read_kernel(&connection, sizeof(connection), &context->conn) ||
	    bpf_probe_read_kernel(&number, sizeof(number), &context->subflow_id))
		return 0;
	*place = number % SUBFLOWS;
	return connection;
}

static __always_inline bool counts(const struct subflow *s, u64 now)
{
	return s->cwnd && s->rtt_us && now - s->seen_us <= FRESH_US;
}

/* w, with RTTs relative to the least of them; *total is the cwnd of all subflows. */
static __always_inline u32 needed(const struct connection *c, u64 now, u32 *total)
{
	u64 sum = 0, most = 1, w;
	u32 shortest = 0;

	*total = 0;
	for (int k = 0; k < SUBFLOWS; k++) {
		if (counts(&c->subflows[k], now))
			shortest = least(shortest, c->subflows[k].rtt_us);
	}
	for (int k = 0; k < SUBFLOWS; k++) {
		const struct subflow *s = &c->subflows[k];
		u64 share;

		if (!counts(s, now))
			continue;
		share = (u64)s->cwnd * ONE * shortest / s->rtt_us;
		most = max(most, share * shortest / s->rtt_us);
		sum += share;
		*total += s->cwnd;
	}
	sum = min(sum, LARGEST_SUM);
	w = sum * sum / most / ONE;
	return min(w, (u64)LARGEST_CWND);
}

CONG_AVOID(sk, ack, acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c, fresh = {};
	u32 place = 0, total = tp->snd_cwnd, w = 1;
	u64 connection = connection_of(sk, &place);

	if (connection) {
		c = bpf_map_lookup_elem(&connections, &connection);
		if (!c) {
			bpf_map_update_elem(&connections, &connection, &fresh, 0);
			c = bpf_map_lookup_elem(&connections, &connection);
		}
		if (c && place < SUBFLOWS && srtt_us(tp)) {
			c->subflows[place].cwnd = tp->snd_cwnd;
			c->subflows[place].rtt_us = srtt_us(tp);
			c->subflows[place].seen_us = now_us(tp);
			w = needed(c, now_us(tp), &total);
		}
	}
	acked = slow_start(tp, acked);
	if (!acked)
		return;
	w = max(w, tp->snd_cwnd);
	tcp_cong_avoid_ai(tp, w, acked);
	SHOW(sk, w, total);
}

SSTHRESH(sk)
{
	return reno_ssthresh(sk);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL lia = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.name = NAME,
};
