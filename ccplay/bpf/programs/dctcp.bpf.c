/* SPDX-License-Identifier: MIT
 *
 * DCTCP: reduces cwnd in proportion to the share of ECN-marked packets; for data centres only.
 *
 * RFC 8257, Data Center TCP, sections 3.3 to 3.5. The sender, once per RTT, with g = 1/16:
 *	M        = segments acknowledged with a mark / segments acknowledged
 *	alpha    = (1 - g) alpha + g M
 *	mark     ssthresh = cwnd * (1 - alpha/2), at most once per RTT
 *	loss     ssthresh = cwnd / 2
 * The receiver reports exactly which segments were marked (section 3.2): when the CE state changes, it
 * first acknowledges all earlier segments with the old state.
 *
 * Both ends must use DCTCP, and ECN is negotiated in the handshake. Without ECN nothing is marked, and
 * it behaves as Reno.
 */
#include "ccplay_cc.h"

#define ONE 1024 /* alpha = 1 */
#define G_SHIFT 4

struct dctcp {
	u32 alpha;
	u32 round_end;
	u32 delivered; /* segments delivered before this round */
	u32 delivered_ce; /* those of them with CE */
	struct echo echo;
};

SHOWN("dctcp_alpha");

INIT(sk)
{
	struct dctcp *d = PRIVATE(sk, struct dctcp);
	struct tcp_sock *tp = tcp_sk(sk);

	/* At the first mark slow start has overshot: halve cwnd. */
	d->alpha = ONE;
	d->round_end = tp->snd_nxt;
	d->delivered = tp->delivered;
	d->delivered_ce = tp->delivered_ce;
	d->echo.received = tp->rcv_nxt;
}

IN_ACK_EVENT(sk, flags)
{
	struct dctcp *d = PRIVATE(sk, struct dctcp);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 all, marked, share;

	if (!after(tp->snd_una, d->round_end))
		return;
	d->round_end = tp->snd_nxt;
	all = tp->delivered - d->delivered;
	marked = tp->delivered_ce - d->delivered_ce;
	d->delivered = tp->delivered;
	d->delivered_ce = tp->delivered_ce;
	if (!all)
		return;
	share = min((u64)marked * ONE / all, (u64)ONE);
	/* At least 1, so that alpha reaches 0. */
	d->alpha -= min(max(d->alpha >> G_SHIFT, 1U), d->alpha);
	d->alpha = min(d->alpha + (share >> G_SHIFT), (u32)ONE);
	SHOW(sk, d->alpha);
}

CONG_AVOID(sk, ack, acked)
{
	reno_cong_avoid(sk, acked);
}

/* SSTHRESH treats every event as a mark; a loss halves cwnd. */
static __always_inline void halve(struct tcp_sock *tp)
{
	tp->snd_ssthresh = max(tp->snd_cwnd / 2, 2U);
}

SET_STATE(sk, state)
{
	if (state == TCP_CA_Recovery)
		halve(tcp_sk(sk));
}

SSTHRESH(sk)
{
	struct dctcp *d = PRIVATE(sk, struct dctcp);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return max((u32)(cwnd - (u64)cwnd * d->alpha / (2 * ONE)), 2U);
}

CWND_EVENT(sk, event)
{
	if (event == CA_EVENT_LOSS)
		halve(tcp_sk(sk));
	echo_marks(sk, event, &PRIVATE(sk, struct dctcp)->echo);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL dctcp = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.init = (void *)cc_init,
	.in_ack_event = (void *)cc_in_ack_event,
	.set_state = (void *)cc_set_state,
	.cwnd_event = (void *)cc_cwnd_event,
	.flags = NEEDS_ECN,
	.name = NAME,
};
