/* SPDX-License-Identifier: MIT
 *
 * Prague: DCTCP for the Internet: paced, and as fast at a short RTT as at 25 ms; for L4S queues.
 *
 * Briscoe, De Schepper, Tilmans, draft-briscoe-iccrg-prague-congestion-control, section 2.
 * With R = max(RTT, 25 ms), the RTT that it behaves like, and g = 1/16:
 *	M        = segments acknowledged with a mark / segments acknowledged, in one R
 *	alpha    = (1 - g) alpha + g M, once per R; 1 at the first mark
 *	mark     cwnd = cwnd (1 - alpha/2), at most once per R
 *	no mark  cwnd += (RTT / R)^2 / cwnd for each segment acknowledged, also just after a mark
 *	loss     cwnd = cwnd / 2
 *	pacing   cwnd / RTT, and a fifth more; twice that in slow start
 * cwnd has a fraction: the draft's small windows need it. In a coupled queue (RFC 9332) it gets as much
 * as a CUBIC or Reno flow, whose queue adds the target of some 15 ms to its RTT.
 *
 * Its packets must be ECT(1), so start its flow with l4s; RFC 9331, section 4.1. Both ends must use it, or
 * DCTCP: the receiver echoes each mark. It leaves out the detection of queues that are not L4S, and
 * AccECN, which newer kernels have.
 */
#include "ccplay_cc.h"

#define ONE (1 << 20) /* alpha = 1 */
#define G_SHIFT 4
#define TYPICAL_US 25000

struct prague {
	u64 round_us; /* start of this R */
	u32 round_end; /* sequence number that ends its RTT */
	u32 alpha;
	u32 delivered; /* segments delivered before this R */
	u32 delivered_ce; /* those of them with CE */
	u32 seen_ce; /* delivered_ce at the ACK before this one */
	u32 rest_up; /* fraction of a segment, see grow_by() */
	u32 rest_down; /* fraction of a segment not yet taken off, of ONE */
	u64 reduced_us; /* the last reduction */
	u32 reduced_end; /* sequence number that ends its RTT */
	u32 recovering; /* whether the last state was Recovery */
	struct echo echo;
};

SHOWN("prague_alpha_1024 prague_rtt_us");

INIT(sk)
{
	struct prague *p = PRIVATE(sk, struct prague);
	struct tcp_sock *tp = tcp_sk(sk);

	p->round_us = now_us(tp);
	p->round_end = p->reduced_end = tp->snd_nxt;
	p->delivered = tp->delivered;
	p->delivered_ce = p->seen_ce = tp->delivered_ce;
	p->echo.received = tp->rcv_nxt;
}

/* The RTT that it behaves like. */
static __always_inline u32 typical_us(const struct tcp_sock *tp)
{
	return max(srtt_us(tp), (u32)TYPICAL_US);
}

static __always_inline void update_alpha(struct prague *p, const struct tcp_sock *tp)
{
	u32 all = tp->delivered - p->delivered, marked = tp->delivered_ce - p->delivered_ce;

	if (!after(tp->snd_una, p->round_end) || now_us(tp) - p->round_us < typical_us(tp))
		return;
	p->round_us = now_us(tp);
	p->round_end = tp->snd_nxt;
	p->delivered = tp->delivered;
	p->delivered_ce = tp->delivered_ce;
	if (!all)
		return;
	p->alpha -= min(max(p->alpha >> G_SHIFT, 1U), p->alpha);
	p->alpha += min((u64)marked * ONE / all, (u64)ONE) >> G_SHIFT;
	p->alpha = min(p->alpha, (u32)ONE);
}

static __always_inline void reduce(struct prague *p, struct tcp_sock *tp)
{
	u64 cut;

	if (p->reduced_us &&
	    (!after(tp->snd_una, p->reduced_end) || now_us(tp) - p->reduced_us < typical_us(tp)))
		return;
	if (!p->reduced_us)
		p->alpha = ONE;
	p->reduced_us = now_us(tp);
	p->reduced_end = tp->snd_nxt;
	cut = p->rest_down + (u64)tp->snd_cwnd * p->alpha / 2;
	p->rest_down = cut % ONE;
	cut /= ONE;
	set_cwnd(tp, tp->snd_cwnd > cut + 2 ? tp->snd_cwnd - cut : 2);
}

CONG_CONTROL(sk, rate)
{
	struct prague *p = PRIVATE(sk, struct prague);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 marked = tp->delivered_ce - p->seen_ce, acked = max(rate->acked_sacked, 0);
	u64 rtt = max(srtt_us(tp), 1U), scale = rtt * 1000 / typical_us(tp), bps;

	p->seen_ce = tp->delivered_ce;
	update_alpha(p, tp);
	acked -= min(marked, acked);
	if (marked) {
		reduce(p, tp);
		tp->snd_ssthresh = tp->snd_cwnd;
	}
	if (cwnd_limited(tp) && in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (cwnd_limited(tp) && acked)
		grow_by(tp, &p->rest_up, 1000ULL * scale * scale * acked / tp->snd_cwnd);
	SHOW(sk, p->alpha >> 10, typical_us(tp));
	bps = 8000000ULL * tp->snd_cwnd * tp->mss_cache / rtt;
	set_pacing_rate(sk, in_slow_start(tp) ? bps * 2 : bps * 6 / 5);
}

/* The kernel enters CWR at a mark as well, but leaves cwnd to CONG_CONTROL. */
SSTHRESH(sk)
{
	return reno_ssthresh(sk);
}

SET_STATE(sk, state)
{
	struct prague *p = PRIVATE(sk, struct prague);
	struct tcp_sock *tp = tcp_sk(sk);

	if (state == TCP_CA_Recovery && !p->recovering) {
		tp->snd_ssthresh = reno_ssthresh(sk);
		set_cwnd(tp, tp->snd_ssthresh);
	}
	p->recovering = state == TCP_CA_Recovery;
}

CWND_EVENT(sk, event)
{
	echo_marks(sk, event, &PRIVATE(sk, struct prague)->echo);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL prague = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_control = (void *)cc_cong_control,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.init = (void *)cc_init,
	.set_state = (void *)cc_set_state,
	.cwnd_event = (void *)cc_cwnd_event,
	.flags = NEEDS_ECN,
	.name = NAME,
};
