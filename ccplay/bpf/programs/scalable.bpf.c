/* SPDX-License-Identifier: MIT
 *
 * Scalable TCP: one segment per 100 acknowledged, an eighth less on loss, whatever the window.
 *
 * Kelly, Scalable TCP: Improving Performance in Highspeed Wide Area Networks, ACM CCR 33(2), 2003:
 *	ACK   cwnd += a		a = 0.01, which is 1 % per RTT
 *	loss  cwnd -= b * cwnd	b = 1/8
 * Recovery from a loss takes -log(1 - b) / log(1 + a) = 13.4 RTTs, whatever the window. Below 16 segments,
 * the paper's legacy window, it behaves as Reno. Up to 100 it grows as Reno does, since 1/cwnd exceeds a.
 */
#include "ccplay_cc.h"

#define ACKS 100 /* 1 / a */
#define LEGACY_WINDOW 16

/* Segments acknowledged since cwnd last grew, and the number that makes it grow by one. */
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
