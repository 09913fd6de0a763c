/* SPDX-License-Identifier: MIT
 *
 * BIC: finds the window by binary search; the predecessor of CUBIC.
 *
 * Xu, Harfoush, Rhee, Binary Increase Congestion Control for Fast Long-Distance Networks, INFOCOM 2004.
 * The largest window without loss lies between cwnd and W_max, the window of the last loss. Each RTT
 * moves cwnd to the middle, by at most S_max and at least S_min segments. Above W_max the search for a
 * new maximum mirrors these steps:
 *	below W_max	cwnd += (W_max - cwnd) / 2 per RTT
 *	above		cwnd += (cwnd - W_max) / 2 per RTT
 * On loss:
 *	W_max    = cwnd, or cwnd * (1 + beta) / 2 if cwnd was below the last W_max (fast convergence)
 *	ssthresh = beta * cwnd
 * Up to 14 segments, and while no W_max is known, it behaves as Reno. beta = 0.8, S_max = 16 and
 * S_min = 0.2 segments are the values of Linux; the paper has 0.875, 32 and 0.01. Linux moves a quarter
 * of the distance per RTT instead of half, and the paper doubles its step each RTT above W_max.
 */
#include "ccplay_cc.h"

#define BETA 819 /* of 1024 */
#define S_MAX 16000ULL /* thousandths of a segment */
#define S_MIN 200ULL
#define LOW_WINDOW 14

struct bic {
	u32 w_max;
	u32 rest; /* fraction of a segment, see grow() */
};

SHOWN("bic_w_max_segments bic_step_1000");

CONG_AVOID(sk, ack, acked)
{
	struct bic *b = PRIVATE(sk, struct bic);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd;
	u64 step;

	acked = slow_start(tp, acked);
	if (!acked)
		return;
	cwnd = tp->snd_cwnd;
	if (cwnd <= LOW_WINDOW || !b->w_max) {
		tcp_cong_avoid_ai(tp, cwnd, acked);
		return;
	}
	step = (cwnd < b->w_max ? b->w_max - cwnd : cwnd - b->w_max) * 1000ULL / 2;
	step = max(min(step, S_MAX), S_MIN);
	grow(tp, &b->rest, step, acked);
	SHOW(sk, b->w_max, step);
}

SSTHRESH(sk)
{
	struct bic *b = PRIVATE(sk, struct bic);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	b->w_max = cwnd < b->w_max ? (u64)cwnd * (1024 + BETA) / 2048 : cwnd;
	if (cwnd <= LOW_WINDOW)
		return max(cwnd / 2, 2U);
	return max((u32)((u64)cwnd * BETA / 1024), 2U);
}

SET_STATE(sk, state)
{
	/* A timeout makes earlier measurements obsolete. */
	if (state == TCP_CA_Loss)
		PRIVATE(sk, struct bic)->w_max = 0;
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL bic = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.set_state = (void *)cc_set_state,
	.name = NAME,
};
