/* SPDX-License-Identifier: MIT */
/* stubborn: Reno that never backs off: a loss leaves cwnd as it is. */
#include "ccplay_cc.h"

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
}

SSTHRESH(sk)
{
	return max(tcp_sk(sk)->snd_cwnd, 2U);
}

UNDO_CWND(sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

CONGESTION_CONTROL algorithm = {
	.cong_avoid = (void *)cc_cong_avoid,
	.ssthresh = (void *)cc_ssthresh,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.name = NAME,
};
