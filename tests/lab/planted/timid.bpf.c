/* SPDX-License-Identifier: MIT */
/* timid: starves itself: once the RTT is a tenth above its least, it keeps one segment. */
#include "ccplay_cc.h"

struct timid {
	u32 base_rtt;
	u32 rtt;
};

CONG_AVOID(sk, ack, acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct timid *t = PRIVATE(sk, struct timid);

	if (t->rtt > t->base_rtt + t->base_rtt / 10)
		set_cwnd(tp, 1);
	else if (in_slow_start(tp))
		tcp_slow_start(tp, acked);
	else
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

SSTHRESH(sk)
{
	return max(tcp_sk(sk)->snd_cwnd / 2, 2U);
}

PKTS_ACKED(sk, sample)
{
	struct timid *t = PRIVATE(sk, struct timid);

	if (sample->rtt_us > 0) {
		t->base_rtt = least(t->base_rtt, sample->rtt_us);
		t->rtt = sample->rtt_us;
	}
}

UNDO_CWND(sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

CONGESTION_CONTROL algorithm = {
	.cong_avoid = (void *)cc_cong_avoid,
	.ssthresh = (void *)cc_ssthresh,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
