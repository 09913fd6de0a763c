/* SPDX-License-Identifier: MIT
 *
 * NewReno: additive increase, multiplicative decrease; the standard for all others.
 *
 * RFC 5681, TCP Congestion Control, section 3.1:
 *	slow start		cwnd += 1 per segment acknowledged: doubles each RTT
 *	congestion avoidance	cwnd += 1/cwnd per segment acknowledged: 1 per RTT
 *	loss			ssthresh = cwnd/2
 * "New" refers to loss recovery (RFC 6582). Linux implements recovery in TCP itself for every algorithm,
 * with SACK, RACK and PRR, so none of it appears here.
 *
 * As in Linux, growth counts segments, not ACKs, so that delayed ACKs do not slow it down (RFC 3465), and
 * ssthresh is half of cwnd. The RFC takes half of the data in flight, which is less if the application
 * sends too little.
 *
 * With a queue of B packets and a path that holds P packets, cwnd is a sawtooth from (P + B)/2 to P + B;
 * each tooth lasts (P + B)/2 RTTs.
 */
#include "ccplay_cc.h"

/* Segments acknowledged since cwnd last grew, and the number that makes it grow by one. */
SHOWN("reno_acked_segments reno_needed_segments");

SSTHRESH(sk)
{
	return max(tcp_sk(sk)->snd_cwnd / 2, 2U);
}

CONG_AVOID(sk, ack, acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
	SHOW(sk, tp->snd_cwnd_cnt, tp->snd_cwnd);
}

UNDO_CWND(sk)
{
	return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

CONGESTION_CONTROL reno = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.name = NAME,
};
