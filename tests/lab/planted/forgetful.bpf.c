/* SPDX-License-Identifier: MIT */
/* forgetful: Reno that forgets to recover: after three timeouts in a row it keeps two segments. */
#include "ccplay_cc.h"

#define PATIENCE 3

struct forgetful {
	u32 timeouts;
};

CONG_AVOID(sk, ack, acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct forgetful *f = PRIVATE(sk, struct forgetful);

	if (f->timeouts >= PATIENCE) {
		set_cwnd(tp, 2);
		return;
	}
	f->timeouts = 0;
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
	return max(tcp_sk(sk)->snd_cwnd / 2, 2U);
}

SET_STATE(sk, state)
{
	struct forgetful *f = PRIVATE(sk, struct forgetful);

	if (state == TCP_CA_Loss)
		f->timeouts++;
}

UNDO_CWND(sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

CONGESTION_CONTROL algorithm = {
	.cong_avoid = (void *)cc_cong_avoid,
	.ssthresh = (void *)cc_ssthresh,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.set_state = (void *)cc_set_state,
	.name = NAME,
};
