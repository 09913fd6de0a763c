/* SPDX-License-Identifier: MIT
 *
 * Westwood: Reno, but a loss sets cwnd by the bandwidth estimated from each ACK; for wireless links.
 *
 * Mascolo, Casetti, Gerla, Sanadidi, Wang, TCP Westwood: Bandwidth Estimation for Enhanced Transport
 * over Wireless Links, MobiCom 2001. Each ACK is a sample of the bandwidth; a low-pass filter
 * (Tustin's, with time constant tau) smooths the samples:
 *	b_k = d_k / D_k				d_k segments acknowledged D_k after the last ACK
 *	B_k = a_k * B_(k-1) + (1 - a_k) * (b_k + b_(k-1)) / 2,   a_k = (2 tau - D_k) / (2 tau + D_k)
 * On loss:
 *	ssthresh = B * RTT_min			what the path holds without a queue; at most cwnd
 * Compressed ACKs yield samples that are far too high; Westwood+ corrects that (westwood-plus.bpf.c). The
 * kernel's module `westwood` is Westwood+.
 */
#include "ccplay_cc.h"

#define TAU_US 500000ULL

struct westwood {
	u64 estimate; /* B in segments per second, times 256 */
	u64 sample; /* b_(k-1) in the same unit */
	u64 last_us; /* time of the last ACK */
	u32 last_delivered;
	u32 rtt_min;
};

SHOWN("westwood_bandwidth_bps westwood_rtt_min_us westwood_holds_segments");

/* B * RTT_min in segments. */
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
		return; /* the next ACK counts these segments too */
	now_is = ((u64)(tp->delivered - w->last_delivered) << 8) * 1000000 / passed;
	passed = min(passed, 2 * TAU_US); /* keeps a_k at 0 or above */
	weight = ((2 * TAU_US - passed) << 16) / (2 * TAU_US + passed); /* a_k * 65536 */
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
