/* SPDX-License-Identifier: MIT
 *
 * NewReno: additive increase, multiplicative decrease; what all others are measured against.
 *
 * RFC 5681, TCP Congestion Control, section 3.1:
 *	slow start		cwnd += 1 for every segment acknowledged: doubles every RTT
 *	congestion avoidance	cwnd += 1/cwnd for every segment acknowledged: 1 more every RTT
 *	loss			ssthresh = cwnd/2
 * The "New" of NewReno is how lost segments are repaired (RFC 6582). In Linux that is TCP's own work
 * for every algorithm, with SACK, RACK and PRR, and nothing of it is to be seen here.
 *
 * As in Linux, segments are counted, not ACKs, so that delayed ACKs slow nothing down (RFC 3465); and
 * the half is that of cwnd, where the RFC has it of what is under way, which is less where the
 * application has too little to send.
 *
 * With a queue of B packets in front of a path that holds P packets, cwnd is a sawtooth from
 * (P + B)/2 to P + B; each tooth lasts (P + B)/2 RTTs.
 */
#include "ccplay_cc.h"

/* How many of the segments that it takes for one more of cwnd have been acknowledged. */
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
