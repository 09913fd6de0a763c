/* SPDX-License-Identifier: MIT
 *
 * Scalable TCP: one segment more every 100 acknowledged, minus an eighth on loss, at any window.
 *
 * Kelly, Scalable TCP: Improving Performance in Highspeed Wide Area Networks, ACM CCR 33(2), 2003:
 *	ACK   cwnd += a		a = 0.01, which is 1 % an RTT
 *	loss  cwnd -= b * cwnd	b = 1/8
 * The time from a loss back to the old window is -log(1 - b) / log(1 + a) = 13.4 RTTs, whatever the
 * window. Below 16 segments, the paper's legacy window, it is Reno; up to 100 it grows like Reno, as
 * 1/cwnd is more than a.
 */
#include "ccplay_cc.h"

#define ACKS 100 /* 1 / a */
#define LEGACY_WINDOW 16

/* How many of the segments that it takes for one more of cwnd have been acknowledged. */
SHOWN("scalable_acked_segments scalable_needed_segments");

CONG_AVOID(sk, ack, acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	acked = slow_start(tp, acked);
	if (!acked)
		return;
	tcp_cong_avoid_ai(tp, min(tp->snd_cwnd, (u32)ACKS), acked);
	SHOW(sk, tp->snd_cwnd_cnt, min(tp->snd_cwnd, (u32)ACKS));
}

SSTHRESH(sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return cwnd < LEGACY_WINDOW ? max(cwnd / 2, 2U) : cwnd - cwnd / 8;
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL scalable = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.name = NAME,
};
