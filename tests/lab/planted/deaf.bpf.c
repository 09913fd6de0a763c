/* SPDX-License-Identifier: MIT */
/* deaf: ignores loss; it keeps 40 segments in flight, whatever comes back. */
#include "ccplay_cc.h"

CONG_CONTROL(sk, rate)
{
	set_cwnd(tcp_sk(sk), 40);
}

SSTHRESH(sk)
{
	return 40;
}

UNDO_CWND(sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

CONGESTION_CONTROL algorithm = {
	.cong_control = (void *)cc_cong_control,
	.ssthresh = (void *)cc_ssthresh,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.name = NAME,
};
