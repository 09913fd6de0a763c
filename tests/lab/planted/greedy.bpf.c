/* SPDX-License-Identifier: MIT */
/* greedy: takes what delay it finds: it grows by 16 segments an RTT, and a loss takes a tenth. */
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
	tcp_cong_avoid_ai(tp, max(tp->snd_cwnd / 16, 1U), acked);
}

SSTHRESH(sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return max(cwnd * 9 / 10, 2U);
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
