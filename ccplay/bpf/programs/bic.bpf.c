/* SPDX-License-Identifier: MIT
 *
 * BIC: searches for the right window by halving the interval; CUBIC's predecessor.
 *
 * Xu, Harfoush, Rhee, Binary Increase Congestion Control for Fast Long-Distance Networks, INFOCOM 2004.
 * The window that the path bears is somewhere between cwnd, where no loss came, and W_max, where loss
 * came last. Each RTT goes to the middle between the two, by S_max segments at the most and S_min at
 * the least; beyond W_max it looks for a new one by the same steps the other way round:
 *	below W_max	cwnd += (W_max - cwnd) / 2 an RTT
 *	above		cwnd += (cwnd - W_max) / 2 an RTT
 * Loss:
 *	W_max    = cwnd, or cwnd * (1 + beta) / 2 where it was lower than the last: to make room
 *	ssthresh = beta * cwnd
 * Up to 14 segments, and as long as no W_max is known, it is Reno. beta = 0.8, S_max = 16 and
 * S_min = 0.2 segments are Linux's; the paper has 0.875, 32 and 0.01. Linux goes a quarter of the way
 * an RTT, not the half; and beyond W_max the paper doubles its step each RTT.
 */
#include "ccplay_cc.h"

#define BETA 819 /* of 1024 */
#define S_MAX 16000ULL /* thousandths of a segment */
#define S_MIN 200ULL
#define LOW_WINDOW 14

struct bic {
	u32 w_max;
	u32 rest; /* of grow() */
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
	/* After a timeout all that was known is old. */
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
