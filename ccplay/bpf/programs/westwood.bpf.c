/* SPDX-License-Identifier: MIT
 *
 * Westwood: Reno that falls, on loss, to the bandwidth that each ACK indicates; for wireless links.
 *
 * Mascolo, Casetti, Gerla, Sanadidi, Wang, TCP Westwood: Bandwidth Estimation for Enhanced Transport
 * over Wireless Links, MobiCom 2001. Each ACK is a sample of the bandwidth, and a low-pass filter
 * (Tustin's, of a time constant tau) makes an estimate of them:
 *	b_k = d_k / D_k				d_k segments were acknowledged D_k after the last ACK
 *	B_k = a_k * B_(k-1) + (1 - a_k) * (b_k + b_(k-1)) / 2,   a_k = (2 tau - D_k) / (2 tau + D_k)
 * Loss:
 *	ssthresh = B * RTT_min			what the path holds without a queue; cwnd at the most
 * ACKs that come bunched make samples that are far too high, which is why Westwood+ came after it:
 * see westwood-plus.bpf.c. The kernel's module `westwood` is Westwood+, too.
 */
#include "ccplay_cc.h"

#define TAU_US 500000ULL

struct westwood {
	u64 estimate; /* B, segments a second, times 256 */
	u64 sample; /* b_(k-1), the same */
	u64 last_us; /* when the last ACK came */
	u32 last_delivered;
	u32 rtt_min;
};

SHOWN("westwood_bandwidth_bps westwood_rtt_min_us westwood_holds_segments");

/* B * RTT_min, in segments. */
static __always_inline u32 holds(const struct westwood *w)
{
	return (w->estimate * w->rtt_min / 1000000) >> 8;
}

PKTS_ACKED(sk, sample)
{
	struct westwood *w = PRIVATE(sk, struct westwood);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = now_us(tp), passed = now - w->last_us, now_is, weight;

	if (sample->rtt_us > 0)
		w->rtt_min = least(w->rtt_min, sample->rtt_us);
	if (!w->last_us) {
		w->last_us = now;
		w->last_delivered = tp->delivered;
		return;
	}
	if (!passed)
		return; /* with the next */
	now_is = ((u64)(tp->delivered - w->last_delivered) << 8) * 1000000 / passed;
	passed = min(passed, 2 * TAU_US); /* a_k must not be below 0 */
	weight = ((2 * TAU_US - passed) << 16) / (2 * TAU_US + passed); /* a_k, of 65536 */
	w->estimate = (weight * w->estimate + (65536 - weight) * ((now_is + w->sample) / 2)) >> 16;
	w->sample = now_is;
	w->last_us = now;
	w->last_delivered = tp->delivered;
}

CONG_AVOID(sk, ack, acked)
{
	struct westwood *w = PRIVATE(sk, struct westwood);

	reno_cong_avoid(sk, acked);
	SHOW(sk, (w->estimate * tcp_sk(sk)->mss_cache * 8) >> 8, w->rtt_min, holds(w));
}

SSTHRESH(sk)
{
	return max(min(holds(PRIVATE(sk, struct westwood)), tcp_sk(sk)->snd_cwnd), 2U);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL westwood = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
